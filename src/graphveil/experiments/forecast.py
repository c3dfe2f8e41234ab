"""What accuracy to expect before any budget is spent: the method on stand-ins, from public facts and stated guesses alone.

Nothing private enters: a forecast takes :class:`PublicFacts`, never the data. ``tests/experiments/test_forecast.py`` replays it
on neighbours.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphveil.errors import DataWarning, InputError
from graphveil.experiments.engines.base import Engine
from graphveil.experiments.guesses import STATED, Guesses, stand_in_options
from graphveil.experiments.run import Run, promise_fields
from graphveil.experiments.summary import Group
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.promise import Level, Promise
from graphveil.progress import Progress, silent

SCENARIOS = 12
SPLITS = 5  # of a data set that stands in as it is
QUANTILES = (0.05, 0.95)
THIRDS = ("weak", "medium", "strong")
MATTERS = 0.5  # rank correlation from which a guess is said to move the figures

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Band:
    """Accuracies to expect under one budget; ``by_strength``: medians of the thirds with the weakest to strongest features."""

    budget: str
    epsilon: float | None
    median: float
    low: float
    high: float
    by_strength: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        return vars(self) | {"by_strength": dict(self.by_strength)}


@dataclass(frozen=True)
class Forecast:
    """Bands per budget; what they rest on; every run."""

    method: Any
    facts: PublicFacts | None
    guesses: Guesses | None
    stand_in: str | None
    bands: tuple[Band, ...]
    matters: Mapping[str, float]
    rows: tuple[Row, ...] = field(repr=False)

    @property
    def failed(self) -> int:
        return sum(row["status"] == "failed" for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        tried = [
            {
                "options": row["scenario"],
                "epsilon": row["epsilon_target"],
                "accuracy": row["metrics"].get("test_accuracy"),
            }
            for row in self.rows
        ]
        first = self.rows[0]
        return {
            "method": self.method.name,
            "mode": self.method.mode,
            **{name: first[name] for name in ("level", "adjacency", "relation", "k", "max_degree", "parts", "delta")},
            "facts": None if self.facts is None else self.facts.to_json(),
            "guesses": None if self.guesses is None else self.guesses.to_json(),
            "stand_in": self.stand_in,
            "quantiles": list(QUANTILES),
            "bands": [band.to_json() for band in self.bands],
            "moves_with": dict(self.matters),
            "failed": self.failed,
            "runs": tried,
        }


def public_facts(data: Any) -> tuple[PublicFacts, tuple[str, ...]]:
    """What a forecast takes from data, and what it had to assume; warnings about private values are not shown."""
    from graphveil.graph.validate import INFERRED_CLASSES, validate

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        graph = validate(data, on_bad_rows="zero")  # a row that is not finite must not show in the forecast either
        return PublicFacts.of(graph), tuple(note for note in graph.notes if note == INFERRED_CLASSES)


def forecast(
    method: Any,
    promises: Sequence[Promise],
    facts: PublicFacts,
    guesses: Guesses,
    engine: Engine,
    *,
    scenarios: int = SCENARIOS,
    seed: int = 0,
    progress: Progress = silent,
) -> Forecast:
    """Run the method on generated graphs of the sizes in ``facts``, one for each of so many ``scenarios`` of the guesses."""
    if not facts.count("train") or not facts.count("query"):
        raise InputError(
            "a forecast needs training and test nodes: their numbers are public, give them by masks or --split"
        )
    _check_covered(method, promises, facts)
    drawn = guesses.scenarios(scenarios, seed)
    runs = []
    for number, scenario in enumerate(drawn):
        data = {"name": "stand-in", "split": "official", "options": stand_in_options(facts, scenario)}
        runs += _runs(method, promises, facts, data, seed + number)
    rows = _rows(runs, engine, progress)
    return Forecast(method, facts, guesses, None, _bands(rows), _matters(rows, guesses), rows)


def forecast_from(
    method: Any,
    promises: Sequence[Promise],
    name: str,
    engine: Engine,
    *,
    facts: PublicFacts | None = None,
    splits: int = SPLITS,
    seed: int = 0,
    progress: Progress = silent,
) -> Forecast:
    """Run the method on a public data set as it is, on several random splits; ``facts`` of one's own data give delta."""
    _check_covered(method, promises, facts or PublicFacts(1000, 20, 3))
    data = {"name": name, "split": "random", "options": {}}
    runs = [run for number in range(splits) for run in _runs(method, promises, facts, data, seed + number)]
    rows = _rows(runs, engine, progress)
    return Forecast(method, facts, None, name, _bands(rows), {}, rows)


def _check_covered(method: Any, promises: Sequence[Promise], facts: PublicFacts) -> None:
    for promise in promises:
        if promise.level is not Level.NONE:
            method.plan(facts, promise)  # says what is not covered


def _runs(
    method: Any, promises: Sequence[Promise], facts: PublicFacts | None, data: Mapping[str, Any], seed: int
) -> list[Run]:
    options = {name: value for name, value in method.get_params().items() if name != "mode"}
    return [
        Run(
            method=method.name,
            mode=method.mode,
            options=options,
            data={"prepare": None, "max_degree": promise.max_degree, **data},
            preparation=None,
            promise=promise_fields(promise if facts is None else promise.with_default_delta(facts.nodes)),
            seed=seed,
            delta_rule="default" if promise.delta is None else f"{promise.delta:g}",
            label=method.name,
        )
        for promise in promises
    ]


def _rows(runs: Sequence[Run], engine: Engine, progress: Progress) -> tuple[Row, ...]:
    """The rows in the order of the runs, each with its scenario."""
    stage = f"forecast ({engine.name})"
    progress(stage, 0, len(runs))
    found: dict[str, Row] = {}
    for row in engine.run(iter(runs)):
        found[row["id"]] = row
        progress(stage, len(found), len(runs))
    rows = [{**found[run.id], "scenario": dict(run.data["options"])} for run in runs]
    reasons = [row["error"] for row in rows if row["status"] == "failed"]
    if len(reasons) == len(rows):
        raise InputError(f"every run failed: {reasons[0]}")
    return tuple(rows)


def _bands(rows: Sequence[Row]) -> tuple[Band, ...]:
    """One band per budget, in the order of the runs."""
    by_budget: dict[str, list[Row]] = {}
    for row in rows:
        by_budget.setdefault(Group((row,)).budget, []).append(row)
    return tuple(_band(budget, members) for budget, members in by_budget.items() if _scored(members))


def _scored(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["metrics"].get("test_accuracy") is not None]


def _band(budget: str, rows: Sequence[Row]) -> Band:
    scored = _scored(rows)
    accuracy = np.array([row["metrics"]["test_accuracy"] for row in scored])
    low, median, high = np.quantile(accuracy, [QUANTILES[0], 0.5, QUANTILES[1]])
    strength = np.array([row["scenario"].get("feature_strength", np.nan) for row in scored])
    parts: dict[str, float] = {}
    if np.ptp(strength) > 0 and len(scored) >= 2 * len(THIRDS):
        thirds = np.array_split(np.argsort(strength, kind="stable"), len(THIRDS))
        parts = {name: float(np.median(accuracy[third])) for name, third in zip(THIRDS, thirds, strict=True)}
    return Band(budget, rows[0]["epsilon_target"], float(median), float(low), float(high), parts)


def _matters(rows: Sequence[Row], guesses: Guesses) -> dict[str, float]:
    """Rank correlations of the guesses that a user may state with the accuracy, over all budgets, from the strongest down."""
    from scipy.stats import rankdata

    scored = _scored(rows)
    budgets = np.array([Group((row,)).budget for row in scored])
    ranks = np.zeros(len(scored))
    accuracy = np.array([row["metrics"]["test_accuracy"] for row in scored])
    for budget in np.unique(budgets):
        inside = budgets == budget
        ranks[inside] = rankdata(accuracy[inside]) / inside.sum()
    found = {}
    for name in STATED:
        values = np.array([row["scenario"][name] for row in scored])
        if not getattr(guesses, name).known and np.ptp(ranks) > 0:
            found[name] = round(float(np.corrcoef(rankdata(values), ranks)[0, 1]), 3)
    return dict(sorted(found.items(), key=lambda entry: -abs(entry[1])))
