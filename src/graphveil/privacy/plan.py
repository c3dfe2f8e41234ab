"""The list of noisy releases a method will make, fixed from public facts before any private value is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from graphveil.errors import PrivacyError
from graphveil.notebook import table
from graphveil.privacy.accounting.loss import Gdp, Loss, compose, gaussian_epsilon, gaussian_mu
from graphveil.privacy.facts import EDGE, KINDS, PublicFacts
from graphveil.privacy.mechanisms import DpGradient, Exact, Gaussian, Mechanism, mechanism_from_json, mechanism_to_json
from graphveil.privacy.promise import Adjacency, Promise

ROUND_FIELDS = ("part", "hears", "reporters")


def finite(value: float) -> float | None:
    """JSON has no infinity: null stands for it."""
    return value if math.isfinite(value) else None


def edge_kind(one: str, other: str) -> str:
    """The public class of an edge between nodes of these kinds, e.g. ``train-query edge``."""
    return "-".join(sorted((one, other), key=KINDS.index)) + f" {EDGE}"


@dataclass(frozen=True)
class Release:
    """One use of a mechanism on private data.

    ``sensitivity`` maps each kind of record to the worst change one such record can make to the clean value (for gradient
    steps: to the norm bound of its row). ``own_row_excluded``: row r of the released table is shown to r alone, so the
    sensitivity counts the other rows. ``lemma`` says why the number is right. A round of the local model is a release, too:
    ``part`` is the part of the record that its owner randomises, ``hears`` the public broadcast it reads, ``reporters`` how
    many people it asks.
    """

    name: str
    mechanism: Mechanism
    sensitivity: Mapping[str, float]
    lemma: str
    own_row_excluded: bool = False
    part: str = ""
    hears: str = ""
    reporters: int = 0

    @classmethod
    def gaussian(cls, name: str, mu: float, sensitivity: Mapping[str, float], dimension: int, lemma: str) -> Release:
        """The least Gaussian noise for which nobody pays more than mu; none at all if mu is infinite (epsilon = inf)."""
        worst = max(sensitivity.values())
        mechanism = Gaussian.for_mu(worst, mu, dimension) if math.isfinite(mu) else Exact()
        return cls(name, mechanism, sensitivity, lemma)

    def bound(self, kind: str) -> float:
        """The sensitivity for a record of this kind; ``edge`` stands for every public class of edges."""
        of_all = self.sensitivity.get(EDGE, 0.0) if kind.endswith(EDGE) else 0.0
        return self.sensitivity.get(kind, of_all)

    def loss(self, kind: str) -> Loss:
        return self.mechanism.loss(self.bound(kind))

    def to_json(self) -> dict[str, Any]:
        body = {
            "name": self.name,
            "mechanism": mechanism_to_json(self.mechanism),
            "sensitivity": {kind: finite(bound) for kind, bound in self.sensitivity.items()},
            "own_row_excluded": self.own_row_excluded,
            "lemma": self.lemma,
        }
        return body | ({key: getattr(self, key) for key in ROUND_FIELDS} if self.part else {})

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Release:
        sensitivity = {kind: math.inf if bound is None else bound for kind, bound in entry["sensitivity"].items()}
        about = {key: entry[key] for key in ROUND_FIELDS if key in entry}
        mechanism = mechanism_from_json(entry["mechanism"])
        return cls(entry["name"], mechanism, sensitivity, entry["lemma"], entry["own_row_excluded"], **about)


@dataclass(frozen=True)
class Slot:
    """An adaptive Gaussian release: its share of mu^2 is chosen at run time from earlier *released* values.

    ``steps > 0`` makes it a gradient session of so many full-batch steps; ``dimension`` is the public output size.
    ``query_labels``: the release reads the labels of query nodes (a noisy accuracy); no other release sees them.
    The share lies between ``min_share`` and ``max_share``: where both are equal it is fixed, and ``verify`` can tell it.
    """

    name: str
    sensitivity: Mapping[str, float]
    max_share: float
    dimension: int
    lemma: str
    steps: int = 0
    replaces: bool = False
    slack: float = 0.0
    query_labels: bool = False
    min_share: float = 0.0

    def release(self, mu: float) -> Release:
        """The release of the slot with which nobody pays more than mu; without noise if mu is infinite (epsilon = inf)."""
        worst = max(self.sensitivity.values())
        mechanism: Mechanism = Exact(max(self.steps, 1))
        if math.isfinite(mu) and self.steps:
            mechanism = DpGradient.for_mu(worst, mu, self.steps, self.dimension, self.replaces, self.slack)
        elif math.isfinite(mu):
            mechanism = Gaussian.for_mu(worst, mu, self.dimension)
        return Release(self.name, mechanism, self.sensitivity, self.lemma)

    def admits(self, share: float, tolerance: float = 1e-12) -> bool:
        """Whether this share of mu^2 is within the limits of the slot."""
        return 0 < share <= self.max_share * (1 + tolerance) and share >= self.min_share * (1 - tolerance)

    def with_noise_of(self, recorded: Release) -> Release:
        """The release of this slot at the noise of ``recorded``: all but the noise follows from the plan."""
        made, sigma = self.release(1.0), getattr(recorded.mechanism, "sigma", None)
        noisy: Any = made.mechanism
        return made if sigma is None else replace(made, mechanism=replace(noisy, sigma=sigma))

    def to_json(self) -> dict[str, Any]:
        return {
            "slot": self.name,
            **({"min_share": self.min_share} if self.min_share else {}),
            "max_share": self.max_share,
            "sensitivity": dict(self.sensitivity),
            "dimension": self.dimension,
            "steps": max(self.steps, 1),
            "lemma": self.lemma,
        }


@dataclass(frozen=True)
class Gap:
    """A known hole in a published guarantee: its code, what it is, and which conformance check exhibits it."""

    code: str
    text: str
    check: str
    release: str = ""

    def explains(self, check: str, release: str) -> bool:
        """Whether this check, failed at this release, is what the gap looks like."""
        return self.check == check and release.startswith(self.release)


@dataclass(frozen=True)
class Plan:
    """Promise, public facts and steps. ``claim`` is a paper's own epsilon where it differs from what can be proved.

    ``weaker`` names kinds of records whom the promise covers under another, weaker adjacency; certificates print it.
    ``implied`` holds further consequences of the same steps, by the sentence that names them. ``sampled``: each slot takes
    part in the whole run with this probability, by the curator's secret coins (``Curator.sample_slots``). ``corrected``: where
    no proof is left, the epsilon of the paper's own steps with those errors corrected that can be counted.
    """

    promise: Promise
    facts: PublicFacts
    steps: tuple[Release | Slot, ...]
    claim: float | None = None
    gaps: tuple[Gap, ...] = ()
    provable: bool = True
    weaker: Mapping[str, Adjacency] = field(default_factory=dict)
    implied: Mapping[str, float] = field(default_factory=dict)
    sampled: float = 1.0
    corrected: float | None = None

    def __post_init__(self) -> None:
        for step in self.steps:
            if isinstance(step, Release):
                self.promise.check_release(step)

    @property
    def adaptive(self) -> bool:
        return any(isinstance(step, Slot) for step in self.steps)

    @cached_property
    def mu(self) -> float:
        """The Gaussian budget of the promise; what adaptive slots share."""
        return gaussian_mu(self.promise.epsilon, self.promise.target_delta)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of records that pay."""
        return self.promise.payers(self.facts, (kind for step in self.steps for kind in step.sensitivity))

    def step(self, name: str) -> Release | Slot:
        for step in self.steps:
            if step.name == name:
                return step
        raise PrivacyError(f"the plan has no release named {name!r}; it has: {', '.join(s.name for s in self.steps)}")

    def release(self, name: str) -> Release:
        """The fixed release of this name."""
        step = self.step(name)
        if not isinstance(step, Release):
            raise PrivacyError(f"{name!r} is a slot: its share is chosen at run time")
        return step

    def epsilon(self, delta: float | None = None) -> float:
        """The epsilon of whoever pays most; for an adaptive plan the promise itself (the curator is a filter)."""
        promise = self.promise if delta is None else self.promise.at(delta)
        if self.adaptive:
            return gaussian_epsilon(self.mu, promise.target_delta)
        return promise.total(self.costs(tuple(step for step in self.steps if isinstance(step, Release)), promise))

    def noise_range(self, slot: Slot) -> tuple[float | None, float | None]:
        """The noise of an adaptive slot, from what it adds with its largest share to what it adds with its smallest.

        None: no finite value (epsilon = inf adds none; a slot without a smallest share may stay unused).
        """
        shares = (slot.max_share, slot.min_share)
        made = (slot.release(self.mu * math.sqrt(share)).mechanism if share else None for share in shares)
        least, most = (getattr(mechanism, "sigma", None) for mechanism in made)
        return least, most

    def costs(self, releases: Iterable[Release], promise: Promise | None = None) -> dict[str, float]:
        """What every kind of record pays for these releases."""
        asked, made = promise or self.promise, tuple(releases)
        return {k: asked.cost(k, (release.loss(k) for release in made), self.sampled) for k in self.kinds}

    def _repr_html_(self) -> str:
        rows = []
        for step in self.steps:
            least, most = self.noise_range(step) if isinstance(step, Slot) else (None, None)
            noise = (
                step.mechanism.words()
                if isinstance(step, Release)
                else noise_words(least, most, "adaptive Gaussian noise ")
            )
            rows.append(
                (step.name, noise, ", ".join(f"{kind} {bound:.4g}" for kind, bound in step.sensitivity.items()))
            )
        epsilon = self.epsilon() if self.provable else math.inf
        title = f"plan for {self.promise.guarantee}: epsilon {epsilon:.6g} at delta {self.promise.delta}"
        return table(title, rows, ("release", "noise", "sensitivity"))

    def to_json(self) -> dict[str, Any]:
        steps = [
            step.to_json() | ({"noise": self.noise_range(step)} if isinstance(step, Slot) else {})
            for step in self.steps
        ]
        epsilon = self.epsilon() if self.provable else math.inf
        return {
            "promise": self.promise.to_json(),
            "facts": self.facts.to_json(),
            "epsilon": finite(epsilon),
            "holds": not self.gaps and self.promise.kept(epsilon, 0.0),
            "weaker": dict(self.weaker),
            "epsilon_claimed": None if self.claim is None else finite(self.claim),
            "releases": steps,
            "gaps": list(dict.fromkeys(gap.code for gap in self.gaps)),
        }


def noise_words(least: float | None, most: float | None, before: str = "") -> str:
    """The noise of an adaptive slot, or of a release, in words; ``-`` where there is none."""
    if least is None:
        return "-"
    if most is None:
        return f"{before}{least:.4g} or more"
    return before + (f"{least:.5g}" if least == most else f"{least:.4g} to {most:.4g}")


def split_mu(promise: Promise, shares: Mapping[str, float]) -> dict[str, float]:
    """Gaussian parameters per release for shares of mu^2 that add up to at most 1; infinite ones for epsilon = inf."""
    total = sum(shares.values())
    if total > 1 + 1e-12 or min(shares.values(), default=1.0) < 0:
        raise PrivacyError(f"the shares {dict(shares)} of the budget must be non-negative and add up to at most 1")
    mu = gaussian_mu(promise.epsilon, promise.target_delta)
    return {name: mu * math.sqrt(share * (1 - 1e-14)) if share else 0.0 for name, share in shares.items()}


def calibrate_scale(epsilon_at: Callable[[float], float], target: float, start: float = 1.0) -> float:
    """The least noise scale z with ``epsilon_at(z) <= target``, to a relative 1e-4 and never above the target.

    ``epsilon_at`` decreases in z. The search is bracketed: it cannot end at a scale that was not seen to hold.
    """
    low, high = start, start
    while epsilon_at(high) > target:
        low, high = high, high * 2
        if high > 1e9:
            raise PrivacyError(f"no noise up to scale {high:g} reaches epsilon {target}; ask for a larger epsilon")
    while low == high or epsilon_at(low) <= target:
        high, low = low, low / 2
        if low < 1e-6:
            break
    while high / low > 1 + 1e-4:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if epsilon_at(middle) <= target else (middle, high)
    return high


def total_mu(losses: Iterable[Loss]) -> float | None:
    """The Gaussian parameter of a purely Gaussian composition, else None."""
    match compose(losses):
        case ():
            return 0.0
        case (Gdp(mu),):
            return mu
    return None
