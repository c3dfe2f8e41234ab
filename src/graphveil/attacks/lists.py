"""Whom does a person list? Reconstructed from one prediction that reads the person's own contact list.

A model that scores people with their own lists (``roster``) publishes a code for every slot. Whoever has the release, a person's
features and that person's prediction knows what the list added: log-probabilities with the list minus those without it. For a
list of one entry that is the code of one slot, and the nearest code names it.

1. Ask with empty lists: what the features alone say.
2. Ask with lists in which i names only i + 1: what every slot adds to whoever lists it, and nobody else.
3. A victim's answer minus 1 is compared with all of 2; the nearest slot is the guess.

The same is tried with what is shown to everybody (``access="charge"``), where there is such a thing: there nothing but noise
must be found. A target whose predictions read no own list adds nothing in step 2. Tests: ``tests/attacks/test_lists.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphveil.attacks.metrics import AttackResult, Finding
from graphveil.attacks.target import TINY, as_graph, delta_of, posteriors
from graphveil.errors import GraphveilError, InputError
from graphveil.graph import Graph, Lists
from graphveil.progress import Progress, silent

VICTIMS = 300
NOTE = "a prediction that reads the own list is for that person alone: no epsilon covers it before others, none is bounded here"
BLIND = "predictions do not change with the own list: there is nothing to reconstruct"


@dataclass(frozen=True)
class ListReconstruction:
    """Guess the one entry of up to ``victims`` people whose own list has one entry."""

    victims: int = VICTIMS

    def run(self, target: Any, data: Any, *, seed: int = 0, progress: Progress = silent) -> AttackResult:
        """Attack the predictions of the people in ``data``, each given to somebody else than its owner."""
        graph = as_graph(data)
        coins = np.random.default_rng([0x115, seed])
        alone = np.flatnonzero(graph.lists.out_degrees == 1)
        if not len(alone) or graph.nodes < 3:
            raise InputError("nobody's list has exactly one entry: this attack has no victims in these data")
        victims = np.sort(coins.permutation(alone)[: self.victims])
        truth = graph.lists.of(victims).entries.astype(np.int64)
        progress("queries", 0, 3)
        bare = answers(target, graph.without_lists())
        progress("queries", 1, 3)
        everybody = np.arange(graph.nodes)
        circle = Lists.from_edge_index(np.stack([everybody, np.roll(everybody, -1)]), graph.nodes)
        added = np.roll(answers(target, replace(graph, lists=circle)) - bare, 1, axis=0)
        progress("queries", 2, 3)
        seen = answers(target, graph)[victims] - bare[victims]
        progress("queries", 3, 3)
        reads = bool(np.abs(added).max() > 1e-12)
        others = (truth + coins.integers(1, graph.nodes - 1, len(truth))) % graph.nodes
        cases = np.repeat([True, False], len(victims))

        def found(name: str, rows: np.ndarray) -> tuple[Finding, float]:
            far = np.concatenate([np.linalg.norm(rows - added[slots], axis=1) for slots in (truth, others)])
            finding = Finding.of(name, cases, -far, seed=seed, delta=delta_of(target))
            return finding, recovered(rows, added, truth) if reads else 0.0

        finding, share = found("own-row predictions", seen)
        findings, facts = [finding], {"victims": len(victims), "recovered": share, "recovered_from_published": None}
        shown = published(target, graph)
        if shown is not None:
            finding, share = found("published predictions", shown[victims] - bare[victims])
            findings.append(finding)
            facts["recovered_from_published"] = share
        return AttackResult(
            "lists",
            tuple(findings),
            (),
            f"{len(victims)} people whose own list has one entry: is it this slot, or a random other one? Whole lists "
            f"recovered, out of {graph.nodes} slots: {_told(facts)}",
            "everything released, the person's features, and that person's prediction",
            facts,
            (NOTE,) if reads else (BLIND, NOTE),
        )


def answers(target: Any, graph: Graph) -> np.ndarray:
    """Log-probabilities of everybody, centred: the logits up to what a softmax hides."""
    return _centred_logs(posteriors(target, graph))


def published(target: Any, graph: Graph) -> np.ndarray | None:
    """The same from what may be shown to anybody; None if nothing is."""
    try:
        return _centred_logs(target.predict_proba(graph, access="charge").numpy())
    except (GraphveilError, TypeError, AttributeError):
        return None


def recovered(rows: np.ndarray, added: np.ndarray, truth: np.ndarray) -> float:
    """The share of lists whose nearest slot is the true one and no other slot is as near."""
    right = 0
    for row, slot in zip(rows, truth, strict=True):
        far = np.linalg.norm(added - row, axis=1)
        right += int(np.argmin(far) == slot and np.count_nonzero(far <= far[slot] * (1 + 1e-9)) == 1)
    return right / len(truth)


def _centred_logs(probabilities: np.ndarray) -> np.ndarray:
    logs = np.log(np.maximum(np.asarray(probabilities, dtype=np.float64), TINY))
    return np.asarray(logs - logs.mean(axis=1, keepdims=True))


def _told(facts: dict[str, Any]) -> str:
    shown = facts["recovered_from_published"]
    more = "" if shown is None else f", from published predictions {100 * shown:.1f} %"
    return f"{100 * facts['recovered']:.1f} %{more}"
