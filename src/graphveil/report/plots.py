"""Plots people look at first: accuracy against epsilon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Curve:
    """Test accuracies (0 to 1) of one method: per epsilon a list over seeds."""

    label: str
    accuracies: Mapping[float, Sequence[float]]


def privacy_accuracy_plot(
    curves: Sequence[Curve], references: Mapping[str, float], title: str, promise: str, path: str | Path
) -> None:
    """Mean accuracy and its spread over seeds against epsilon; non-private accuracies as dashed lines."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import FixedLocator, NullLocator

    figure, axes = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
    for number, curve in enumerate(curves):
        epsilons = sorted(curve.accuracies)
        means = np.array([100 * np.mean(curve.accuracies[e]) for e in epsilons])
        spread = np.array([100 * np.std(curve.accuracies[e]) for e in epsilons])
        axes.plot(epsilons, means, marker="o", color=f"C{number}", label=curve.label)
        axes.fill_between(epsilons, means - spread, means + spread, color=f"C{number}", alpha=0.15, linewidth=0)
    for number, (label, accuracy) in enumerate(references.items()):
        axes.axhline(100 * accuracy, linestyle=("--", ":")[number % 2], color="0.35", linewidth=1.2, label=label)
    ticks = sorted({epsilon for curve in curves for epsilon in curve.accuracies})
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([f"{tick:g}" for tick in ticks])
    axes.set_xlabel(f"epsilon ({promise})")
    axes.set_ylabel("test accuracy, %")
    axes.set_title(title)
    axes.grid(alpha=0.25)
    axes.legend(loc="lower right", frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


@dataclass(frozen=True)
class Panel:
    """One data set: curves of methods, and published points (label to epsilon and accuracy)."""

    title: str
    curves: Sequence[Curve]
    points: Mapping[str, tuple[float, float]]


def accuracy_panels(panels: Sequence[Panel], promise: str, path: str | Path) -> None:
    """Accuracy against epsilon, one panel per data set; bars are standard errors over seeds, crosses published figures."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = 2
    figure = Figure(figsize=(9, 3.4 * -(-len(panels) // columns)), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(-(-len(panels) // columns), columns, squeeze=False)
    for axes, panel in zip(grid.flat, panels, strict=False):
        for number, curve in enumerate(panel.curves):
            epsilons = [epsilon for epsilon in sorted(curve.accuracies) if len(curve.accuracies[epsilon])]
            means = [100 * np.mean(curve.accuracies[e]) for e in epsilons]
            errors = [100 * np.std(curve.accuracies[e]) / np.sqrt(len(curve.accuracies[e])) for e in epsilons]
            axes.errorbar(epsilons, means, errors, marker="o", markersize=4, color=f"C{number}", label=curve.label)
        for label, (epsilon, accuracy) in panel.points.items():
            axes.plot(epsilon, 100 * accuracy, "x", color="0.2")
            place = {"textcoords": "offset points", "xytext": (-4, -10), "ha": "right", "fontsize": 7, "color": "0.2"}
            axes.annotate(label.rpartition(" ")[0], (epsilon, 100 * accuracy), **place)
        ticks = sorted({epsilon for curve in panel.curves for epsilon in curve.accuracies})
        axes.set_xscale("log", base=2)
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set(title=panel.title, ylabel="test accuracy, %")
        axes.grid(alpha=0.25)
        axes.legend(loc="upper left", frameon=False, fontsize=8)
    for axes in list(grid.flat)[len(panels) :]:
        axes.remove()
    figure.supxlabel(promise, fontsize=9)
    figure.savefig(path, dpi=130)
