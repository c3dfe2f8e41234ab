"""Exact probability ratios of local randomizers: the largest log-ratio over records that differ in one unit, and over reports.

Small alphabets are enumerated whole. Where a report is a vector of many values, the reports tried are the records' own draws
and the extreme ones; their densities are exact, so every ratio found is a true lower bound on epsilon, and by the lemma of each
randomizer the bound is attained there. A second check (``draw_laws.py``) compares the draws with the stated
probabilities: without it a sampler could differ from its density. Tests: ``tests/audit/test_exact_ratios.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import Any

import numpy as np

from graphveil.audit.local.draw_laws import DRAWS, FEWER, draw, follows_marginals, follows_masses, follows_ratios
from graphveil.exchange import randomizers
from graphveil.exchange.randomizers.base import Contacts, Randomizer
from graphveil.privacy.local import Part
from graphveil.privacy.noise import Array, Noise

DrawnBy = Callable[[tuple[Any, Any], int], tuple[Sequence[Any], Sequence[Any]]]  # so many reports of either record
TRIED = 60  # draws per record that are tried as reports where the alphabet is too large


@dataclass(frozen=True)
class Domain:
    """Records, which pairs of them differ in one unit, and reports to compare them at; ``whole``: these are all reports."""

    records: Sequence[Any]
    pairs: Sequence[tuple[int, int]]
    reports: Sequence[Any]
    whole: bool

    @classmethod
    def of_any_two(cls, records: Sequence[Any], reports: Sequence[Any], whole: bool) -> Domain:
        """Records of which any two are neighbours."""
        return cls(records, list(permutations(range(len(records)), 2)), reports, whole)


@dataclass(frozen=True)
class Ratio:
    """The worst ratio of one round, where it was found, and whether draws follow the stated probabilities."""

    epsilon: float
    infinite_pairs: int
    pairs: int
    whole: bool
    honest: bool


def log_densities(
    randomizer: Randomizer, records: Sequence[Any], reports: Sequence[Any], broadcast: Any = None
) -> np.ndarray:
    """One row per record, one column per report."""
    return np.array([[randomizer.log_density(record, r, broadcast) for r in reports] for record in records])


def audit_randomizer(
    randomizer: Randomizer,
    part: Part,
    classes: int,
    slots: int,
    broadcast: Any,
    noise: Noise,
    drawn_by: DrawnBy | None = None,
) -> Ratio:
    """The worst ratio of a randomizer over a domain that fits it, and whether draws follow its density: its own, or those of a
    client that is said to use it."""
    domain = domain_of(randomizer, part, classes, slots, broadcast, noise)
    densities = log_densities(randomizer, domain.records, domain.reports, broadcast)
    with np.errstate(invalid="ignore"):
        ratios = np.array([densities[a] - densities[b] for a, b in domain.pairs])
    largest = np.nanmax(np.where(np.isnan(ratios), -np.inf, ratios), axis=1)
    pair = domain.pairs[int(np.argmax(largest))]
    honest = draws_follow_density(randomizer, domain, pair, densities, randomizer.cost, broadcast, noise, drawn_by)
    return Ratio(max(float(largest.max()), 0.0), int(np.isinf(largest).sum()), len(domain.pairs), domain.whole, honest)


def draws_follow_density(
    randomizer: Randomizer,
    domain: Domain,
    pair: tuple[int, int],
    densities: Array,
    bound: float,
    broadcast: Any,
    noise: Noise,
    drawn_by: DrawnBy | None = None,
) -> bool:
    """Whether both records of a pair are reported as stated (``draw_laws.py``): two or four checks of error ``RATE`` each."""
    one, other = (domain.records[number] for number in pair)
    draws = DRAWS if domain.whole else FEWER
    if drawn_by is None:
        first, second = (draw(randomizer, record, draws, broadcast, noise) for record in (one, other))
    else:
        first, second = (list(reports) for reports in drawn_by((one, other), draws))
    if len(first) != draws or len(second) != draws:
        return False
    if domain.whole:
        stated = zip((first, second), pair, strict=True)
        return all(follows_masses(drawn, domain.reports, densities[number]) for drawn, number in stated)
    return (
        follows_marginals(randomizer, one, broadcast, first, noise)
        and follows_marginals(randomizer, other, broadcast, second, noise)
        and follows_ratios(randomizer, one, other, bound, broadcast, (first, second))
        and follows_ratios(randomizer, other, one, bound, broadcast, (second, first))
    )


def domain_of(randomizer: Randomizer, part: Part, classes: int, slots: int, broadcast: Any, noise: Noise) -> Domain:
    """Records and reports that suit the randomizer; unknown ones are compared at their own draws."""
    if part is Part.LABELS:
        return Domain.of_any_two(range(classes), range(classes), whole=True)
    if part is Part.FEATURES:
        return _rows_domain(randomizer, broadcast, noise)
    if isinstance(randomizer, (randomizers.BucketResponse, randomizers.NeighbourReplacement)):
        chosen = list(range(slots)) if slots <= 16 else list(np.linspace(0, slots - 1, 12).astype(int))
        return Domain.of_any_two(chosen, range(slots), whole=True)
    return _lists_domain(randomizer, slots, broadcast, noise)


def _rows_domain(randomizer: Randomizer, broadcast: Any, noise: Noise) -> Domain:
    """Corners of the range: the worst records of every mechanism that treats attributes alike."""
    width = int(getattr(randomizer, "width"))  # noqa: B009
    lower, upper = float(getattr(randomizer, "lower", -1.0)), float(getattr(randomizer, "upper", 1.0))
    low, high = np.full(width, lower), np.full(width, upper)
    mixed = np.where(np.arange(width) % 2 == 0, lower, upper)
    records = [low, high, mixed, low + high - mixed, (low + high) / 2, np.zeros(width)]
    if isinstance(randomizer, randomizers.MultiBit) and width <= 8:
        signs = product((-1.0, 0.0, 1.0), repeat=width)
        reports = [np.array(r) for r in signs if np.count_nonzero(r) == randomizer.m]
        return Domain.of_any_two(records, reports, whole=True)
    reports = [report for record in records for report in draw(randomizer, record, TRIED, broadcast, noise)]
    if isinstance(randomizer, randomizers.LaplaceRows):
        reports += [high + 100 * randomizer.scale, low - 100 * randomizer.scale]
    return Domain.of_any_two(records, reports, whole=False)


def _lists_domain(randomizer: Randomizer, slots: int, broadcast: Any, noise: Noise) -> Domain:
    """Lists of three contacts of which one is exchanged."""
    rng = np.random.default_rng(0)
    records: list[np.ndarray] = []
    for _ in range(12):
        chosen = rng.permutation(slots)[:4]
        records += [np.sort(chosen[:3]), np.sort(chosen[[0, 1, 3]])]
    pairs = [pair for n in range(0, len(records), 2) for pair in ((n, n + 1), (n + 1, n))]
    reports = [report for record in records for report in draw(randomizer, record, 10, broadcast, noise)]
    if isinstance(randomizer, randomizers.EdgeListResponse):
        reports += records
    if isinstance(randomizer, randomizers.LabelHistogram):
        far = 100 * randomizer.scale
        reports += [far * (np.arange(randomizer.bins) == one) - far * (np.arange(randomizer.bins) == other)
                    for one, other in permutations(range(randomizer.bins), 2)]  # fmt: skip
    return Domain(records, pairs, reports, whole=False)


def edge_domain(randomizer: Any, lists: Contacts) -> list[tuple[Any, Any]]:
    """For a mechanism that reads everybody's lists: itself with all lists, and without one edge, for every edge."""
    found = []
    owners, targets = lists.owners, lists.targets
    for low, high in {(min(a, b), max(a, b)) for a, b in zip(owners.tolist(), targets.tolist(), strict=True)}:
        gone = ((owners == low) & (targets == high)) | ((owners == high) & (targets == low))
        found.append((replace(randomizer, lists=lists), replace(randomizer, lists=lists.where(~gone))))
    return found
