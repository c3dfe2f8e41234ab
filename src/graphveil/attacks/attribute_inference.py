"""Attribute inference (LGA-PGNN's first attack): guess one hidden attribute from a person's other attributes.

The attacker holds the rows of everybody, clean or as reports of a local randomizer, and the true hidden attribute of a share
of the people; an attack model trained on those guesses it for the rest. No target model is queried. The hidden column is
taken out of the rows before they are released.

Baselines: ``random`` is a fair coin, ``random imputation`` (RI-MA) draws from the share among the people the attacker knows,
``feature propagation`` (FP-MA) averages the known values over the edges, 40 steps, with the known ones held fixed; the
last two are the imputation steps of those attacks, which without a target model are all there is of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from graphveil.attacks.metrics import BOUND_NOTE, AttackResult, Finding
from graphveil.attacks.models import AttackModel, guesses, split_cases
from graphveil.attacks.target import dense, released
from graphveil.errors import InputError
from graphveil.progress import Progress, silent

PROPAGATION_STEPS = 40


@dataclass(frozen=True, eq=False)
class HiddenAttribute:
    """The game: rows without the hidden column, the hidden Boolean column itself, and the arcs (for one baseline)."""

    rows: Any
    hidden: np.ndarray
    arcs: np.ndarray
    name: str
    released: str | None = None

    @classmethod
    def of(cls, data: Any, column: int | str) -> HiddenAttribute:
        """Hide a column of ``data.x``, by number or by its name in ``genre_names`` or ``feature_names``."""
        from graphveil.graph.layout import scipy_features

        rows = scipy_features(data).tocsc()
        number = _column(data, column, rows.shape[1])
        hidden = np.asarray(rows[:, number].toarray()).ravel() > 0
        if hidden.all() or not hidden.any():
            raise InputError(f"attribute {column} is the same for everybody: there is nothing to infer")
        others = np.delete(np.arange(rows.shape[1]), number)
        if not len(others):
            raise InputError("the graph has no other attribute to infer from")
        return cls(rows[:, others].tocsr(), hidden, data.edge_index.numpy(), str(column))

    def release(self, randomizer: Any, seed: int | None) -> HiddenAttribute:
        """The same game with everybody's report instead of the clean row."""
        reports, words = released(self.rows, randomizer, seed)
        return replace(self, rows=reports, released=words)


def _column(data: Any, column: int | str, width: int) -> int:
    names = next((list(data[key]) for key in ("genre_names", "feature_names") if data.get(key) is not None), [])
    if str(column) in names:
        return names.index(str(column))
    if str(column).isdigit() and int(column) < width:
        return int(column)
    from difflib import get_close_matches

    close = get_close_matches(str(column), names, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise InputError(f"there is no attribute {column!r}{hint} (give a name or a number in 0..{width - 1})")


@dataclass(frozen=True)
class AttributeInference:
    """Attack models and baselines on one hidden attribute, known of a share of the people; the first is the headline."""

    models: Sequence[str] = ("mlp",)
    known_share: float = 0.7
    epochs: int = 8

    def run(self, game: HiddenAttribute, *, seed: int = 0, progress: Progress = silent) -> AttackResult:
        """Learn from the known people, guess the others."""
        taught, asked = split_cases(game.hidden, self.known_share, seed)
        truth = game.hidden[asked]
        variants = {name: (AttackModel(name, self.epochs), lambda c: dense(game.rows[c])) for name in self.models}
        findings = guesses(variants, game.hidden, (taught, asked), seed, progress)
        coins = np.random.default_rng([0xA11, seed])
        share = float(game.hidden[taught].mean())

        def drawn(chance: float) -> np.ndarray:
            return (coins.random(len(asked)) < chance).astype(np.float64)

        spread = propagate(game, taught)[asked]
        baselines = (
            Finding.of("random", truth, drawn(0.5), threshold=0.5, seed=seed),
            Finding.of("random imputation", truth, drawn(share), threshold=0.5, seed=seed),
            Finding.of("feature propagation", truth, spread, belief=share, seed=seed),
        )
        clean = game.released or "clean"
        return AttackResult(
            "attribute-inference",
            findings,
            baselines,
            f"attribute {game.name!r} of {len(asked)} people, {100 * truth.mean():.1f} % have it",
            f"{game.rows.shape[1]} other attributes of everybody ({clean}), the answer of {len(taught)}",
            {"hidden": game.name, "share": float(truth.mean()), "known_people": len(taught), "rows": clean},
            ("no target model is queried", BOUND_NOTE),
        )


def propagate(game: HiddenAttribute, known: np.ndarray) -> np.ndarray:
    """Known values averaged over the edges again and again, the known ones reset every time."""
    nodes = len(game.hidden)
    start = np.full(nodes, game.hidden[known].mean())
    start[known] = game.hidden[known]
    senders, receivers = game.arcs
    counts = np.maximum(np.bincount(receivers, minlength=nodes), 1)
    alone = np.bincount(receivers, minlength=nodes) == 0
    matrix = sp.csr_matrix((1.0 / counts[receivers], (receivers, senders)), (nodes, nodes))
    values = start.copy()
    for _ in range(PROPAGATION_STEPS):
        values = np.where(alone, start, matrix @ values)
        values[known] = game.hidden[known]
    return values
