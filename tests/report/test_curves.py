"""Pictures show what they were given, and nothing lies over anything else."""

import itertools

import numpy as np
import pytest

from graphveil.errors import InputError
from graphveil.report.audit_chart import audit_plot
from graphveil.report.curves import draw
from graphveil.report.palette import PAPER, STYLES
from graphveil.report.panel import Panel, Reference, Series, draw_sheet
from graphveil.report.printed import Printed
from tests.report.example import local_rows, rows


def texts(figure):
    figure.canvas.draw()
    found = [text for axes in figure.axes for text in axes.texts if text.get_text()]
    return [(text.get_text(), text.get_window_extent().extents) for text in (*found, *figure.texts)]


def assert_no_overlap(figure):
    for (one, a), (other, b) in itertools.combinations(texts(figure), 2):
        wide, high = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
        assert wide <= 1 or high <= 1, (one, other)


def test_curves_have_panels_by_data_set_and_notion_with_colour_marker_and_ceiling(tmp_path):
    printed = [Printed("cora", 4.0, 0.6, "NIP-GNN", "nip-gnn"), Printed("cora", 16.0, 0.64, "DPDGC", "dpdgc")]
    figure = draw(rows(), tmp_path / "curves.svg", printed)
    cora, pubmed, edge = figure.axes
    lines = {line.get_label(): line for line in cora.get_lines()}
    ballot = lines["ballot"]
    assert list(ballot.get_xdata()) == [1.0, 4.0, 16.0] and cora.get_xscale() == "log"
    assert np.allclose(ballot.get_ydata(), [60.4, 72.9, 85.4])
    assert (ballot.get_color(), ballot.get_marker()) == (STYLES["ballot"].color, "o")
    dashed = [line for line in cora.get_lines() if line.is_dashed() and line.get_color() == STYLES["gap"].color]
    assert len(dashed) == 1 and np.isclose(dashed[0].get_ydata()[0], 100 * (0.48 + 0.27 * 1.1 + 0.004))
    assert lines["printed: DPDGC"].get_markerfacecolor() == PAPER
    assert {text.get_text() for text in edge.texts} == {"gap (published)\u00a0†\u00a0‡", "mlp, not private"}
    assert "test accuracy, %" in cora.get_ylabel() and cora.get_xlabel() == "epsilon" and len(pubmed.get_lines()) >= 1
    svg = (tmp_path / "curves.svg").read_text()
    assert "node level (record, zero-out)" in svg and "edge level (edge-undirected, zero-out)" in svg
    assert "Bands: smallest and largest over 3 seeds." in svg
    assert "not covered by" in svg
    assert_no_overlap(figure)


def test_one_notion_stands_in_the_title_of_the_sheet(tmp_path):
    only = [r for r in rows(5) if r["level"] != "edge"]
    figure = draw(only, tmp_path / "curves.png")
    assert "Privacy and accuracy: node level (record, zero-out)" in [text for text, _ in texts(figure)]
    assert any("95 % bootstrap" in text for text, _ in texts(figure))
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    draw(local_rows(), tmp_path / "local.pdf")
    assert (tmp_path / "local.pdf").read_bytes().startswith(b"%PDF")


def test_printed_figures_stand_in_panels_of_their_own_promise_only(tmp_path):
    levels = ("node", "edge", "local labels", "local edges")
    printed = [Printed("cora", 4.0, 0.6, f"paper on {level}", level=level) for level in levels]
    figure = draw([*rows(), *local_rows()[:3]], tmp_path / "a.svg", printed)
    found = [{text.get_text() for text in axes.texts if "paper" in text.get_text()} for axes in figure.axes]
    assert found == [{"paper on node"}, set(), {"paper on edge"}, {"paper on local labels"}]


def test_equal_pictures_are_equal_files(tmp_path):
    for name in ("a.svg", "b.svg"):
        draw(rows(), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_nothing_to_draw_and_unknown_endings_are_refused(tmp_path):
    with pytest.raises(InputError, match="nothing to draw"):
        draw([r for r in rows() if r["epsilon_target"] is None], tmp_path / "a.svg")
    with pytest.raises(InputError, match="ends in"):
        draw(rows(), tmp_path / "a.txt")


def test_ten_lines_that_end_at_one_height_keep_their_names_apart(tmp_path):
    series = [Series(f"method number {n} with a long name", f"m{n}", {1.0: [0.5], 8.0: [0.8]}) for n in range(10)]
    levels = [Reference("chance", 0.79, control=True), Reference("gcn, not private", 0.81, "gcn")]
    printed = [Printed("d", 2.0, 0.6, "paper"), Printed("d", 8.0, 0.8, "other")]
    figure = draw_sheet([Panel("data", "accuracy, %", series, references=levels, printed=printed)], tmp_path / "a.svg")
    assert_no_overlap(figure)


def audit(method, mode, level, observed, provable, red=False, codes=()):
    verdict = "violation found" if red else "no violation found"
    told = {"epsilon_claimed": 4.0, "epsilon_provable": provable, "epsilon_observed": observed, "codes": list(codes)}
    told |= {"observed_unbounded": observed is None, "verdict": verdict}
    return {"method": method, "mode": mode, "level": level, **told}


def test_the_audit_chart_says_every_violation_in_words(tmp_path):
    audits = [audit("gap", "sound", "edge", 3.9, 4.0), audit("gap", "published", "edge", 3.1, None, True, ["D3", "D8"])]
    audits += [audit("ballot", "sound", "node", 3.9, 4.0), audit("x", "published", "node", None, None, True)]
    figure = audit_plot(audits, tmp_path / "audit.svg")
    said = {text for text, _ in texts(figure)}
    assert {"VIOLATION: edge D3, D8", "VIOLATION: node failed check", "no published mode"} <= said
    sound, published = figure.axes
    assert "no violations found" in sound.get_title("left") and "2 violations found" in published.get_title("left")
    ends = [line.get_xdata() for line in published.get_lines() if line.get_linewidth() == 1.6]
    assert np.allclose(ends[0], (3.1 / 4, 2.35))  # a failed check below the claim still points to what is not proved
    assert_no_overlap(figure)


def test_the_chart_of_a_single_audit_has_one_panel(tmp_path):
    figure = audit_plot([audit("gap", "sound", "edge", 3.9, 4.0)], tmp_path / "audit.svg")
    assert len(figure.axes) == 1
