"""Link stealing from the attributes of both ends (LGA-PGNN's second attack): a classifier of pairs.

The attacker holds everybody's rows, clean or as reports of a local randomizer, and the answers for a share of the pairs; a
classifier trained on those guesses the rest. No model is queried. Pairs are unordered and appear once, so no pair is on both
sides of the split (with both orders of a pair mixed, known answers would be asked again).

==========================  ==================================
``concat``                  (x_u, x_v)
``plus``                    x_u + x_v
``multiply``                x_u * x_v (Hadamard product)
``average``                 (x_u + x_v)/2
``hadamard-difference``     (x_u * x_v, |x_u - x_v|)
==========================  ==================================

The cosine of the two rows, without any training, is reported as a control: a trained model also learns whose rows belong to
people with many edges, from the edges it was given, even if the rows are pure noise. Degree-matched pairs take most of that
away. ``plus`` and ``average`` differ by a factor that standardisation takes out again: they give equal figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphveil.attacks.lsa2 import of_pairs
from graphveil.attacks.metrics import BOUND_NOTE, AttackResult, Finding
from graphveil.attacks.models import AttackModel, Rows, guesses, split_cases
from graphveil.attacks.pairs import Pairs, controls
from graphveil.attacks.target import Knowledge, as_graph
from graphveil.errors import InputError
from graphveil.progress import Progress, silent

Combination = Callable[[np.ndarray, np.ndarray], np.ndarray]
COMBINATIONS: dict[str, Combination] = {
    "hadamard-difference": lambda a, b: np.hstack([a * b, np.abs(a - b)]),
    "concat": lambda a, b: np.hstack([a, b]),
    "plus": lambda a, b: a + b,
    "multiply": lambda a, b: a * b,
    "average": lambda a, b: (a + b) / 2,
}
KNOWN_SHARE = 0.7


@dataclass(frozen=True)
class LinkStealing:
    """A classifier of pairs for every combination of two rows and attack model; the first of each is the headline."""

    combinations: Sequence[str] = ("hadamard-difference",)
    models: Sequence[str] = ("mlp",)
    epochs: int = 8

    def run(
        self, data: Any, pairs: Pairs, knowledge: Knowledge | None = None, *, seed: int = 0, progress: Progress = silent
    ) -> AttackResult:
        """Learn from the share of pairs the attacker knows, guess the rest."""
        graph = as_graph(data)
        known = knowledge or Knowledge.of(graph, KNOWN_SHARE)
        known.check(pairs.nodes)
        unknown = [name for name in self.combinations if name not in COMBINATIONS]
        if unknown:
            raise InputError(f"unknown combination {unknown[0]!r}; known are: {', '.join(COMBINATIONS)}")
        if not known.edge_share:
            raise InputError("link stealing learns from edges: give the attacker a share of the answers (edge_share)")
        if not known.rows.shape[1]:
            raise InputError("the graph has no attributes: link stealing has nothing to compare")
        taught, asked = split_cases(pairs.joined, known.edge_share, seed)

        def rows(combine: Combination) -> Rows:
            return lambda cases: combine(known.dense(pairs.first[cases]), known.dense(pairs.second[cases]))

        variants = {
            f"{model}, {combination}": (AttackModel(model, self.epochs), rows(COMBINATIONS[combination]))
            for model in self.models
            for combination in self.combinations
        }
        findings = guesses(variants, pairs.joined, (taught, asked), seed, progress)
        alone = {"cosine, no training": -of_pairs("cosine", known.dense, pairs)}
        beside = tuple(
            Finding.of(name, pairs.joined[asked], score[asked], seed=seed)
            for name, score in (alone | controls(graph, pairs)).items()
        )
        return AttackResult(
            "link-stealing",
            findings,
            beside,
            f"{pairs}; {len(taught)} known, {len(asked)} guessed",
            str(known),
            {"known_pairs": len(taught), "guessed_pairs": len(asked), "rows": known.released or "clean"},
            ("decisions at the model's own threshold; no target model is queried", BOUND_NOTE),
        )
