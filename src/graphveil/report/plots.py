"""Pictures: accuracy and attack success against epsilon, ROC curves, audits, and one graph at a glance."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from graphveil.errors import InputError
from graphveil.files import draft
from graphveil.graph import UNLABELLED

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from graphveil.attacks import AttackResult
    from graphveil.audit.result import Audit

Values = Mapping[float, Sequence[float]]  # per epsilon a list over seeds
MOST_CURVES = 6
CONTROL_STYLES: tuple[Any, ...] = (":", "-.", (0, (5, 1)))
RED, GREEN = "#b3261e", "#2e7d32"


def save(figure: Figure, path: str | Path) -> Path:
    """Write the picture completely or not at all; equal pictures are equal files."""
    path = Path(path)
    kind = path.suffix[1:].lower()
    if kind not in ("png", "pdf", "svg"):
        raise InputError(f"{path} cannot be written: give a file name that ends in .png, .pdf or .svg")
    with draft(path) as beside, rc_context({"svg.fonttype": "none", "svg.hashsalt": "graphveil"}):
        figure.savefig(beside, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    return path


def _against_epsilon(
    axes: Any, curves: Mapping[str, Values], unit: float, error: Callable[[Any], Any] = np.std, band: bool = False
) -> None:
    """Means over seeds with their errors, as bars or as a band, on a logarithmic axis with one tick per epsilon."""
    for number, (label, values) in enumerate(curves.items()):
        epsilons = [epsilon for epsilon in sorted(values) if len(values[epsilon])]
        means = unit * np.array([np.mean(values[e]) for e in epsilons])
        errors = unit * np.array([error(values[e]) for e in epsilons])
        style: dict[str, Any] = {"marker": "o", "color": f"C{number}", "label": label}
        if band:
            axes.plot(epsilons, means, **style)
            axes.fill_between(epsilons, means - errors, means + errors, color=f"C{number}", alpha=0.15, linewidth=0)
        else:
            axes.errorbar(epsilons, means, errors, markersize=4, **style)
    _log_ticks(axes, sorted({epsilon for values in curves.values() for epsilon in values}))


def _log_ticks(axes: Any, ticks: Sequence[float]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.grid(alpha=0.25, axis="both")


def _panels(count: int, width: float, height: float) -> tuple[Figure, list[Any]]:
    """Two panels a row."""
    rows = -(-count // 2)
    figure = Figure(figsize=(width, height * rows), layout="constrained")
    grid = list(figure.subplots(rows, 2, squeeze=False).flat)
    for axes in grid[count:]:
        axes.remove()
    return figure, grid[:count]


@dataclass(frozen=True)
class Curve:
    """Test accuracies (0 to 1) of one method: per epsilon a list over seeds."""

    label: str
    accuracies: Values


def privacy_accuracy_plot(
    curves: Sequence[Curve], references: Mapping[str, float], title: str, promise: str, path: str | Path
) -> Figure:
    """Mean accuracy and its spread over seeds against epsilon; non-private accuracies as dashed lines."""
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.subplots()
    _against_epsilon(axes, {curve.label: curve.accuracies for curve in curves}, 100, band=True)
    for number, (label, accuracy) in enumerate(references.items()):
        axes.axhline(100 * accuracy, linestyle=("--", ":")[number % 2], color="0.35", linewidth=1.2, label=label)
    axes.set(xlabel=f"epsilon ({promise})", ylabel="test accuracy, %", title=title)
    axes.legend(loc="lower right", frameon=False)
    save(figure, path)
    return figure


@dataclass(frozen=True)
class Panel:
    """One data set: curves of methods, and published points (label to epsilon and accuracy)."""

    title: str
    curves: Sequence[Curve]
    points: Mapping[str, tuple[float, float]]


def accuracy_panels(panels: Sequence[Panel], promise: str, path: str | Path) -> None:
    """Accuracy against epsilon, one panel per data set; bars are standard errors over seeds, crosses published figures."""
    figure, grid = _panels(len(panels), 9, 3.4)
    for axes, panel in zip(grid, panels, strict=True):
        curves = {curve.label: curve.accuracies for curve in panel.curves}
        _against_epsilon(axes, curves, 100, lambda values: np.std(values) / np.sqrt(len(values)))
        for label, (epsilon, accuracy) in panel.points.items():
            axes.plot(epsilon, 100 * accuracy, "x", color="0.2")
            place = {"textcoords": "offset points", "xytext": (-4, -10), "ha": "right", "fontsize": 7, "color": "0.2"}
            axes.annotate(label.rpartition(" ")[0], (epsilon, 100 * accuracy), **place)
        axes.set(title=panel.title, ylabel="test accuracy, %")
        axes.legend(loc="upper left", frameon=False, fontsize=8)
    figure.supxlabel(promise, fontsize=9)
    save(figure, path)


@dataclass(frozen=True)
class AttackPanel:
    """One attack: per target the figure over seeds for every epsilon, non-private values (dashed) and controls (dotted)."""

    title: str
    measure: str
    curves: Mapping[str, Values]
    dashed: Mapping[str, float]
    dotted: Mapping[str, float]


def attack_panels(panels: Sequence[AttackPanel], path: str | Path) -> None:
    """Attack success against epsilon, one panel per attack; bars are standard deviations over seeds."""
    figure, grid = _panels(len(panels), 10, 3.6)
    for axes, panel in zip(grid, panels, strict=True):
        _against_epsilon(axes, panel.curves, 1)
        for number, (label, value) in enumerate(panel.dashed.items()):
            axes.axhline(value, linestyle="--", linewidth=1.2, color=f"C{number + 6}", label=label)
        for number, (label, value) in enumerate(panel.dotted.items()):
            axes.axhline(value, linestyle=(":", "-.")[number % 2], linewidth=1, color="0.4", label=label)
        axes.set(title=panel.title, ylabel=panel.measure, xlabel="epsilon")
        axes.legend(fontsize=7, frameon=False)
    save(figure, path)


def roc_plot(result: AttackResult, path: str | Path) -> None:
    """True- against false-positive rate, both logarithmic: what matters is how many are caught at few false alarms."""
    from graphveil.attacks.metrics import roc

    figure = Figure(figsize=(5.6, 5.0), layout="constrained")
    axes = figure.subplots()
    lowest = 1.0
    for number, finding in enumerate((*result.findings[:MOST_CURVES], *result.controls)):
        control = number >= len(result.findings[:MOST_CURVES])
        lowest = min(lowest, 1 / finding.figures.negatives)
        label = f"{'control: ' * control}{finding.name} (AUC {finding.figures['auc']:.3f})"
        style = {"linestyle": CONTROL_STYLES[number % 3], "color": "0.4"} if control else {"color": f"C{number}"}
        axes.plot(*roc(finding.truth, finding.score), label=label, **style)
    axes.plot([lowest, 1.0], [lowest, 1.0], "--", color="0.7", linewidth=1, label="chance")
    axes.set(xscale="log", yscale="log", xlim=(lowest, 1), ylim=(lowest, 1.05))
    axes.set(xlabel="false-positive rate", ylabel="true-positive rate", title=result.attack)
    axes.grid(alpha=0.25, which="both")
    axes.legend(loc="lower right", fontsize=7, frameon=False)
    save(figure, path)


def audit_plot(audits: Sequence[Audit], path: str | Path) -> None:
    """One line per audit: a bar up to the observed lower bound, a tick at the claim, a diamond at what can be proved.

    Infinite values end in an arrow at the right edge. Red lines: a violation was found.
    """
    from graphveil.audit.text import promise_text

    figure = Figure(figsize=(9.5, 1.4 + 0.27 * len(audits)), layout="constrained")
    axes = figure.subplots()
    values = [v for audit in audits for v in (audit.claimed, audit.provable, audit.observed) if math.isfinite(v)]
    left, edge = 0.4, 2.2 * max([*values, 4.0])
    bar: dict[str, Any] = {"linewidth": 6, "alpha": 0.55}
    claim: dict[str, Any] = {"marker": "|", "color": "black", "markersize": 12, "markeredgewidth": 2}
    proof: dict[str, Any] = {"marker": "D", "color": "none", "markeredgecolor": "0.25", "markersize": 6}
    for row, audit in enumerate(audits):
        color = RED if audit.violated else GREEN
        end = min(audit.observed, edge)
        if end > left:
            axes.plot([left, end], [row, row], color=color, solid_capstyle="butt", **bar)
        if math.isinf(audit.observed):
            axes.plot(edge * 0.96, row, marker=">", color=color, markersize=9, clip_on=False)
        axes.plot(min(audit.claimed, edge), row, **claim)
        axes.plot(max(min(audit.provable, edge), left), row, clip_on=False, **proof)
    labels = [f"{a.method} ({a.mode})  {promise_text(a).replace(' / zero-out', '')}" for a in audits]
    axes.set_yticks(range(len(audits)), labels, fontsize=7)
    _log_ticks(axes, [tick for tick in (0.5, 1, 2, 4, 8, 16, 32, 64, 128) if left <= tick < edge])
    axes.grid(visible=False, axis="y")
    axes.set(xlim=(left, edge), ylim=(len(audits) - 0.4, -0.6))
    axes.set_xlabel("epsilon (right edge: infinite, or no finite value)")
    legend = [
        Line2D([], [], linestyle="", label="claimed", **claim),
        Line2D([], [], linestyle="", label="provable", **proof),
        Line2D([], [], color=GREEN, label="observed at least; no violation found", **bar),
        Line2D([], [], color=RED, label="observed at least; violation found", **bar),
    ]
    figure.legend(handles=legend, loc="outside upper center", frameon=False, fontsize=8, ncols=4)
    save(figure, path)


def plot_graph(data: Data, path: str | Path, title: str = "") -> Path:
    """How heavy the degrees of a graph are (log axes), and how its classes mix."""
    from graphveil.graph.data.measures import degree_sequence

    mixing = class_mixing(data)
    figure = Figure(figsize=(9 if mixing is not None else 4.8, 4), layout="constrained")
    panels = figure.subplots(1, 1 if mixing is None else 2, squeeze=False)[0]
    panels[0].loglog(*degree_survival(degree_sequence(data)), marker=".", linewidth=1, color="#2a6f97")
    panels[0].set(xlabel="degree d", ylabel="share of nodes with degree ≥ d", title="degree distribution")
    panels[0].grid(visible=True, which="both", linewidth=0.3)
    if mixing is not None:
        image = panels[1].imshow(mixing, vmin=0, vmax=1, cmap="Blues")
        names = data.get("class_names") or list(range(mixing.shape[0]))
        panels[1].set_xticks(range(len(mixing)), names, rotation=45, ha="right", fontsize=7)
        panels[1].set_yticks(range(len(mixing)), names, fontsize=7)
        panels[1].set(xlabel="class of the neighbour", ylabel="class of the node", title="where edges lead")
        figure.colorbar(image, ax=panels[1], shrink=0.8, label="share of the row")
    figure.suptitle(title)
    return save(figure, path)


def degree_survival(degrees: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct positive degrees ``d`` and the share of all nodes whose degree is at least ``d``."""
    values, counts = np.unique(degrees[degrees > 0], return_counts=True)
    return values, np.cumsum(counts[::-1])[::-1] / max(degrees.size, 1)


def class_mixing(data: Data) -> np.ndarray | None:
    """Row ``c``: where the arcs that leave class ``c`` lead, as shares. None without labels."""
    if data.get("y") is None:
        return None
    labels = data.y.numpy()
    u, v = labels[data.edge_index.numpy()]
    known = (u != UNLABELLED) & (v != UNLABELLED)
    classes = int(data.get("num_classes") or labels.max(initial=-1) + 1)
    counts = np.bincount(u[known] * classes + v[known], minlength=classes * classes).reshape(classes, classes)
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))
