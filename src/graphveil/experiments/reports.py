"""Attacks on reports as runs of an experiment: no model; an attacker holds what a local randomizer let out, or clean rows.

reports: [clean, {name: direction, options: {projected: 16}}, multi-bit]
data: [cora]
epsilons: [1, 4, 8]                                  # of the features; clean rows have none
attacks: [{name: link-stealing, pairs: degree-matched, count: 2600}]
seeds: 3
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, get_args

import numpy as np

from graphveil.errors import GraphveilError, InputError
from graphveil.experiments.run import REPORTS, Run, promise_fields
from graphveil.experiments.spec import CLEAN, DataEntry, Grid, Reading, ReportEntry
from graphveil.privacy.local import Local

WIDTH = 16  # of the rows on which a randomizer is tried before anything runs
ROUNDING = 1e-9
WHOLE_BUDGET_EACH, IN_THE_CLEAR = "L2", "L3"  # gaps of LGA-PGNN's readings


def report_runs(grid: Grid, data: list[DataEntry], attacks: tuple[Mapping[str, Any], ...], place: str) -> Iterator[Run]:
    """Every kind of report with every epsilon on every data set, once per seed; clean rows once."""
    if not attacks:
        raise InputError(f"{place}attacks: is missing: reports are there to be attacked")
    for number, entry in enumerate(grid.reports or []):
        _check(entry, grid.epsilons, f"{place}reports.{number}")
    for one, seed, entry in product(data, grid.seeds or [], grid.reports or []):
        for epsilon in ["raw"] if entry.name == CLEAN else grid.epsilons or []:
            yield Run(
                method=entry.name,
                mode="published" if entry.name in get_args(Reading) else "sound",
                options=entry.options,
                data=one.fields,
                preparation=one.preparation,
                promise=promise_fields(Local(epsilon, "withheld", "withheld")),
                seed=seed,
                attacks=attacks,
                label=entry.shown,
                kind=REPORTS,
            )


def _check(entry: ReportEntry, epsilons: list[float] | None, place: str) -> None:
    if entry.name != CLEAN and not epsilons:
        raise InputError(f"{place}: no epsilon is named: add epsilons: [1, 4, 8]")
    try:
        for epsilon in [] if entry.name == CLEAN else epsilons or []:
            randomizer(entry.name, epsilon, WIDTH, entry.options)
    except GraphveilError as error:
        raise InputError(f"{place}: {error}") from None


def randomizer(name: str, epsilon: float, width: int, options: Mapping[str, Any]) -> Any:
    """The randomizer of these rows; ``options`` replace its own."""
    from graphveil.attacks import feature_randomizer

    return feature_randomizer(name, epsilon, width, options)


def attacked(run: Run, data: Any) -> dict[str, Any]:
    """What every attack reached, as the metrics of a row; the rest of it says what was released."""
    from graphveil.experiments.attack import kept

    found: dict[str, float | None] = {}
    for entry in run.attacks:
        found |= kept(entry, ATTACKS[entry["name"]](entry, run, data))
    hidden = all(entry["name"] == "attribute-inference" for entry in run.attacks)  # its column is taken out before
    return _cost(run, int(data.num_features) - hidden) | {"metrics": found}


def _cost(run: Run, width: int) -> dict[str, Any]:
    """What a row of reports costs its owner, and whether that is within what was asked for (clean rows: nothing holds)."""
    reports, asked = _randomizer(run, width), run.promise["features"]
    if reports is None:
        return {"epsilon": None, "epsilon_claimed": None, "holds": False}
    spent = float(reports.epsilon)
    holds = spent <= asked * (1 + ROUNDING)
    proved = asked if holds else spent if math.isfinite(spent) else None
    gap = [] if holds else [WHOLE_BUDGET_EACH if math.isfinite(spent) else IN_THE_CLEAR]
    return {"epsilon": proved, "epsilon_claimed": asked, "holds": holds, "gaps": gap}


def _randomizer(run: Run, width: int) -> Any:
    epsilon = run.promise["features"]
    return None if run.method == CLEAN else randomizer(run.method, epsilon, width, run.options)


def _link_stealing(entry: Mapping[str, Any], run: Run, data: Any) -> Any:
    from graphveil import attacks
    from graphveil.experiments.attack import pairs_of

    graph = attacks.as_graph(data)
    seed, pairs = run.split_seed, pairs_of(entry, run, graph)
    pairs = pairs.both_orders() if entry.get("both_orders") else pairs
    reports = _randomizer(run, graph.features)
    known = (
        attacks.Knowledge.of(graph, attacks.KNOWN_SHARE)
        if reports is None
        else attacks.Knowledge.released_by(graph, reports, seed, attacks.KNOWN_SHARE)
    )
    return attacks.LinkStealing(tuple(entry["combine"]), _models(entry)).run(graph, pairs, known, seed=seed)


def _models(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(entry.get("models", ("mlp",)))


def _attribute_inference(entry: Mapping[str, Any], run: Run, data: Any) -> Any:
    from graphveil import attacks

    game, seed = attacks.HiddenAttribute.of(data, entry["attribute"]), run.split_seed
    if entry["people"] is not None:
        game = some_people(game, entry["people"], seed)
    reports = _randomizer(run, game.rows.shape[1])
    chosen = attacks.AttributeInference(_models(entry))
    return chosen.run(game if reports is None else game.release(reports, seed), seed=seed)


def some_people(game: Any, people: int, seed: int) -> Any:
    """The same game among so many people, without their edges."""
    from graphveil.attacks import HiddenAttribute

    count = min(people, len(game.hidden))
    chosen = np.sort(np.random.default_rng([1, seed]).choice(len(game.hidden), count, replace=False))
    return HiddenAttribute(game.rows[chosen], game.hidden[chosen], np.zeros((2, 0), dtype=np.int64), game.name)


ATTACKS = {"link-stealing": _link_stealing, "attribute-inference": _attribute_inference}
