"""Exact probability ratios of local randomizers: the largest log-ratio over records that differ in one unit, and over reports.

Small alphabets are enumerated whole. Where a report is a vector of many values, the reports tried are the records' own draws
and the extreme ones; their densities are exact, so every ratio found is a true lower bound on epsilon, and by the lemma of each
randomizer the bound is attained there. A second check (``draw_laws.py``) compares the draws with the stated
probabilities: without it a sampler could differ from its density.

Contacts are compared as *whole lists* of which one contact is exchanged. The contacts that stay are in the middle of the slots,
so the exchange moves them to other places of the list and an order that was kept shows. All reports are all lists of this length
in every order (what is never sent has probability 0), or all sets of slots. Where there are more than ``MOST`` of them, lists of
three are compared at drawn and extreme reports, and the evidence says that these are not all. Where the promise is about an entry
that comes or goes, whole lists from the empty one upwards are compared with the same lists and one entry more. (A mechanism that
reads everybody's lists is compared on lists of one: its ratio is infinite there already.)
Tests: ``tests/audit/test_exact_ratios.py``.
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
from graphveil.privacy.promise import Relation

DrawnBy = Callable[[tuple[Any, Any], int], tuple[Sequence[Any], Sequence[Any]]]  # so many reports of either record
TRIED = 60  # draws per record that are tried as reports where the alphabet is too large
MOST = 2000  # reports on whole lists that are tried one by one
CONTACTS, EXCHANGED = 3, 12  # in a list, and slots that take turns in one place of it


@dataclass(frozen=True)
class Domain:
    """Records, which pairs of them differ in one ``unit``, and reports to compare them at; ``whole``: these are all reports."""

    records: Sequence[Any]
    pairs: Sequence[tuple[int, int]]
    reports: Sequence[Any]
    whole: bool
    unit: str = "any two records"

    @classmethod
    def of_any_two(
        cls, records: Sequence[Any], reports: Sequence[Any], whole: bool, unit: str = "any two records"
    ) -> Domain:
        """Records of which any two are neighbours."""
        return cls(records, list(permutations(range(len(records)), 2)), reports, whole, unit)


@dataclass(frozen=True)
class Ratio:
    """The worst ratio of one round, where it was found, and whether draws follow the stated probabilities."""

    epsilon: float
    infinite_pairs: int
    pairs: int
    whole: bool
    honest: bool
    unit: str


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
    worst, infinite = max(float(largest.max()), 0.0), int(np.isinf(largest).sum())
    return Ratio(worst, infinite, len(domain.pairs), domain.whole, honest, domain.unit)


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
    """Whether both records of a pair are reported as stated (``draw_laws.py``): four checks of error ``RATE`` each."""
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
        follows = all(follows_masses(drawn, domain.reports, densities[number]) for drawn, number in stated)
    else:
        there, back = (one, other, (first, second)), (other, one, (second, first))
        follows = all(follows_ratios(randomizer, a, b, bound, broadcast, drawn) for a, b, drawn in (there, back))
    return follows and all(
        follows_marginals(randomizer, record, broadcast, drawn, noise)
        for record, drawn in ((one, first), (other, second))
    )


def domain_of(randomizer: Randomizer, part: Part, classes: int, slots: int, broadcast: Any, noise: Noise) -> Domain:
    """Records and reports that suit the randomizer; unknown ones are compared at their own draws."""
    if part is Part.LABELS:
        return Domain.of_any_two(range(classes), range(classes), whole=True)
    if part is Part.FEATURES:
        return _rows_domain(randomizer, broadcast, noise)
    if isinstance(randomizer, randomizers.NeighbourReplacement):
        return Domain.of_any_two(_spread(slots), range(slots), True, "the contact of a list of one exchanged")
    for length in range(min(CONTACTS, slots - 1), 0, -1):
        reports = _all_reports(randomizer, slots, length)
        if reports is not None:
            return _whole_lists_domain(slots, length, reports)
    return _lists_domain(randomizer, slots, broadcast, noise)


def _spread(slots: int) -> list[int]:
    """All slots, or as many as are exchanged, from the first to the last."""
    return [int(slot) for slot in np.unique(np.linspace(0, slots - 1, min(slots, EXCHANGED)).round())]


def _all_reports(randomizer: Randomizer, slots: int, length: int) -> list[np.ndarray] | None:
    """Everything that can be sent for a list of this length, in every order; None if that is too much or not a finite set.

    Only lists of two and more have an order.
    """
    if isinstance(randomizer, randomizers.BucketResponse) and slots**length <= MOST and length > 1:
        return [np.array(report) for report in product(range(slots), repeat=length)]
    if isinstance(randomizer, randomizers.EdgeListResponse) and 2**slots <= MOST:
        return [np.flatnonzero(bits) for bits in product((False, True), repeat=slots)]
    return None


def _whole_lists_domain(slots: int, length: int, reports: list[np.ndarray]) -> Domain:
    """One contact of a list takes many values; those that stay are the slots in the middle."""
    first = (slots - length + 1) // 2
    stay = np.arange(first, first + length - 1)
    records = [np.sort(np.append(stay, slot)) for slot in _spread(slots) if slot not in stay]
    return Domain.of_any_two(records, reports, True, f"one contact exchanged in lists of {length}")


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
    """Lists of three contacts of which one is exchanged, at random, and reports that are drawn or extreme.

    Under zero-out: lists of up to three contacts, and the same with one more.
    """
    rng = np.random.default_rng(0)
    grows = randomizer.entry_relation is Relation.ZERO_OUT
    records: list[np.ndarray] = []
    for number in range(12):
        chosen = rng.permutation(slots)[: number % (CONTACTS + 1) + 1 if grows else CONTACTS + 1]
        records += [np.sort(chosen[:-1]), np.sort(chosen if grows else np.delete(chosen, -2))]
    pairs = [pair for n in range(0, len(records), 2) for pair in ((n, n + 1), (n + 1, n))]
    reports = [report for record in records for report in draw(randomizer, record, 10, broadcast, noise)]
    if isinstance(randomizer, randomizers.EdgeListResponse):
        reports += records
    if isinstance(randomizer, randomizers.BucketResponse):
        reports += [np.full(len(record), contact) for record in records for contact in record]
    if isinstance(randomizer, randomizers.LabelHistogram):
        far = 100 * randomizer.scale
        reports += [far * (np.arange(randomizer.bins) == one) - far * (np.arange(randomizer.bins) == other)
                    for one, other in permutations(range(randomizer.bins), 2)]  # fmt: skip
    change = f"added or removed in lists of up to {CONTACTS + 1}" if grows else f"exchanged in lists of {CONTACTS}"
    return Domain(records, pairs, reports, False, f"one contact {change}")


def edge_domain(randomizer: Any, lists: Contacts) -> list[tuple[Any, Any]]:
    """For a mechanism that reads everybody's lists: itself with all lists, and without one edge, for every edge."""
    found = []
    owners, targets = lists.owners, lists.targets
    for low, high in {(min(a, b), max(a, b)) for a, b in zip(owners.tolist(), targets.tolist(), strict=True)}:
        gone = ((owners == low) & (targets == high)) | ((owners == high) & (targets == low))
        found.append((replace(randomizer, lists=lists), replace(randomizer, lists=lists.where(~gone))))
    return found
