"""Attacks on the model of a run, as figures of its row: ``link-teller.auc`` and so on, controls as ``name/control.auc``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from graphveil import attacks
from graphveil.attacks.metrics import AttackResult, Finding
from graphveil.experiments.run import Run
from graphveil.learn.remembered import notes_on
from graphveil.methods.registry import build
from graphveil.privacy.promise import Promise

PUBLISHED = ("link-teller", "lsa2")  # these read nothing but the predictor and the game

KEPT = ("auc", "average_precision", "accuracy", "precision", "recall", "f1", "tpr_at_1_percent")


def figures(entry: Mapping[str, Any], model: Any, run: Run, data: Any, promise: Promise) -> dict[str, float | None]:
    """What the attack reached: its headline under the attack's label, further variants and controls behind a slash."""
    attack = ATTACKS[entry["name"]]
    if entry["name"] not in PUBLISHED or not attacks.has_published_api(model):
        return kept(entry, attack(entry, model, run, data, promise))
    known = notes_on(model.predictor)  # one that was remembered is attacked once
    game = json.dumps([entry, run.data, run.split_seed], sort_keys=True, default=str)
    if game not in known:
        known[game] = kept(entry, attack(entry, model, run, data, promise))
    found: dict[str, float | None] = known[game]
    return found


def kept(entry: Mapping[str, Any], result: AttackResult) -> dict[str, float | None]:
    """The figures of a result under the label of its entry."""
    found: dict[str, float | None] = {}
    for finding in (*result.findings, *result.controls):
        name = entry["label"] if finding is result.headline else f"{entry['label']}/{finding.name}"
        found |= {f"{name}.{figure}": value for figure, value in _of(finding).items()}
    return found


def _of(finding: Finding) -> dict[str, float]:
    kept = {name: round(finding.figures[name], 6) for name in KEPT}
    return kept | {"epsilon_bound": round(finding.figures.epsilon, 4)}


def pairs_of(entry: Mapping[str, Any], run: Run, data: Any) -> attacks.Pairs:
    """The game of a link attack."""
    graph, count = attacks.as_graph(data), entry["count"]
    return attacks.sample_pairs(
        graph, entry["pairs"], attacks.most_pairs(graph) if count == "most" else count, run.split_seed
    )


def _link_teller(entry: Mapping[str, Any], model: Any, run: Run, data: Any, promise: Promise) -> AttackResult:
    pairs = pairs_of(entry, run, data)
    if attacks.has_published_api(model):
        return attacks.published_link_teller(model, pairs, seed=run.split_seed)
    return attacks.LinkTeller().run(model, data, pairs, seed=run.split_seed)


def _lsa2(entry: Mapping[str, Any], model: Any, run: Run, data: Any, promise: Promise) -> AttackResult:
    pairs = pairs_of(entry, run, data)
    if attacks.has_published_api(model):
        return attacks.published_lsa2(model, pairs, seed=run.split_seed)
    method = build(run.method, {**run.options, "mode": run.mode})
    reference = attacks.posteriors_without_edges(method, promise, data, run.seed)
    return attacks.Lsa2().run(model, data, pairs, reference=reference, seed=run.split_seed)


def _membership(entry: Mapping[str, Any], model: Any, run: Run, data: Any, promise: Promise) -> AttackResult:
    method = build(run.method, {**run.options, "mode": run.mode})
    return attacks.Membership().run(method, promise, data, seed=run.split_seed)


def _lists(entry: Mapping[str, Any], model: Any, run: Run, data: Any, promise: Promise) -> AttackResult:
    return attacks.ListReconstruction(entry["count"]).run(model, data, seed=run.split_seed)


ATTACKS: dict[str, Callable[..., AttackResult]] = {
    "link-teller": _link_teller,
    "lsa2": _lsa2,
    "membership": _membership,
    "lists": _lists,
}
