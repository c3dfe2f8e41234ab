"""One notion of privacy and its total: what runs have cost anybody so far, and what is left.

*Filter.* A run is admitted if everything admitted so far and this run, composed, stay within (epsilon, delta). Gaussian losses
add up as mu^2, and that filter holds although later runs are chosen after looking at earlier results (Smith and Thakurta 2022,
Koskela et al. 2023; ``docs/privacy.md``). Other losses compose as privacy loss distributions: exact for runs whose parameters do
not depend on earlier results, which the book then says. An adaptive run is then charged all that it reserved: what one history
happened to spend bounds nothing outside the Gaussian filter.

*Who pays.* A person may be a training record in one run and a query record in the next, so "anybody" is the worst over all such
histories: of Gaussian runs the largest mu of each, else every combination of kinds that no other dominates, and where those are
too many the sum of all that any kind pays.
Tests: ``tests/privacy/test_budget.py``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from graphveil.privacy.accounting.loss import Gdp, Loss, compose, epsilon_of, gaussian_epsilon
from graphveil.privacy.budget.charge import Charge, Losses
from graphveil.privacy.facts import KINDS
from graphveil.privacy.plan import finite
from graphveil.privacy.promise import Adjacency, Level, Promise, Relation

HISTORIES = 256  # combinations of kinds that are tried one by one


@dataclass(frozen=True)
class Notion:
    """What changes between two neighbouring data sets: level, adjacency, relation and their numbers."""

    level: Level
    adjacency: Adjacency
    relation: Relation
    k: int | None = None
    max_degree: int | None = None

    @classmethod
    def of(cls, promise: Promise) -> Notion:
        return cls(promise.level, promise.adjacency, promise.relation, promise.k, promise.max_degree)

    def covers(self, other: Notion) -> bool:
        """Whether a guarantee under this notion is one under the other.

        Exchanging a record may exchange it for a blank one, so replace covers zero-out; k edges are also k + 1 at most, and who
        has at most D contacts has at most D + 1.
        """
        if self.relation is Relation.REPLACE and other.relation is Relation.ZERO_OUT:
            return replace(self, relation=Relation.ZERO_OUT).covers(other)
        same = replace(self, k=None, max_degree=None) == replace(other, k=None, max_degree=None)
        return same and (self.k or 0) >= (other.k or 0) and (self.max_degree or 0) >= (other.max_degree or 0)

    def __str__(self) -> str:
        numbers = [f"k = {self.k}"] if self.k else [f"at most {self.max_degree} contacts"] if self.max_degree else []
        return ", ".join([f"{self.level} / {self.adjacency} / {self.relation}", *numbers])


@dataclass(frozen=True)
class Account:
    """A promise to people over all runs, and the charges admitted under it; ``reserved``: what the same runs had reserved."""

    promise: Promise
    charges: tuple[Charge, ...] = ()
    reserved: tuple[Charge, ...] = ()

    @cached_property
    def notion(self) -> Notion:
        return Notion.of(self.promise)

    def with_charge(self, charge: Charge) -> Account:
        return replace(self, charges=(*self.charges, charge), reserved=(*(self.reserved or self.charges), charge))

    @cached_property
    def exact(self) -> bool:
        """Whether all charges are Gaussian, so that the filter needs no further assumption."""
        return all(charge.gaussian for charge in self.charges)

    @cached_property
    def counted(self) -> tuple[Charge, ...]:
        """What the runs count as: as settled within the Gaussian filter, else as reserved unless nothing was released."""
        if self.exact or not self.reserved:
            return self.charges
        return tuple(
            asked if any(made.losses.values()) else made
            for made, asked in zip(self.charges, self.reserved, strict=True)
        )

    @cached_property
    def spent(self) -> float:
        """Epsilon at the promised delta for whoever paid most."""
        return max((epsilon_of(losses, self.promise.target_delta) for losses in self._histories), default=0.0)

    @cached_property
    def spent_by_kind(self) -> dict[str, float]:
        """Epsilon of people who were of the same kind in all runs."""
        named = {kind for charge in self.counted for kind in charge.losses}
        kinds = [*(kind for kind in KINDS if kind in named), *sorted(named - set(KINDS))]
        return {
            kind: epsilon_of(
                itertools.chain(*(c.losses.get(kind, ()) for c in self.counted)), self.promise.target_delta
            )
            for kind in kinds
        }

    @property
    def kept(self) -> bool:
        """Whether the total is within the promise; rounding of the last digits is not held against it."""
        return self.spent <= self.promise.epsilon * (1 + 1e-12)

    @cached_property
    def left(self) -> float:
        """The largest epsilon of one more Gaussian run that would still be admitted; 0 if there is none."""
        if not self.kept or self.spent >= self.promise.epsilon:
            return 0.0
        delta, low, high = self.promise.target_delta, 0.0, 1.0

        def fits(mu: float) -> bool:
            return self.with_charge(Charge({"anybody": (Gdp(mu),)})).kept

        while fits(high) and high < 1e6:
            low, high = high, 2 * high
        for _ in range(60 if self.exact else 16):
            middle = (low + high) / 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return gaussian_epsilon(low, delta) if low else 0.0

    @cached_property
    def _histories(self) -> list[Losses]:
        """Losses of every course that may be the worst."""
        if self.exact:
            tops = [max((mu_of(losses) for losses in charge.losses.values()), default=0.0) for charge in self.charges]
            return [compose(Gdp(mu) for mu in tops)]
        worst = [charge.worst() or ((),) for charge in self.counted]
        if math.prod(len(kinds) for kinds in worst) <= HISTORIES:
            return list(dict.fromkeys(_joined(course) for course in itertools.product(*worst)))
        return [_joined([losses for kinds in worst for losses in kinds])]

    def to_json(self) -> dict[str, Any]:
        return {
            "promise": self.promise.to_json(),
            "runs": len(self.charges),
            "spent": finite(self.spent),
            "spent_by_kind": {kind: finite(value) for kind, value in self.spent_by_kind.items()},
            "left": self.left,
            "exact": self.exact,
        }


def _joined(course: Sequence[Losses]) -> tuple[Loss, ...]:
    return compose(itertools.chain(*course))


def mu_of(losses: Losses) -> float:
    """The Gaussian parameter of Gaussian losses."""
    return math.sqrt(sum(loss.mu**2 for loss in losses if isinstance(loss, Gdp)))
