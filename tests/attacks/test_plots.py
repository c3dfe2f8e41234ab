"""The picture shows what it was given."""

from graphveil.attacks import LinkTeller, sample_pairs
from graphveil.report.roc import roc_plot


def test_the_roc_plot_names_attack_and_controls(data, graph, gcn, tmp_path):
    result = LinkTeller().run(gcn, data, sample_pairs(graph, "balanced", 50, 0))
    roc_plot(result, tmp_path / "roc.svg")
    text = (tmp_path / "roc.svg").read_text()
    assert "<svg" in text and "influence" in text and "control: degree product" in text
