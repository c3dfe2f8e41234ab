"""Pictures of attacks: ROC curves on logarithmic axes, and attack success against epsilon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from graphveil.attacks import AttackResult

MOST_CURVES = 6
CONTROL_STYLES = (":", "-.", (0, (5, 1)))


def roc_plot(result: AttackResult, path: str | Path) -> None:
    """True- against false-positive rate, both logarithmic: what matters is how many are caught at few false alarms."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from graphveil.attacks.metrics import roc

    figure = Figure(figsize=(5.6, 5.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    lowest = 1.0
    for number, finding in enumerate((*result.findings[:MOST_CURVES], *result.controls)):
        control = number >= len(result.findings[:MOST_CURVES])
        false, true = roc(finding.truth, finding.score)
        lowest = min(lowest, 1 / finding.figures.negatives)
        label = f"{'control: ' * control}{finding.name} (AUC {finding.figures['auc']:.3f})"
        style = {"linestyle": CONTROL_STYLES[number % 3], "color": "0.4"} if control else {"color": f"C{number}"}
        axes.plot(false, true, label=label, **style)
    ends = np.array([lowest, 1.0])
    axes.plot(ends, ends, "--", color="0.7", linewidth=1, label="chance")
    axes.set(xscale="log", yscale="log", xlim=(lowest, 1), ylim=(lowest, 1.05))
    axes.set(xlabel="false-positive rate", ylabel="true-positive rate", title=result.attack)
    axes.grid(alpha=0.25, which="both")
    axes.legend(loc="lower right", fontsize=7, frameon=False)
    figure.savefig(path, dpi=130)


@dataclass(frozen=True)
class AttackPanel:
    """One attack: per target the figure over seeds for every epsilon, non-private values (dashed) and controls (dotted)."""

    title: str
    measure: str
    curves: Mapping[str, Mapping[float, Sequence[float]]]
    dashed: Mapping[str, float]
    dotted: Mapping[str, float]


def attack_panels(panels: Sequence[AttackPanel], path: str | Path) -> None:
    """Attack success against epsilon, one panel per attack; bars are standard deviations over seeds."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.6 * -(-len(panels) // 2)), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(-(-len(panels) // 2), 2, squeeze=False)
    for axes, panel in zip(grid.flat, panels, strict=False):
        for number, (label, values) in enumerate(panel.curves.items()):
            epsilons = sorted(values)
            means = [float(np.mean(values[e])) for e in epsilons]
            errors = [float(np.std(values[e])) for e in epsilons]
            axes.errorbar(epsilons, means, errors, marker="o", markersize=4, color=f"C{number}", label=label)
        for number, (label, value) in enumerate(panel.dashed.items()):
            axes.axhline(value, linestyle="--", linewidth=1.2, color=f"C{number + 6}", label=label)
        for number, (label, value) in enumerate(panel.dotted.items()):
            axes.axhline(value, linestyle=(":", "-.")[number % 2], linewidth=1, color="0.4", label=label)
        ticks = sorted({epsilon for values in panel.curves.values() for epsilon in values})
        axes.set_xscale("log", base=2)
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set(title=panel.title, ylabel=panel.measure, xlabel="epsilon")
        axes.grid(alpha=0.25)
        axes.legend(fontsize=7, frameon=False)
    for axes in list(grid.flat)[len(panels) :]:
        axes.remove()
    figure.savefig(path, dpi=130)
