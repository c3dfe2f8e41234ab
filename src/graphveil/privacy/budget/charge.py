"""What one run costs every kind of record: losses, so that runs compose as mechanisms and not as added epsilons."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from graphveil.errors import InputError
from graphveil.privacy.accounting.loss import (
    Gdp,
    LaplaceLoss,
    Loss,
    Pure,
    SampledGaussian,
    Stated,
    Unbounded,
    Zcdp,
    amplified_epsilon,
    compose,
)
from graphveil.privacy.plan import Plan, Release

LOSSES: dict[str, type[Loss]] = {
    kind.__name__: kind for kind in (Gdp, Pure, LaplaceLoss, SampledGaussian, Zcdp, Stated, Unbounded)
}
Losses = tuple[Loss, ...]


@dataclass(frozen=True)
class Charge:
    """By kind of record, the composed losses of one run."""

    losses: Mapping[str, Losses]

    @classmethod
    def of_plan(cls, plan: Plan, delta: float) -> Charge:
        """What a run of this plan costs at most: of an adaptive one its whole mu, of one without a proof everything.

        A run in which slots take part by a secret coin is known by its (epsilon, delta) alone, taken at a tenth of ``delta``.
        """
        if not plan.provable or plan.gaps or not plan.promise.private:
            return cls(dict.fromkeys(plan.kinds, (Unbounded(),)))
        if plan.adaptive:
            return cls(dict.fromkeys(plan.kinds, (Gdp(plan.mu),)))
        return cls.of_releases(plan, (step for step in plan.steps if isinstance(step, Release)), delta)

    @classmethod
    def of_releases(cls, plan: Plan, releases: Iterable[Release], delta: float) -> Charge:
        """What these releases of a run have cost."""
        made = tuple(releases)
        paid = {kind: compose(release.loss(kind) for release in made) for kind in plan.kinds}
        if plan.sampled < 1:
            paid = {kind: losses and _amplified(losses, delta / 10, plan.sampled) for kind, losses in paid.items()}
        return cls(paid)

    @property
    def gaussian(self) -> bool:
        """Whether everything in it is Gaussian: then it composes exactly, also where later runs depend on earlier results."""
        return all(isinstance(loss, Gdp) for losses in self.losses.values() for loss in losses)

    def worst(self) -> tuple[Losses, ...]:
        """The kinds that may matter to somebody whose kind is not known: those that no other kind dominates."""
        known = list(dict.fromkeys(self.losses.values()))
        return tuple(one for one in known if not any(one != other and _dominates(other, one) for other in known))

    def to_json(self) -> dict[str, Any]:
        return {kind: [loss_to_json(loss) for loss in losses] for kind, losses in self.losses.items()}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Charge:
        return cls({kind: tuple(map(loss_from_json, losses)) for kind, losses in body.items()})


def _amplified(losses: Losses, delta: float, rate: float) -> Losses:
    epsilon = amplified_epsilon(losses, delta, rate)
    return (Stated(epsilon, delta),) if math.isfinite(epsilon) else (Unbounded(),)


def _dominates(one: Losses, other: Losses) -> bool:
    """Whether ``one`` surely costs at least as much: every loss of ``other`` has a larger one of its own there."""
    if any(isinstance(loss, Unbounded) for loss in one):
        return True
    unused = list(one)
    for small in sorted(other, key=_size, reverse=True):
        large = next((loss for loss in unused if _at_least(loss, small)), None)
        if large is None:
            return False
        unused.remove(large)
    return True


def _size(loss: Loss) -> float:
    return float(getattr(loss, next((field.name for field in fields(loss)), ""), math.inf))


def _at_least(large: Loss, small: Loss) -> bool:
    comparable = isinstance(large, (Gdp, Pure, LaplaceLoss, Zcdp)) and type(large) is type(small)
    return _size(large) >= _size(small) if comparable else large == small


def loss_to_json(loss: Loss) -> dict[str, Any]:
    return {"loss": type(loss).__name__, **asdict(loss)}


def loss_from_json(entry: Mapping[str, Any]) -> Loss:
    kind: Any = LOSSES.get(entry.get("loss", ""))
    if kind is None:
        raise InputError(f"unknown loss {entry.get('loss')!r} in the budget book; known: {', '.join(LOSSES)}")
    values = {field.name: entry[field.name] for field in fields(kind)}
    found: Loss = kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})
    return found
