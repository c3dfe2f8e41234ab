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
