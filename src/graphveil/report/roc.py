"""The ROC curves of an attack."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from graphveil.report.canvas import SMALL, plain_axes, save
from graphveil.report.palette import HUES, INK, MUTED

if TYPE_CHECKING:
    from graphveil.attacks import AttackResult

MOST_CURVES = 6
CONTROL_STYLES: tuple[Any, ...] = (":", "-.", (0, (5, 1)))


def roc_plot(result: AttackResult, path: str | Path) -> None:
    """True- against false-positive rate, both logarithmic: what matters is how many are caught at few false alarms."""
    from graphveil.attacks.metrics import roc

    figure = Figure(figsize=(5.6, 6.2), layout="constrained")
    axes = plain_axes(figure.subplots())
    shown, lowest, hues = result.findings[:MOST_CURVES], 1.0, list(HUES.values())
    for number, finding in enumerate((*shown, *result.controls)):
        control = number >= len(shown)
        lowest = min(lowest, 1 / finding.figures.negatives)
        label = f"{'control: ' * control}{finding.name} (AUC {finding.figures['auc']:.3f})"
        style: dict[str, Any] = {"color": hues[number % len(hues)][0]}
        if control:
            style = {"linestyle": CONTROL_STYLES[number % 3], "color": MUTED}
        axes.plot(*roc(finding.truth, finding.score), label=label, **style)
    axes.plot([lowest, 1.0], [lowest, 1.0], "--", color=MUTED, alpha=0.6, linewidth=1, label="chance")
    axes.set(xscale="log", yscale="log", xlim=(lowest, 1), ylim=(lowest, 1.05))
    axes.set_xlabel("false-positive rate", color=INK)
    axes.set_ylabel("true-positive rate", color=INK)
    axes.set_title(result.attack, loc="left", fontweight="bold", color=INK)
    figure.legend(loc="outside lower left", fontsize=SMALL, frameon=False, ncols=1)
    save(figure, path)
