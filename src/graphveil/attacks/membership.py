"""Membership inference with a shadow model: train on a subgraph, test on the full graph (Olatunji, Nejdl and Khosla 2021).

The labelled nodes are split into four parts: target members, target non-members, shadow members, shadow non-members. A
model is trained in the world in which everybody but its members left their record blank. The attacker trains the same
method on the shadow members, learns from it how members and non-members are answered, and guesses for the target.

Members and non-members are asked **on the same graph**, the full one. The published code asks members on their training
subgraph and the others on the full graph, which gives the exact training neighbourhood away (AUC 0.83 instead of 0.61 on
Cora, overfitted GCN, ``docs/results/attacks.md``); that variant is reported beside the headline.
A local model is asked through its GNN API, with reports. Everybody has one: a member's is that which the model learned from, a
non-member's is made by the same client of the record it would have sent; on the full graph, edges are those the server would be
sent of it. On its training graph the network is asked with what its server has, blank records included.
What the attacker sees of a node: sorted probabilities, loss of the true label, entropy and margin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphveil.attacks.metrics import BOUND_NOTE, AttackResult, Finding
from graphveil.attacks.models import AttackModel
from graphveil.attacks.target import TINY, as_graph, check_order, delta_of, posteriors, queried
from graphveil.errors import InputError
from graphveil.graph import UNLABELLED, Graph
from graphveil.graph.graph import blanked
from graphveil.methods.base import PrivateMethod
from graphveil.methods.common.gnn_api import has_gnn_api
from graphveil.progress import Progress, silent

CALIBRATION = 0.1  # share of the members a method may choose on; they are not part of the game
FRESH = 0x3E3C00  # coins of reports that were not there in training begin behind those of target and shadow
PARTS = ("target members", "target others", "shadow members", "shadow others")
SAME_GRAPH = "same graph"
PUBLISHED = "as published (members asked on their training graph)"


@dataclass(frozen=True)
class Membership:
    """Shadow-model attack with an attack model by name; ``epochs`` are those of the ``mlp``."""

    model: str = "mlp"
    epochs: int = 60

    def run(
        self, method: PrivateMethod, promise: Any, data: Any, *, seed: int = 0, progress: Progress = silent
    ) -> AttackResult:
        """Train a target and a shadow of ``method`` under ``promise`` and attack the target."""
        graph = as_graph(data)
        parts = split_parts(graph, seed)
        worlds = {side: member_world(graph, parts[f"{side} members"], seed) for side in ("target", "shadow")}
        trained = {}
        for number, (side, world) in enumerate(worlds.items()):
            trained[side] = method.fit(world, promise, seed=seed + number)
            progress("target and shadow", number + 1, 2)
        return self._attack(graph, trained, worlds, parts, seed)

    def run_on(self, target: Any, method: PrivateMethod, promise: Any, data: Any, *, seed: int = 0) -> AttackResult:
        """Attack a trained target whose members are the train nodes of ``data``; the shadow learns from the others."""
        graph = as_graph(data)
        labelled = graph.labels != UNLABELLED
        learned_from = np.logical_or.reduce([graph.masks[kind] for kind in method.learns_from])
        members = np.flatnonzero(learned_from & labelled)
        rest = np.random.default_rng([0x4A, seed]).permutation(np.flatnonzero(~learned_from & labelled))
        if len(members) < 2 or len(rest) < 6:
            raise InputError(f"{len(members)} members and {len(rest)} other labelled nodes: too few for a shadow model")
        third = len(rest) // 3
        cuts = (members, rest[:third], rest[third : 2 * third], rest[2 * third :])
        parts = dict(zip(PARTS, cuts, strict=True))
        worlds = {"target": graph, "shadow": member_world(graph, parts["shadow members"], seed)}
        trained = {"target": target, "shadow": method.fit(worlds["shadow"], promise, seed=seed + 1)}
        return self._attack(graph, trained, worlds, parts, seed)

    def _attack(
        self,
        graph: Graph,
        trained: Mapping[str, Any],
        worlds: Mapping[str, Graph],
        parts: Mapping[str, np.ndarray],
        seed: int,
    ) -> AttackResult:
        cases = {side: _cases(worlds[side], parts[f"{side} members"], parts[f"{side} others"]) for side in trained}
        asked, at_home = {}, {}
        for side, model in trained.items():
            asked[side] = observe(*on_full_graph(model, graph, worlds[side], seed), graph.labels)
            at_home[side] = observe(*queried(model, worlds[side]), graph.labels)
        truth = cases["target"][1]

        def guess(members: Mapping[str, np.ndarray]) -> np.ndarray:
            rows = {s: np.where(cases[s][1][:, None], members[s][cases[s][0]], asked[s][cases[s][0]]) for s in cases}
            fitted = AttackModel(self.model, self.epochs).fit(rows["shadow"], cases["shadow"][1], seed)
            return fitted.score(rows["target"])

        loss = -asked["target"][cases["target"][0], -3]
        options = {"seed": seed, "delta": delta_of(trained["target"])}
        return AttackResult(
            "membership",
            (
                Finding.of(SAME_GRAPH, truth, guess(asked), threshold=0.5, **options),
                Finding.of(PUBLISHED, truth, guess(at_home), threshold=0.5, **options),
            ),
            (Finding.of("loss of the true label, no shadow", truth, loss, **options),),
            f"{int(truth.sum())} members and {int((~truth).sum())} others, asked on the full graph",
            "answers for every node, true labels, a sample of the same graph to train a shadow on",
            {part.replace(" ", "_"): len(nodes) for part, nodes in parts.items()},
            (BOUND_NOTE,),
        )


def on_full_graph(model: Any, graph: Graph, world: Graph, seed: int) -> tuple[Any, Any]:
    """What is asked about the full graph, if the model learned from ``world``."""
    if not has_gnn_api(model):
        return model, graph
    check_order(model, graph)
    api = model.gnn_api()
    return api, api.reported(graph, FRESH + seed, world.rows.occupied().numpy())


def split_parts(graph: Graph, seed: int) -> dict[str, np.ndarray]:
    """Four random parts of equal size of the labelled nodes."""
    labelled = np.flatnonzero(graph.labels != UNLABELLED)
    if len(labelled) < 4 * 5:
        raise InputError(f"membership inference needs at least 20 labelled nodes, the graph has {len(labelled)}")
    order = np.random.default_rng([0x3E3B, seed]).permutation(labelled)
    quarter = len(order) // 4
    return {part: order[i * quarter : (i + 1) * quarter] for i, part in enumerate(PARTS)}


def member_world(graph: Graph, members: np.ndarray, seed: int) -> Graph:
    """The graph in which all but the members are blank; a tenth of the members are calibration nodes."""
    member = np.zeros(graph.nodes, dtype=bool)
    member[members] = True
    chosen = np.random.default_rng([0xCA1, seed]).permutation(members)[: int(CALIBRATION * len(members))]
    calibration = np.zeros(graph.nodes, dtype=bool)
    calibration[chosen] = True
    masks = {"train": member & ~calibration, "calibration": calibration, "query": ~member}
    return replace(blanked(graph, ~member), masks=masks)


def _cases(world: Graph, members: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes of the game and whether they trained the model."""
    members = members[world.masks["train"][members]]
    others = others[: len(members)]
    return np.concatenate([members, others]), np.repeat([True, False], [len(members), len(others)])


def observe(target: Any, data: Any, labels: np.ndarray) -> np.ndarray:
    """What the attacker sees of every node: sorted probabilities, then loss, entropy and margin."""
    answers = posteriors(target, data)
    logs = np.log(np.maximum(answers, TINY))
    ordered = -np.sort(-answers, axis=1)
    loss = -logs[np.arange(len(answers)), np.maximum(labels, 0)]
    entropy = -(answers * logs).sum(axis=1)
    margin = ordered[:, 0] - ordered[:, 1] if ordered.shape[1] > 1 else ordered[:, 0]
    return np.column_stack([ordered, loss, entropy, margin])
