"""Heat maps in a paper's own axes: a column of panels per data set, a row per metric, the gain written into every cell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure

from graphveil.errors import InputError
from graphveil.experiments.heat import HeatMap
from graphveil.report import canvas
from graphveil.report.palette import INK, MUTED, PAPER

COLOURS = "PuOr"  # purple is desirable, orange is not; told apart by readers who confuse red and green
CELL = 0.55  # inches
LETTERS = 14  # of a note, per inch


def draw(maps: Sequence[HeatMap], title: str, path: str | Path) -> Figure:
    """All maps that have runs; colours change sides where print calls a difference desirable."""
    shown = [one for one in maps if one.any]
    if not shown:
        raise InputError("there is nothing to draw: no runs of this figure, or none at its base")
    metrics = list(dict.fromkeys(one.metric for one in shown))
    data = list(dict.fromkeys(one.dataset for one in shown))
    height, width = shown[0].gains.shape
    size = (1.0 + len(data) * (width * CELL + 0.5), 1.0 + len(metrics) * (height * CELL + 0.9))
    figure = Figure(figsize=size, layout="constrained", facecolor=PAPER)
    grid = figure.subplots(len(metrics), len(data), squeeze=False)
    for axes in grid.ravel():
        axes.set_visible(False)
    for one in shown:
        _panel(grid[metrics.index(one.metric), data.index(one.dataset)], one)
    figure.suptitle(title, color=INK, fontsize=canvas.TEXT + 1, wrap=True)
    told = "points over the base, mean over seeds; purple: what print calls desirable; the promise does not hold"
    figure.supxlabel(canvas.broken(told, int(LETTERS * size[0])), fontsize=canvas.SMALL, color=MUTED)
    canvas.save(figure, Path(path))
    return figure


def _panel(axes: Any, one: HeatMap) -> None:
    axes.set_visible(True)
    (row, values), (column, others) = one.rows, one.columns
    far = max(1.0, float(np.nanmax(np.abs(one.gains - one.desirable))))
    norm = TwoSlopeNorm(one.desirable, one.desirable - far, one.desirable + far)
    axes.imshow(one.gains, cmap=f"{COLOURS}_r" if one.smaller_is_better else COLOURS, norm=norm, origin="lower")
    for (i, j), gain in np.ndenumerate(one.gains):
        if np.isfinite(gain):
            strong = abs(gain - one.desirable) > 0.6 * far
            colour = PAPER if strong else INK
            axes.text(j, i, f"{gain:+.1f}", ha="center", va="center", fontsize=canvas.SMALL, color=colour)
    axes.set_xticks(range(len(others)), [f"{value:g}" for value in others], fontsize=canvas.SMALL)
    axes.set_yticks(range(len(values)), [f"{value:g}" for value in values], fontsize=canvas.SMALL)
    axes.set_xlabel(column, fontsize=canvas.SMALL, color=INK)
    axes.set_ylabel(row, fontsize=canvas.SMALL, color=INK)
    axes.set_title(f"{one.dataset}: {one.metric}", fontsize=canvas.TEXT, color=INK)
