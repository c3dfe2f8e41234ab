"""A paper's table or figure as a picture: measured curves in the paper's own axes, its printed points hollow beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from graphveil.errors import InputError
from graphveil.experiments.papers import Cell
from graphveil.experiments.reproduce import Kept, Line, Reproduction
from graphveil.report.panel import Panel, Series, draw_sheet, notes_of
from graphveil.report.printed import Printed

Rows = Sequence[Mapping[str, Any]]
OWN = "own"


def draw(found: Sequence[tuple[Reproduction, Rows]], path: str | Path) -> Figure:
    """One panel per data set and level that has several epsilons in print."""
    panels = [panel for asked, rows in found for panel in panels_of(asked, rows)]
    if not panels:
        raise InputError(
            "there is nothing to draw: no runs of a setting that is printed at several epsilons; the table has the rest"
        )
    first = found[0][0]
    title = f"{first.paper.title}: {', '.join(asked.entry.name for asked, _ in found)}"
    notes = [*notes_of(panels), "each curve is under its own promise, which the table names"]
    return draw_sheet(panels, path, title, notes)


def panels_of(asked: Reproduction, rows: Rows) -> list[Panel]:
    """By data set, level and metric, in the order of print."""
    by_place: dict[tuple[str, str, str], list[Line]] = {}
    for line in asked.lines:
        if _epsilon(line.cell) is not None:
            by_place.setdefault((line.cell.dataset, line.cell.level, line.cell.metric), []).append(line)
    found, kept = [], Kept(rows)
    for (dataset, level, metric), lines in by_place.items():
        series = _series(lines, kept)
        if any(len(one.values) > 1 for one in series):
            printed = [_point(line.cell) for line in lines]
            entry = asked.entry
            found.append(Panel(dataset, f"{metric}, %", series, f"{entry.name}, {level}", printed=printed))
    return found


def _epsilon(cell: Cell) -> float | None:
    try:
        value = float(cell.epsilon)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _name(cell: Cell) -> str:
    return f"{cell.method} {cell.backbone}" if cell.backbone not in ("", cell.method) else cell.method


def _series(lines: Sequence[Line], kept: Kept) -> list[Series]:
    """A curve per printed method and column; our own method is one curve, beside whatever it stands."""
    curves: dict[tuple[str, str], dict[float, list[float]]] = {}
    methods: dict[tuple[str, str], str] = {}
    for line in lines:
        for column, values in kept.values(line).items():
            run = line.runs[column][0]
            key = (run.label, column) if column == OWN else (_name(line.cell), column)
            methods[key] = run.method
            epsilon = _epsilon(line.cell)
            if values and epsilon is not None:
                curves.setdefault(key, {})[epsilon] = values
    met: dict[str, int] = {}
    found = []
    for (name, column), curve in curves.items():
        method = methods[name, column]
        number = met[method] = met.get(method, -1) + 1
        label = f"{name} (our own)" if column == OWN else f"{name}, {column}"
        found.append(Series(label, method, curve, variant=number))
    return found


def _point(cell: Cell) -> Printed:
    return Printed(cell.dataset, _epsilon(cell) or 0.0, cell.value / 100, f"{_name(cell)}, printed", cell.method)
