"""Claimed, provable and observed epsilon side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphveil.audit.result import Audit

RED, GREEN = "#b3261e", "#2e7d32"


def audit_plot(audits: Sequence[Audit], path: str | Path) -> None:
    """One line per audit: a bar up to the observed lower bound, a tick at the claim, a diamond at what can be proved.

    Infinite values end in an arrow at the right edge. Red lines: a violation was found.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    figure = Figure(figsize=(9.5, 1.4 + 0.27 * len(audits)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    values = [v for audit in audits for v in (audit.claimed, audit.provable, audit.observed) if math.isfinite(v)]
    left, edge = 0.4, 2.2 * max([*values, 4.0])
    for row, audit in enumerate(audits):
        color = RED if audit.violated else GREEN
        end = min(audit.observed, edge)
        if end > left:
            axes.plot([left, end], [row, row], color=color, linewidth=6, alpha=0.55, solid_capstyle="butt")
        if math.isinf(audit.observed):
            axes.plot(edge * 0.96, row, marker=">", color=color, markersize=9, clip_on=False)
        axes.plot(min(audit.claimed, edge), row, marker="|", color="black", markersize=12, markeredgewidth=2)
        provable = max(min(audit.provable, edge), left)
        axes.plot(provable, row, marker="D", color="none", markeredgecolor="0.25", markersize=6, clip_on=False)
    axes.set_yticks(range(len(audits)), [_label(audit) for audit in audits], fontsize=7)
    axes.set_ylim(len(audits) - 0.4, -0.6)
    axes.set_xscale("log")
    axes.set_xlim(left, edge)
    ticks = [tick for tick in (0.5, 1, 2, 4, 8, 16, 32, 64, 128) if left <= tick < edge]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("epsilon (right edge: infinite, or no finite value)")
    axes.grid(axis="x", alpha=0.25)
    legend = [
        Line2D([], [], marker="|", color="black", linestyle="", markersize=12, markeredgewidth=2, label="claimed"),
        Line2D([], [], marker="D", markeredgecolor="0.25", color="none", linestyle="", label="provable"),
        Line2D([], [], color=GREEN, linewidth=6, alpha=0.55, label="observed at least; no violation found"),
        Line2D([], [], color=RED, linewidth=6, alpha=0.55, label="observed at least; violation found"),
    ]
    figure.legend(handles=legend, loc="outside upper center", frameon=False, fontsize=8, ncols=4)
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "audit"}):
        figure.savefig(path, dpi=130, metadata={"Date": None} if str(path).endswith(".svg") else None)


def _label(audit: Audit) -> str:
    from graphveil.audit.text import promise_text

    return f"{audit.method} ({audit.mode})  {promise_text(audit).replace(' / zero-out', '')}"
