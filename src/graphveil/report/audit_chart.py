"""Audits as a chart: per method what was observed and what can be proved, as a multiple of what is claimed; verdicts in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from graphveil.audit.result import RED
from graphveil.experiments.audit_tables import Row, observed, over_seeds
from graphveil.report import canvas
from graphveil.report.palette import ALARM, GRID, HUES, INK, MUTED, PAPER

Body = Mapping[str, Any]  # Audit.to_json()
MARKERS = {"edge": "s", "k-neighbor": "v", "node": "o", "local": "^"}
BEYOND, ENDLESS = 2.0, 2.35  # where the axis ends, and where infinite values stand
NAMES, LETTER, PLOT, WORDS, ROW = 1.5, 0.073, 2.35, 2.75, 0.37  # inches
LEGEND = (
    ("observed at least; no violation found", {"marker": "o", "color": HUES["blue"][0]}),
    ("observed; VIOLATION found", {"marker": "X", "color": ALARM}),
    ("provable", {"marker": "D", "color": MUTED, "markerfacecolor": PAPER}),
)
TITLE = "Audit: observed epsilon as a multiple of the claimed one"


def audit_plot(audits: Sequence[Body], path: str | Path) -> Figure:
    """One row per method or variant, sound modes beside published ones, a mark per level, published verdicts in words."""
    methods = list(dict.fromkeys(body["method"] for body in audits))
    modes = [mode for mode in ("sound", "published") if any(body["mode"] == mode for body in audits)]
    height, worded = ROW * len(methods), "published" in modes or any(body["verdict"] == RED for body in audits)
    names = max(NAMES, LETTER * max(map(len, methods), default=0))
    width = names + (PLOT + 0.2) * len(modes) + (WORDS if worded else 0.1)
    figure = canvas.new_figure(max(width, 5.6), height + 1.55)
    top = height + 0.8
    canvas.write(figure, 0.12, height + 1.5, TITLE, fontsize=canvas.TEXT + 2, fontweight="bold")
    for number, mode in enumerate(modes):
        left = names + number * (PLOT + 0.2)
        axes = canvas.axes_at(figure, left, top - height, left + PLOT, top)
        here = [body for body in audits if body["mode"] == mode]
        _frame(axes, len(methods), here, mode)
        for body in here:
            _mark(axes, body, methods.index(body["method"]), here)
        axes.set_yticks(range(len(methods)), methods if number == 0 else [], fontsize=canvas.TEXT)
    if worded:
        _verdicts(figure, audits, methods, width - WORDS, top)
    _legend(figure, audits)
    canvas.save(figure, path)
    return figure


def bodies(rows: Iterable[Row]) -> list[Body]:
    """Audits kept as rows, as :func:`audit_plot` takes them: over seeds what was observed at most, red if one is."""
    found: list[Body] = []
    for mine in over_seeds(rows):
        seen = [observed(row) for row in mine]
        red = [row for row in mine if row["details"]["verdict"] == RED]
        first = (red or mine)[0]
        told = {name: first[name] for name in ("method", "mode", "level", "epsilon_claimed")} | (first["parts"] or {})
        told |= {"method": first["label"]} if first["options"] else {}
        told |= {"epsilon_provable": first["epsilon"], "verdict": first["details"]["verdict"], "codes": first["gaps"]}
        told["observed_unbounded"] = None in seen
        found.append(told | {"epsilon_observed": max((value for value in seen if value is not None), default=None)})
    return found


def _ratio(value: float | None, claimed: float | None) -> float:
    """A multiple of the claim, at the right edge if it is infinite or off the axis."""
    if value is None or claimed is None or value > 0 == claimed:
        return ENDLESS
    return min(value / claimed, BEYOND) if claimed else 0.0


def _frame(axes: Any, rows: int, here: Sequence[Body], mode: str) -> None:
    red = sum(body["verdict"] == RED for body in here)
    told = f"{mode} modes, {len(here)} audits:\n{red or 'no'} violation{'s' if red != 1 else ''} found"
    axes.set_title(told, loc="left", fontsize=canvas.TEXT, color=ALARM if red else INK, fontweight="bold")
    axes.axvspan(1, 2.6, color=GRID, alpha=0.5, linewidth=0, zorder=0.4)
    axes.axvline(1, color=INK, linewidth=1.3, zorder=1.5)
    axes.set_xticks((0, 0.5, 1, 1.5, ENDLESS), ("0", "½", "claimed", "1½", "∞"))
    axes.set(xlim=(-0.08, 2.6), ylim=(rows - 0.5, -0.5))
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    for line in range(1, rows):
        axes.axhline(line - 0.5, color=GRID, linewidth=0.6, zorder=0.6)


def _mark(axes: Any, body: Body, row: int, here: Sequence[Body]) -> None:
    """Observed, tied to provable; several audits of a method above each other within its row."""
    mates = [other for other in here if other["method"] == body["method"]]
    place = row + 0.26 * (mates.index(body) - (len(mates) - 1) / 2)
    claimed = body["epsilon_claimed"]
    seen = None if body["observed_unbounded"] else body["epsilon_observed"]
    observed, provable = _ratio(seen, claimed), _ratio(body["epsilon_provable"], claimed)
    red = body["verdict"] == RED
    color = ALARM if red else HUES["blue"][0]
    axes.plot((observed, provable), (place, place), color=color, linewidth=1.6, alpha=0.65, solid_capstyle="butt")
    axes.plot(provable, place, marker="D", color=MUTED, markerfacecolor=PAPER, markersize=4.5, zorder=3)
    look = {"marker": "X", "markersize": 8} if red else {"marker": MARKERS[body["level"]], "markersize": 6}
    axes.plot(observed, place, color=color, markeredgecolor=PAPER, markeredgewidth=0.6, zorder=4, **look)


def _verdicts(figure: Figure, audits: Sequence[Body], methods: Sequence[str], left: float, top: float) -> None:
    """Beside every row what was found, with the codes of the gaps, so that nobody needs the colours."""
    for row, method in enumerate(methods):
        mine = [body for body in audits if body["method"] == method]
        red = [body for body in mine if body["verdict"] == RED]
        style: dict[str, Any] = {"fontsize": canvas.SMALL, "color": MUTED, "va": "center", "linespacing": 1.05}
        text = "no published mode" if all(body["mode"] == "sound" for body in mine) else "no violation found"
        if red:
            where = "; ".join(f"{_level(body)} {', '.join(body['codes']) or 'failed check'}" for body in red)
            text, style["color"] = canvas.broken(f"VIOLATION: {where}", 44), ALARM
        canvas.write(figure, left + 0.05, top - (row + 0.5) * ROW, text, **style)


def _level(body: Body) -> str:
    return "randomised edges" if body["level"] == "local" and body.get("edges") != "raw" else str(body["level"])


def _legend(figure: Figure, audits: Sequence[Body]) -> None:
    levels = [level for level in MARKERS if any(body["level"] == level for body in audits)]
    handles = [Line2D([], [], linestyle="", label=label, **style) for label, style in LEGEND]  # type: ignore[arg-type]
    handles += [
        Line2D([], [], linestyle="", marker=MARKERS[level], color=HUES["blue"][0], label=level) for level in levels
    ]
    look = {
        "frameon": False,
        "fontsize": canvas.SMALL,
        "ncols": len(handles),
        "columnspacing": 1.2,
        "handletextpad": 0.2,
    }
    figure.legend(handles=handles, loc="lower left", bbox_to_anchor=(0.0, 0.0), **look)
