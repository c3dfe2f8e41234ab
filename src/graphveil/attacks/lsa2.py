"""LSA2, link stealing from posteriors without training (He, Jia, Backes, Gong and Zhang, USENIX Security 2021, attack 2).

Joined nodes get similar predictions. The score of a pair is minus a distance of the two posteriors; the sign is fixed in
advance. Equal predictions are also what equal labels give, so the figure is read beside the same method trained without
edges (``reference``): only the difference is what the edges leak.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphveil.attacks.metrics import BOUND_NOTE, AttackResult, Finding
from graphveil.attacks.pairs import Pairs, controls
from graphveil.attacks.target import Knowledge, as_graph, delta_of, posteriors, queried
from graphveil.errors import InputError

BLOCK = 4096  # pairs whose attributes are held densely at once
REFERENCE = "same method without edges"


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """above / below, and 0 where there is nothing to divide by."""
    return np.asarray(np.divide(above, below, out=np.zeros_like(above), where=below > 0))


def _cosine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return 1 - _ratio(np.einsum("ij,ij->i", a, b), np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))


def _centred(a: np.ndarray) -> np.ndarray:
    return np.asarray(a - a.mean(axis=1, keepdims=True))


Distance = Callable[[np.ndarray, np.ndarray], np.ndarray]
DISTANCES: dict[str, Distance] = {
    "correlation": lambda a, b: _cosine(_centred(a), _centred(b)),
    "cosine": _cosine,
    "euclidean": lambda a, b: np.linalg.norm(a - b, axis=1),
    "chebyshev": lambda a, b: np.abs(a - b).max(axis=1, initial=0.0),
    "braycurtis": lambda a, b: _ratio(np.abs(a - b).sum(axis=1), np.abs(a + b).sum(axis=1)),
    "canberra": lambda a, b: _ratio(np.abs(a - b), np.abs(a) + np.abs(b)).sum(axis=1),
    "cityblock": lambda a, b: np.abs(a - b).sum(axis=1),
    "sqeuclidean": lambda a, b: np.square(a - b).sum(axis=1),
}
ATTRIBUTE_DISTANCES = ("cosine", "euclidean")


@dataclass(frozen=True)
class Lsa2:
    """Distances of posteriors and of attributes; ``distance`` is the headline, all of :data:`DISTANCES` are reported."""

    distance: str = "correlation"

    def run(
        self,
        target: Any,
        data: Any,
        pairs: Pairs,
        *,
        reference: np.ndarray | None = None,
        knowledge: Knowledge | None = None,
        seed: int = 0,
    ) -> AttackResult:
        """Attack the pairs; ``reference`` are posteriors of the same method trained without edges."""
        if self.distance not in DISTANCES:
            raise InputError(f"unknown distance {self.distance!r}; known are: {', '.join(DISTANCES)}")
        target, data = queried(target, data)
        graph = as_graph(data)
        known = knowledge or Knowledge.of(graph, target=target)
        known.check(pairs.nodes)
        answers = posteriors(target, data)

        def found(name: str, score: np.ndarray) -> Finding:
            return Finding.of(name, pairs.joined, score, seed=seed, delta=delta_of(target))

        names = (self.distance, *(name for name in DISTANCES if name != self.distance))
        findings = [found(name, -of_pairs(name, lambda nodes: answers[nodes], pairs)) for name in names]
        if graph.features:
            for name in ATTRIBUTE_DISTANCES:
                findings.append(found(f"attributes, {name}", -of_pairs(name, known.dense, pairs)))
        beside = [found(name, score) for name, score in controls(graph, pairs).items()]
        facts: dict[str, Any] = {"reference_auc": None, "auc_from_edges": None}
        if reference is not None:
            beside.append(found(REFERENCE, -of_pairs(self.distance, lambda nodes: reference[nodes], pairs)))
            without = beside[-1].figures["auc"]
            facts = {"reference_auc": without, "auc_from_edges": findings[0].figures["auc"] - without}
        note = "equal labels give equal predictions: only what exceeds the same method without edges is leaked by edges"
        return AttackResult(
            "lsa2",
            tuple(findings),
            tuple(beside),
            str(pairs),
            f"everybody's posteriors; {known}",
            facts,
            (note, BOUND_NOTE),
        )


def posteriors_without_edges(method: Any, promise: Any, data: Any, seed: int | None) -> np.ndarray:
    """What the same method says after it was trained on the same data with no edges: the reference of the attack."""
    bare = copy.copy(data)
    bare.edge_index = data.edge_index[:, :0]
    return posteriors(method.fit(bare, promise, seed=seed), bare)


def of_pairs(name: str, rows: Callable[[np.ndarray], np.ndarray], pairs: Pairs) -> np.ndarray:
    """The distance of every pair, in blocks."""
    blocks = [slice(start, start + BLOCK) for start in range(0, len(pairs), BLOCK)]
    return np.concatenate([DISTANCES[name](rows(pairs.first[one]), rows(pairs.second[one])) for one in blocks])
