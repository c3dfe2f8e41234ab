"""LinkTeller (Wu, Long, Zhang and Li, IEEE S&P 2022): joined nodes move each other's predictions.

The attacker may ask for predictions with changed features. The score of a pair (u, v) is how far u's prediction moves
when v's row is changed; in a message-passing network it is zero for nodes that are not within its reach and largest for
neighbours. A model whose inference reads no edges gives 0 for every pair: AUC 0.5.

    attack = LinkTeller()
    result = attack.run(model, data, sample_pairs(graph, "balanced", 500, seed=0))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphveil.attacks.influence import MAX_QUERIES, influence
from graphveil.attacks.knowledge import Knowledge
from graphveil.attacks.metrics import measure
from graphveil.attacks.pairs import Pairs, Sampling, controls
from graphveil.attacks.result import BOUND_NOTE, AttackResult, Finding
from graphveil.attacks.target import Perturbation, as_graph, with_rows
from graphveil.progress import Progress

BELIEFS = (0.25, 0.5, 1.0, 2.0, 4.0)  # times the true density, as published
FORMS = {
    "incremental": "exact influence by the incremental form (the numbers of one query per node, without the queries)",
    "own row": "no prediction moved when other rows changed: inference does not read the graph, influence 0",
    "grouped queries": "finite differences, nodes that cannot meet changed in one query",
    "queries": "finite differences, one query per node",
}


@dataclass(frozen=True)
class LinkTeller:
    """Influence of one node's features on another's prediction.

    Args:
        perturbation: how a queried row is changed.
        form: ``auto`` or ``queries`` (one query per node).
        max_queries: refuse a target that would have to be asked more often.
    """

    perturbation: Perturbation = Perturbation()  # noqa: RUF009 (frozen)
    form: str = "auto"
    max_queries: int = MAX_QUERIES

    def run(
        self,
        target: Any,
        data: Any,
        pairs: Pairs,
        knowledge: Knowledge | None = None,
        *,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> AttackResult:
        """Attack the pairs: the influence of each second node on the first.

        An attacker whose ``knowledge`` is of released rows asks with those instead of the clean ones.
        """
        graph = as_graph(data)
        known = knowledge or Knowledge.of(graph)
        known.check(pairs.nodes)
        asked = data if knowledge is None else with_rows(data, known.rows)
        found = influence(
            target,
            asked,
            pairs.first,
            pairs.second,
            self.perturbation,
            form=self.form,
            max_queries=self.max_queries,
            progress=progress,
        )
        facts = {"form": found.form, "queries": found.queries}
        if pairs.sampling is Sampling.DENSITY:
            facts["at_belief"] = at_beliefs(pairs.joined, found.values)
        return AttackResult(
            "link-teller",
            (Finding.of("influence", pairs.joined, found.values, seed=seed),),
            tuple(Finding.of(name, pairs.joined, score, seed=seed) for name, score in controls(graph, pairs).items()),
            str(pairs),
            f"{known}; answers to queries with changed attributes; the share of edges among the pairs",
            facts,
            (FORMS[found.form], BOUND_NOTE),
        )


def at_beliefs(joined: np.ndarray, score: np.ndarray) -> dict[str, dict[str, float]]:
    """Precision, recall and F1 if the attacker believes in a quarter to four times the true density."""
    found = {}
    for factor in BELIEFS:
        belief = factor * float(joined.mean())
        if belief < 1:
            figures = measure(joined, score, belief=belief, resamples=0)
            found[f"{factor:g}"] = {name: figures[name] for name in ("precision", "recall", "f1")}
    return found
