"""From an experiment to its runs; whatever cannot run is refused here, before anything does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches
from itertools import product
from pathlib import Path
from typing import Any

from graphveil.errors import GraphveilError, InputError
from graphveil.experiments.run import FORECAST, Run, promise_fields
from graphveil.experiments.spec import (
    AttackEntry,
    DataEntry,
    Experiment,
    ForecastEntry,
    Grid,
    MethodEntry,
    PromiseEntry,
)
from graphveil.graph.data.registry import GENERATED, cards
from graphveil.methods.registry import build
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import Local
from graphveil.privacy.promise import Level, Promise

NEEDED = ("methods", "data", "promises")
PUBLIC_SIZES = PublicFacts(1000, 20, 3)  # a stand-in where a data set's own sizes are not known yet


def expand(experiment: Experiment, where: str = "") -> list[Run]:
    """Every run of the experiment, each once, in the order of the file."""
    found: dict[str, Run] = {}
    labels: dict[str, str] = {}
    for number, grid in enumerate(experiment.complete_grids()):
        place = (f"{where or experiment.name}: ") + (f"grids.{number}." if experiment.grids else "")
        for run in _grid(grid, place):
            variant = json.dumps([run.method, run.mode, run.options, run.candidates], sort_keys=True)
            if labels.setdefault(run.label, variant) != variant:
                raise InputError(f"{place}methods: {run.label!r} is the name of two variants: give each its own label")
            found.setdefault(run.id, run)
    return list(found.values())


def _grid(grid: Grid, place: str) -> Iterator[Run]:
    if grid.seeds is None and grid.repeats is None:
        raise InputError(f"{place}seeds: is missing: give a number of seeds, a list, or repeats for unseeded runs")
    attacks = tuple(_attack(entry, bool(grid.reports), f"{place}attacks") for entry in grid.attacks or [])
    if grid.audit is not None:
        yield from _audits(grid, place)
        return
    for name in NEEDED[1:2] if grid.reports else NEEDED:
        if getattr(grid, name) is None:
            raise InputError(f"{place}{name}: is missing: add it")
    for number, one in enumerate(grid.data or []):
        _check_data(one, f"{place}data.{number}")
    if grid.reports:
        from graphveil.experiments.reports import report_runs

        yield from report_runs(grid, grid.data or [], attacks, place)
        return
    yield from _trainings(grid, attacks, place)


def _trainings(grid: Grid, attacks: tuple[dict[str, Any], ...], place: str) -> Iterator[Run]:
    """Trainings, or forecasts of them."""
    methods, data, promises = grid.methods or [], grid.data or [], grid.promises or []
    built = [_method(entry, grid, f"{place}methods.{number}") for number, entry in enumerate(methods)]
    coins: list[tuple[int | None, int]] = [(seed, 0) for seed in grid.seeds or []]
    coins += [(None, repeat) for repeat in range(grid.repeats or 0)]
    kept: dict[tuple[int, int], list[Promise]] = {}
    for (m, method), (p, promised) in product(enumerate(built), enumerate(promises)):
        where = f"{place}promises.{p} with {methods[m].shown}"
        kept[m, p] = found = [_check_covered(method, one, where) for one in _promises(promised, grid, method, where)]
        if methods[m].candidates:
            _check_selection(method, found, grid, where)
    for entry, (seed, repeat) in product(data, coins):  # runs on one graph stay together: it is loaded once
        for (m, p), found in kept.items():
            for promise in found:
                chosen = methods[m]
                run = Run(
                    method=chosen.name,
                    mode=chosen.mode,
                    options=chosen.options,
                    data=entry.fields,
                    preparation=entry.preparation,
                    promise=promise_fields(promise),
                    seed=seed,
                    repeat=repeat,
                    candidates=tuple(chosen.candidates),
                    selection=(grid.selection or "none") if chosen.candidates else "none",
                    selection_mean=grid.selection_mean if chosen.candidates else None,
                    attacks=attacks,
                    metrics=tuple(grid.metrics or ("accuracy",)),
                    delta_rule="default" if promises[p].delta is None else f"{promises[p].delta:g}",
                    label=chosen.shown,
                )
                yield from [run] if grid.forecast is None else _forecasts(run, grid.forecast, place)


def _forecasts(run: Run, asked: list[ForecastEntry], place: str) -> Iterator[Run]:
    """The forecasts instead of this training."""
    from graphveil.experiments.forecasts import HOMOPHILY, NOTHING

    name = run.data["name"]
    if name not in cards():
        raise InputError(f"{place}forecast: {name} has no public card: name one of 'graphveil datasets'")
    for entry in asked:
        stated = NOTHING if entry.homophily is None else HOMOPHILY
        settings = {"stated": stated, "scenarios": entry.scenarios}
        yield replace(run, kind=FORECAST, settings=settings, label=f"{run.label}, {stated} stated")


def _audits(grid: Grid, place: str) -> Iterator[Run]:
    """An audit of every method under every promise, once per seed."""
    from graphveil.experiments.audits import audit_entries, audit_run, check_runs, usual_promises

    assert grid.audit is not None
    for name in ("data", "attacks", "repeats"):
        if getattr(grid, name) is not None:
            raise InputError(f"{place}{name}: an audit takes none: it has seeds and a generated graph of worst cases")
    for seed in grid.seeds or []:
        for number, entry in enumerate(audit_entries(grid)):
            method = _method(entry, grid, f"{place}methods.{number}")
            where = f"{place}promises with {entry.shown}"
            named = [one for part in grid.promises or [] for one in _promises(part, grid, method, where)]
            for promise in named or usual_promises(method, grid.epsilons, seed, where):
                yield audit_run(entry, _check_covered(method, promise, where), seed, grid.audit.runs)
    yield from check_runs(grid)


def _method(entry: MethodEntry, grid: Grid, place: str) -> Any:
    """The method with its options, checked; with candidates each of them."""
    if entry.candidates and grid.selection is None:
        raise InputError(
            f"{place}.candidates: say what selecting on private validation nodes costs: selection: charged, or "
            "'not covered' (then every table says so)"
        )
    try:
        for candidate in entry.candidates:
            build(entry.name, {**entry.options, **candidate, "mode": entry.mode})
        return build(entry.name, {**entry.options, "mode": entry.mode})
    except GraphveilError as error:
        raise InputError(f"{place}: {error}") from None


def _check_selection(method: Any, promises: list[Promise], grid: Grid, place: str) -> None:
    from graphveil.experiments.selection import check_selection

    for promise in promises:
        try:
            check_selection(method, promise, grid.selection == "charged")
        except GraphveilError as error:
            raise InputError(f"{place}: {error}") from None


def _attack(entry: AttackEntry, on_reports: bool, place: str) -> dict[str, Any]:
    """What a run keeps of an attack; it must be one on what the grid makes."""
    if entry.on_reports != on_reports:
        needs = "reports: [clean, ...] instead of methods" if entry.on_reports else "methods instead of reports"
        raise InputError(f"{place}: {entry.name} needs {needs}")
    if entry.name == "attribute-inference" and entry.attribute is None:
        raise InputError(f"{place}: attribute-inference needs an attribute to hide, by name or number")
    if entry.count == "most" and entry.name not in ("link-teller", "lsa2", "link-stealing"):
        raise InputError(f"{place}: {entry.name} draws no pairs: give count a number")
    told: dict[str, Any] = {"name": entry.name, "label": entry.shown, "pairs": entry.pairs, "count": entry.count}
    if not on_reports:
        return told
    told |= {"combine": entry.combine, "attribute": entry.attribute, "people": entry.people}
    # what is not said is not kept: runs from before these fields keep their identifiers
    return told | entry.model_dump(include={"models", "both_orders"}, exclude_defaults=True)


def _check_data(entry: DataEntry, place: str) -> None:
    name, known = entry.name, [*cards(), *GENERATED]
    if name.endswith(".npz"):
        if not Path(name).is_file():
            raise InputError(f"{place}: {name} does not exist")
    elif name not in known:
        close = get_close_matches(name, known, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else "see 'graphveil datasets', or give an .npz file"
        raise InputError(f"{place}: unknown data set {name!r}: {hint}")
    if entry.options and name not in GENERATED:
        raise InputError(f"{place}.options: only generated graphs ({', '.join(GENERATED)}) take options")
    from graphveil.graph.data.load import check_asked

    try:
        check_asked(name, entry.prepare, entry.split, entry.options)
    except GraphveilError as error:
        raise InputError(f"{place}: {error}") from None


def _promises(entry: PromiseEntry, grid: Grid, method: Any, place: str) -> Iterator[Promise]:
    """The promises of one entry, one per epsilon, as the method understands them."""
    if entry.level is Level.LOCAL:
        parts = (entry.features, entry.labels, entry.edges)
        relation = entry.relation if "relation" in entry.model_fields_set else None  # else what the parts suggest
        tried = [part if isinstance(part, list) else [part] for part in parts]
        try:
            if entry.epsilons is not None:
                raise InputError("level local takes no epsilons: give features, labels and edges a budget each")
            for features, labels, edges in product(*tried):
                yield Local(features, labels, edges, entry.delta or 0.0, relation)
        except GraphveilError as error:
            raise InputError(f"{place}: {error}") from None
        return
    epsilons: list[float | None] = list(entry.epsilons or grid.epsilons or [])
    if entry.level is Level.NONE:
        if entry.epsilons is not None:
            raise InputError(f"{place}: level none takes no epsilons: nothing is protected")
        epsilons = [None]
    if not epsilons:
        raise InputError(f"{place}: no epsilon is named, here or for the grid: add epsilons: [1, 2, 4, 8]")
    if any(part != "withheld" for part in (entry.features, entry.labels, entry.edges)):
        raise InputError(f"{place}: features, labels and edges have budgets of their own at level local only")
    stated: dict[str, Any] = {
        "delta": entry.delta,
        "k": entry.k,
        "max_degree": entry.max_degree,
        "directed": entry.directed,
    }
    stated |= {"level": entry.level, "relation": entry.relation, "adjacency": entry.adjacency}
    for epsilon in epsilons:
        try:
            yield Promise.parse(**stated, epsilon=epsilon, supported=method.supports)
        except GraphveilError as error:
            raise InputError(f"{place}: {str(error).replace('--', '')}") from None


def _check_covered(method: Any, promise: Promise, place: str) -> Promise:
    """The promise, if the method proves (sound) or claims (published) it."""
    if promise.level is Level.NONE:
        return promise
    try:
        if promise.guarantee not in method.supports or isinstance(promise, Local):
            method.clone().plan(PUBLIC_SIZES, promise)  # says what is not covered, and by what it is covered
    except GraphveilError as error:
        raise InputError(f"{place}: {error}") from None
    return promise
