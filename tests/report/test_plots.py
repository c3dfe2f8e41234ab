"""Plots are written and show what they were given."""

from graphveil.report.plots import Curve, privacy_accuracy_plot


def test_the_privacy_accuracy_plot_is_a_png_with_one_line_per_method(tmp_path):
    curves = [Curve("one", {1.0: [0.5, 0.7], 4.0: [0.8, 0.8]}), Curve("two", {1.0: [0.2], 4.0: [0.3]})]
    figure = privacy_accuracy_plot(curves, {"open": 0.9}, "title", "node level", tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    (axes,) = figure.axes
    lines = {line.get_label(): list(line.get_ydata()) for line in axes.get_lines()}
    assert lines["one"] == [60.0, 80.0] and lines["two"] == [20.0, 30.0] and lines["open"][0] == 90.0
    assert "node level" in axes.get_xlabel()
