"""Sheets of panels with room for names at the right, the common look of axes, and files that are complete or absent."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from graphveil.errors import InputError
from graphveil.files import draft
from graphveil.report.palette import GRID, INK, MUTED, PAPER

KINDS = ("svg", "png", "pdf")
TEXT, SMALL = 9.0, 8.0  # points
LEFT, BOTTOM, LINE = 0.7, 0.52, 0.165  # inches
ALONE = 4.6  # inches: the width of a picture of its own, which a phone shows well
NAME_WIDTH = 22  # letters of a name beside a line before it is broken


def save(figure: Figure, path: str | Path) -> Path:
    """Write the picture completely or not at all; equal pictures are equal files."""
    path = Path(path)
    kind = path.suffix[1:].lower()
    if kind not in KINDS:
        raise InputError(f"{path} cannot be written: give a file name that ends in .png, .pdf or .svg")
    with draft(path) as beside, rc_context({"svg.fonttype": "none", "svg.hashsalt": "graphveil"}):
        dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
        figure.savefig(beside, format=kind, dpi=150, metadata=dates.get(kind), facecolor=PAPER)
    return path


def new_figure(width: float, height: float) -> Figure:
    """An empty sheet, in inches, on which texts can be measured."""
    figure = Figure(figsize=(width, height), facecolor=PAPER)
    FigureCanvasAgg(figure)
    return figure


def axes_at(figure: Figure, left: float, bottom: float, right: float, top: float) -> Any:
    """Axes whose edges are these, in inches from the lower left corner."""
    width, height = figure.get_size_inches()
    axes = figure.add_axes((left / width, bottom / height, (right - left) / width, (top - bottom) / height))
    return plain_axes(axes)


def plain_axes(axes: Any) -> Any:
    """A quiet frame: two spines, a light grid, small ink."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(MUTED)
    axes.tick_params(labelsize=SMALL, color=MUTED, labelcolor=INK, length=3)
    axes.grid(color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    return axes


def write(figure: Figure, left: float, bottom: float, text: str, **style: Any) -> Any:
    """Text at a place in inches."""
    width, height = figure.get_size_inches()
    look: dict[str, Any] = {"fontsize": TEXT, "color": INK, "va": "top"} | style
    return figure.text(left / width, bottom / height, text, **look)


def text_size(figure: Figure, text: str, size: float) -> tuple[float, float]:
    """Width and height in inches."""
    probe = figure.text(0, 0, text, fontsize=size)
    box = probe.get_window_extent(figure.canvas.get_renderer())  # type: ignore[attr-defined]
    probe.remove()
    return box.width / figure.dpi, box.height / figure.dpi


def broken(text: str, letters: int) -> str:
    """The text in lines of about so many letters."""
    return "\n".join(textwrap.wrap(text, letters, break_long_words=False)) or text


def log_epsilons(axes: Any, epsilons: Sequence[float]) -> None:
    """A logarithmic axis with a tick per epsilon; where names would touch, the tick stays without one."""
    axes.set_xscale("log", base=2)
    ticks = sorted(set(epsilons))
    span = math.log(ticks[-1] / ticks[0]) if len(ticks) > 1 else 1.0
    named: list[float] = []
    for tick in ticks:
        if not named or math.log(tick / named[-1]) >= 0.09 * span:
            named.append(tick)
    axes.set_xticks(ticks, [f"{tick:g}" if tick in named else "" for tick in ticks])
    axes.minorticks_off()
