"""Figures of two options against each other: what every pair of values gains over one of them, the base.

    gain(a, b) = mean over seeds of (metric at (a, b) - metric at base), the same seed on both sides

Print draws these maps and gives no numbers. Tests: ``tests/experiments/test_heat.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphveil.experiments.drawn import NO_NUMBERS
from graphveil.experiments.expand import expand
from graphveil.experiments.papers import Entry, Heat, Paper
from graphveil.experiments.read import experiment_from
from graphveil.experiments.reproduce import Kept, only_known, promised
from graphveil.experiments.run import Run
from graphveil.experiments.tables import EXACT, UNPROVED, Table


@dataclass(frozen=True)
class HeatMap:
    """One map: gains in percentage points (rows by columns, NaN where nothing was run) and how many seeds each has."""

    dataset: str
    metric: str
    rows: tuple[str, Sequence[Any]]
    columns: tuple[str, Sequence[Any]]
    gains: np.ndarray
    seeds: np.ndarray
    desirable: float

    @property
    def smaller_is_better(self) -> bool:
        """Of what an attacker gains; of accuracy more is better."""
        return "attack" in self.metric

    @property
    def any(self) -> bool:
        return bool(np.isfinite(self.gains).any())


def heat_of(entry: Entry) -> Heat:
    """What the entry draws; only entries with a heat map come here."""
    assert entry.heat is not None
    return entry.heat


def heat_runs(
    paper: Paper,
    entry: Entry,
    *,
    seeds: Any = 3,
    quick: bool = False,
    data: Sequence[str] | None = None,
    **only: Sequence[str] | None,
) -> dict[str, list[Run]]:
    """By data set, the runs of every cell; a quick look has one seed, the base and the corners.

    ``only``: a map has one of ``methods``, ``backbones`` and ``epsilons`` each; another is refused.
    """
    heat, found = heat_of(entry), {}
    only_known(paper, entry, "has no data set", data, entry.data)
    has = {"methods": heat.method, "backbones": str(heat.options.get("backbone")), "epsilons": f"{heat.epsilon:g}"}
    for part, names in only.items():
        only_known(paper, entry, f"draws none of the {part}", names, [has[part]])
    settings = _corners(heat) if quick else heat.settings
    for name in entry.data:
        if data is not None and name not in data:
            continue
        taken = entry.taken(name, heat.takes)
        body = {
            "name": f"{paper.key}/{entry.id}",
            "methods": [
                {"name": heat.method, "mode": "published", "options": heat.options | taken | setting}
                for setting in settings
            ],
            "data": [entry.graph(name)],
            "promises": [promised(heat.promise, heat.epsilon)],
            "attacks": heat.attacks,
            "seeds": 1 if quick else seeds,
        }
        found[name] = expand(experiment_from(body, f"{paper.key}.toml"))
    return found


def _corners(heat: Heat) -> list[dict[str, Any]]:
    (row, values), (column, others) = heat.axes
    ends = [{row: one, column: other} for one in values[:: len(values) - 1] for other in others[:: len(others) - 1]]
    return [heat.base, *(one for one in ends if one != heat.base)]


def heat_maps(entry: Entry, runs: Mapping[str, Sequence[Run]], rows: Iterable[Mapping[str, Any]]) -> list[HeatMap]:
    """A map per data set and metric."""
    heat, kept = heat_of(entry), Kept(rows)
    (row, values), (column, others) = heat.axes
    found = []
    for dataset, asked in runs.items():
        for word, metric in heat.metrics.items():
            measured = _measured(asked, kept, metric, (row, column))
            base = measured.get((heat.base[row], heat.base[column]), {})
            gains, seeds = np.full((len(values), len(others)), np.nan), np.zeros((len(values), len(others)), dtype=int)
            for i, one in enumerate(values):
                for j, other in enumerate(others):
                    mine = measured.get((one, other), {})
                    paired = [value - base[seed] for seed, value in mine.items() if seed in base]
                    if paired:
                        gains[i, j], seeds[i, j] = 100 * np.mean(paired), len(paired)
            place = (row, values), (column, others)
            found.append(HeatMap(dataset, word, *place, gains, seeds, heat.desirable[word]))
    return found


def _measured(
    runs: Sequence[Run], kept: Kept, metric: str, options: tuple[str, str]
) -> dict[tuple[Any, Any], dict[int | None, float]]:
    """By setting and seed, the metric of the finished runs."""
    found: dict[tuple[Any, Any], dict[int | None, float]] = {}
    for run in runs:
        row = kept.row(run)
        value = None if row is None or row["status"] != "done" else row["metrics"].get(metric)
        if value is not None:
            found.setdefault((run.options[options[0]], run.options[options[1]]), {})[run.seed] = value
    return found


def heat_tables(paper: Paper, entry: Entry, maps: Sequence[HeatMap]) -> list[Table]:
    """The maps as tables, with what the text says of the figure below."""
    heat, found = heat_of(entry), []
    for one in maps:
        (row, values), (column, others) = one.rows, one.columns
        head = (f"{row} \\ {column}", *(f"{other:g}" for other in others))
        body = [
            (f"{value:g}", *("" if np.isnan(gain) else f"{gain:+.1f}{UNPROVED}" for gain in gains))
            for value, gains in zip(values, one.gains, strict=True)
        ]
        base = ", ".join(f"{key} {value:g}" for key, value in heat.base.items())
        counts = " or ".join(str(count) for count in sorted({int(count) for count in one.seeds[one.seeds > 0]}))
        told = [NO_NUMBERS, f"points over {base}, paired by seed (seeds per cell: {counts or 'none'})"]
        told += [f"the text: {entry.said}"] if entry.said else []
        told += [f"{UNPROVED} the promise does not hold: known gaps, or no finite bound", EXACT]
        title = f"{paper.title}, {entry.name}: {entry.title} ({one.metric}, points; {one.dataset})"
        found.append(Table(title, head, tuple(body), tuple(told)))
    return found
