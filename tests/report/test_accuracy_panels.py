"""The picture of several data sets is written, with published points and missing cells."""

from graphveil.report.plots import Curve, Panel, accuracy_panels


def test_panels_are_drawn_even_where_cells_are_missing(tmp_path):
    curves = [Curve("ballot", {1.0: [0.5, 0.6], 4.0: [0.7, 0.8]}), Curve("gap", {1.0: [], 4.0: [0.4]})]
    panels = [Panel(name, curves, {"DPDGC 4": (4.0, 0.64)}) for name in ("one", "two", "three")]
    accuracy_panels(panels, "epsilon (adjacency record, zero-out)", tmp_path / "picture.svg")
    text = (tmp_path / "picture.svg").read_text()
    assert "<svg" in text and len(text) > 5000
