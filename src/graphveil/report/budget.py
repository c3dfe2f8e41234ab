"""Spent and left of a budget book over time, one panel per notion."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from graphveil.privacy.budget.book import Entry
from graphveil.privacy.budget.statement import history
from graphveil.report import canvas
from graphveil.report.palette import HUES, INK, MUTED

SPENT, RESERVED = HUES["blue"][0], HUES["orange"][0]
HEIGHT, WIDTH = 2.5, 6.4  # inches


def draw(name: str, entries: Sequence[Entry], path: Path) -> Path:
    """A step line of what was spent, the promised total above it, and a mark for every run that is not settled."""
    told = history(entries)
    notions = list(told[-1]["after"])
    settled = {entry["run"] for entry in told if entry["kind"] == "settle"}
    figure = canvas.new_figure(WIDTH, 0.45 + HEIGHT * len(notions))
    top = figure.get_size_inches()[1] - 0.12
    canvas.write(
        figure, 0.15, top - 0.12, f"{name}: budget spent and left", fontsize=canvas.TEXT + 2, color=INK, weight="bold"
    )
    for place, notion in enumerate(notions):
        upper = top - 0.5 - place * HEIGHT
        axes = canvas.axes_at(figure, canvas.LEFT, upper - HEIGHT + 0.75, WIDTH - 0.95, upper)
        _panel(axes, notion, [entry for entry in told if notion in entry["after"]], settled)
    return canvas.save(figure, path)


def _panel(axes: Any, notion: str, told: Sequence[dict[str, Any]], settled: set[str]) -> None:
    times = [datetime.fromisoformat(entry["time"]) for entry in told]
    spent = [entry["after"][notion]["spent"] or 0.0 for entry in told]
    total, left = told[-1]["after"][notion]["promised"], told[-1]["after"][notion]["left"]
    axes.step(times, spent, where="post", color=SPENT, linewidth=1.8)
    axes.fill_between(times, spent, step="post", color=SPENT, alpha=0.15)
    axes.axhline(total, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    for time, value, entry in zip(times, spent, told, strict=True):
        if entry["kind"] == "settle":
            axes.plot(time, value, "o", color=SPENT, markersize=4.5)
        elif entry["kind"] == "reserve" and entry["run"] not in settled:
            axes.plot(time, value, "s", color=RESERVED, markersize=5.5)
            axes.annotate(
                "reserved, not settled",
                (time, value),
                xytext=(-4, 6),
                textcoords="offset points",
                ha="right",
                fontsize=canvas.SMALL,
                color=INK,
            )
    beside = {"textcoords": "offset points", "va": "center", "fontsize": canvas.SMALL, "annotation_clip": False}
    axes.annotate(
        f"promised {total:g}", (1, total), xycoords=("axes fraction", "data"), xytext=(4, 0), color=INK, **beside
    )
    axes.annotate(
        f"spent {spent[-1]:.3g}",
        (1, spent[-1]),
        xycoords=("axes fraction", "data"),
        xytext=(4, -3),
        color=SPENT,
        **beside,
    )
    axes.set_ylim(0, 1.12 * max(total, *spent))
    axes.set_ylabel("epsilon", fontsize=canvas.SMALL + 0.5, color=INK)
    axes.set_title(
        f"{notion}: a run of up to epsilon {left:.3g} still fits", loc="left", fontsize=canvas.SMALL + 0.5, color=MUTED
    )
    _dates(axes)


def _dates(axes: Any) -> None:
    import matplotlib.dates

    dates: Any = matplotlib.dates
    locator = dates.AutoDateLocator(minticks=2, maxticks=5)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
