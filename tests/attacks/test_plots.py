"""The pictures show what they were given."""

from graphveil.attacks import LinkTeller, sample_pairs
from graphveil.report.plots import AttackPanel, attack_panels, roc_plot


def test_the_roc_plot_names_attack_and_controls(data, graph, gcn, tmp_path):
    result = LinkTeller().run(gcn, data, sample_pairs(graph, "balanced", 50, 0))
    roc_plot(result, tmp_path / "roc.svg")
    text = (tmp_path / "roc.svg").read_text()
    assert "<svg" in text and "influence" in text and "control: degree product" in text


def test_panels_show_curves_and_lines(tmp_path):
    panels = [
        AttackPanel(name, "AUC", {"gap": {1.0: [0.5, 0.6], 4.0: [0.7]}}, {"open": 0.9}, {"degree": 0.8})
        for name in ("one", "two", "three")
    ]
    attack_panels(panels, tmp_path / "panels.svg")
    text = (tmp_path / "panels.svg").read_text()
    assert all(word in text for word in ("three", "gap", "open", "degree"))
