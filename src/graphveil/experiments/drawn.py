"""Figures whose points are drawn and not printed: their curves, measured, beside what the text says of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphveil.experiments.expand import expand
from graphveil.experiments.papers import Entry, Paper, Varied
from graphveil.experiments.read import experiment_from
from graphveil.experiments.reproduce import Kept, only_known, promised
from graphveil.experiments.run import Run
from graphveil.experiments.tables import Table, tables

NO_NUMBERS = "print draws these points; it has no numbers but those its text quotes"


def drawn_runs(
    paper: Paper,
    entry: Entry,
    *,
    seeds: Any = 3,
    quick: bool = False,
    data: Sequence[str] | None = None,
    **only: Sequence[str] | None,
) -> dict[str, list[Run]]:
    """By metric, the runs behind the curves; a quick look has one seed and of every curve its ends.

    ``only``: of ``methods``, ``backbones`` and ``epsilons``, those to run.
    """
    only_known(paper, entry, "has no data set", data, entry.data)
    for part, names in only.items():
        there = dict.fromkeys(name for varied in entry.varied for name in _names(varied)[part])
        only_known(paper, entry, f"draws none of the {part}", names, list(there))
    wanted = {part: names for part, names in only.items() if names is not None}
    found: dict[str, list[Run]] = {}
    for varied in entry.varied:
        for epsilon, values in _points(varied, quick, wanted):
            body: dict[str, Any] = {"name": f"{paper.key}/{entry.id}", "seeds": 1 if quick else seeds}
            for name in entry.data if varied.data is None else varied.data:
                if data is not None and name not in data:
                    continue
                own = entry.taken(name, varied.takes)
                tried = [
                    variant | own | ({} if varied.option is None else {varied.option: value})
                    for variant in varied.variants
                    for value in values
                ]
                body |= _asked(varied, tried, epsilon)
                given = {"delta": entry.deltas[name]} if name in entry.deltas else {}
                promises = {} if varied.attack else {"promises": [promised(varied.promise, epsilon) | given]}
                asked = experiment_from(body | {"data": [entry.graph(name)]} | promises, f"{paper.key}.toml")
                found.setdefault(varied.metric, []).extend(expand(asked))
    return found


def _names(varied: Varied) -> dict[str, list[str]]:
    """The words by which its points can be chosen."""
    backbones = varied.values if varied.option == "backbone" else []
    return {"methods": [varied.method], "backbones": backbones, "epsilons": [f"{e:g}" for e in varied.epsilons]}


def _asked(varied: Varied, tried: Sequence[Mapping[str, Any]], epsilon: float) -> dict[str, Any]:
    """What is run with these options: reports under attack, or methods."""
    named = [{"name": varied.method, "options": options} for options in tried]
    if varied.attack:
        return {"reports": named, "attacks": [varied.attack], "epsilons": [epsilon]}
    metrics = ["accuracy", *(["public-graph"] if varied.metric == "public_graph_accuracy" else [])]
    return {"methods": [one | {"mode": varied.mode} for one in named], "metrics": metrics}


def _points(varied: Varied, quick: bool, only: Mapping[str, Sequence[str]]) -> Iterable[tuple[float, list[Any]]]:
    """By epsilon, the values of the option, of those that were asked for."""
    if varied.method not in only.get("methods", [varied.method]):
        return
    values = varied.values[:: max(1, len(varied.values) - 1)] if quick and not varied.paired else varied.values
    for place, epsilon in enumerate(varied.epsilons):
        if f"{epsilon:g}" not in only.get("epsilons", _names(varied)["epsilons"]):
            continue
        here = [values[place]] if varied.paired else values
        if "backbones" in only:
            here = [value for value in here if varied.option == "backbone" and value in only["backbones"]]
        if here:
            yield epsilon, here


def drawn_tables(
    paper: Paper, entry: Entry, runs: Mapping[str, Sequence[Run]], rows: Iterable[Mapping[str, Any]]
) -> list[Table]:
    """One table per metric and promise of what was measured, with what the text says below it."""
    kept, found = Kept(rows), []
    for metric, asked in runs.items():
        for table in tables([row for run in asked if (row := kept.row(run)) is not None], metric):
            title = f"{paper.title}, {entry.name}: {entry.title} ({metric.replace('_', ' ')}, %; {table.title})"
            said = [f"the text: {entry.said}"] if entry.said else []
            found.append(replace(table, title=title, notes=(NO_NUMBERS, *said, *table.notes)))
    return found
