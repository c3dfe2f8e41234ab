"""Whether a randomizer draws its reports with the probabilities it states: three kinds of check, each with a stated error.

*Masses.* Over a whole alphabet the count of every report is binomial. *Likelihood ratios.* Else, with w = P_a/P_b at reports of
b, E_b[w] = 1, w <= e^epsilon and E_b[w^2] = E_a[w] <= e^epsilon, so the variance is at most e^epsilon - 1 before anything is
drawn, and Bernstein's inequality says how far a mean may stray. (A sample's own standard error would be far too small here: the
few large weights that carry the mean are mostly missing from it.) At large epsilon that tolerance is wide. *Marginals* have power
at every epsilon: flipped bits are binomial per slot, Laplace noise is compared with its law per column (Kolmogorov and Smirnov),
windows, caps, buckets and their members are hit binomially. Every check calls a faithful sampler false with probability at most
``RATE``, whatever epsilon and however many columns: the comparisons of a check share its error. One randomizer meets at most four
checks.
Tests: ``tests/audit/test_draw_laws.py``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import binom, kstest, laplace

from graphveil.exchange.randomizers import (
    BucketResponse,
    Contacts,
    Direction,
    EdgeListResponse,
    MultiBit,
    Piecewise,
    Randomizer,
    Rest,
)
from graphveil.exchange.randomizers.laplace import AddsLaplace
from graphveil.privacy.noise import Noise
from graphveil.statistics.drawn import RATE, Array, binomial_p_values, plausible

DRAWS, FEWER = 4000, 1000
FLIPS, MOST_LISTS = 50, 100_000  # so many flipped bits are expected among the lists drawn, if that takes no more lists


def draw(randomizer: Randomizer, record: Any, draws: int, broadcast: Any, noise: Noise) -> list[Any]:
    """Independent reports of one record."""
    if np.ndim(record) == 0:
        return list(randomizer.randomize(np.full(draws, record), broadcast, noise))
    if isinstance(record, np.ndarray) and record.dtype == np.int64:
        reports = randomizer.randomize(Contacts.of([record] * draws), broadcast, noise)
        return [reports[number] for number in range(draws)]
    reports = randomizer.randomize(np.tile(record, (draws, 1)), broadcast, noise)
    return list(reports.toarray() if sp.issparse(reports) else reports)


def follows_masses(drawn: Sequence[Any], reports: Sequence[Any], log_masses: Array) -> bool:
    """Masses add up to one, nothing else is drawn, and every report is as frequent as stated."""
    masses = np.exp(log_masses)
    place = {_key(report): number for number, report in enumerate(reports)}
    seen = [place.get(_key(report), -1) for report in drawn]
    if -1 in seen or abs(masses.sum() - 1) > 1e-9:
        return False
    return plausible(binomial_p_values(np.bincount(seen, minlength=len(place)), len(drawn), np.minimum(masses, 1.0)))


def follows_ratios(
    randomizer: Randomizer,
    one: Any,
    other: Any,
    bound: float,
    broadcast: Any,
    drawn: tuple[Sequence[Any], Sequence[Any]],
) -> bool:
    """``E_b[exp(log-ratio of a to b)] = 1`` within :func:`bernstein` for log-ratios of at most ``bound``; draws of a and of b."""
    ratios = np.array([randomizer.log_ratio(one, other, report, broadcast) for report in drawn[1]])
    if np.isnan(ratios).any() or np.isposinf(ratios).any():
        return False  # it drew what it says it cannot
    back = [randomizer.log_density(other, report, broadcast) for report in drawn[0][:200]]
    if np.isneginf(back).any() or math.isinf(bound):
        return True  # disjoint outputs: the identity does not apply, and the ratio is infinite anyway
    if ratios.max() > bound * (1 + 1e-9) + 1e-9:
        return False
    largest, draws = math.exp(bound), len(ratios)
    strayed = float(np.exp(ratios).mean()) - 1
    return -bernstein(largest - 1, 1.0, draws) <= strayed <= bernstein(largest - 1, largest - 1, draws)


def bernstein(variance: float, largest: float, draws: int, rate: float = RATE) -> float:
    """How far a mean of numbers that exceed their expectation by at most ``largest`` may do so, but with probability rate/2:

    t with n t^2/(2 (variance + largest t/3)) = log(2/rate).
    """
    log = math.log(2 / rate)
    linear = largest * log / (3 * draws)
    return linear + math.sqrt(linear**2 + 2 * variance * log / draws) + 1e-9


def follows_marginals(randomizer: Randomizer, record: Any, broadcast: Any, drawn: Sequence[Any], noise: Noise) -> bool:
    """The laws of parts of the report that are known in closed form; True for randomizers without any."""
    if isinstance(randomizer, EdgeListResponse):
        return plausible(_flips(randomizer, record, broadcast, noise))
    if isinstance(randomizer, BucketResponse) and np.ndim(record):
        return plausible(_members(randomizer, record, broadcast, np.array(drawn)))
    if isinstance(randomizer, AddsLaplace):
        return plausible(_laplace(randomizer, record, broadcast, np.array(drawn)))
    if isinstance(randomizer, (MultiBit, Piecewise)):
        return plausible(_sampled(randomizer, record, np.array(drawn)))
    if isinstance(randomizer, Direction):
        return plausible(_cap(randomizer, record, np.array(drawn)))
    return True


def _flips(randomizer: EdgeListResponse, record: Any, broadcast: Any, noise: Noise) -> Array:
    """Flipped bits per slot, over the contacts, and over the others: binomial."""
    slots, expected = randomizer.slots, randomizer.slots * randomizer.flip
    lists = min(max(FEWER, math.ceil(FLIPS / expected)), MOST_LISTS)
    clean = Contacts(np.arange(lists + 1) * len(record), np.tile(record, lists))
    reports = randomizer.randomize(clean, broadcast, noise)
    before, after = (found.owners * slots + found.targets for found in (clean, reports))
    counts = np.bincount(np.setxor1d(before, after, assume_unique=True) % slots, minlength=slots)
    contact = np.isin(np.arange(slots), record)
    sums = np.concatenate([counts, [counts[contact].sum(), counts[~contact].sum()]])
    trials = lists * np.concatenate([np.ones(slots), [contact.sum(), (~contact).sum()]])
    return binomial_p_values(sums, trials, randomizer.flip)


def _members(randomizer: BucketResponse, record: Any, broadcast: Any, lists: np.ndarray) -> Array:
    """How many reports fall into every bucket, a sum of two binomials: contacts of this bucket, and others. Within a bucket, how
    many name each of its members."""
    bucket_of, true = np.asarray(broadcast), np.asarray(record)
    named = np.bincount(lists.ravel(), minlength=len(bucket_of))
    sizes, own = (np.bincount(found, minlength=randomizer.buckets) for found in (bucket_of, bucket_of[true]))
    fell = np.bincount(bucket_of, named, minlength=randomizer.buckets).astype(np.int64)
    members = binomial_p_values(named, fell[bucket_of], 1 / sizes[bucket_of])
    kept, moved = randomizer.response.keep, randomizer.response.other
    found = []
    for seen, here in zip(fell, own, strict=True):
        stayed, came = len(lists) * here, len(lists) * (len(true) - here)
        masses = np.convolve(
            binom.pmf(np.arange(stayed + 1), stayed, kept), binom.pmf(np.arange(came + 1), came, moved)
        )
        found.append(2 * min(masses[: seen + 1].sum(), masses[seen:].sum()))
    return np.concatenate([members, np.minimum(found, 1.0)])


def _laplace(randomizer: AddsLaplace, record: Any, broadcast: Any, rows: Array) -> Array:
    """Report minus clean value: every column and all of them follow Laplace, and adjacent columns agree in sign half the time."""
    added = (rows - randomizer.clean(record, broadcast)[0]) / randomizer.scale
    columns = [added.ravel(), *added.T]
    laws = [float(kstest(column, laplace.cdf).pvalue) for column in columns]
    agree = ((added[:, 1:] > 0) == (added[:, :-1] > 0)).sum(axis=0)
    return np.concatenate([laws, binomial_p_values(agree, len(added), 0.5)])


def _sampled(randomizer: Any, record: Any, rows: Array) -> Array:
    """How often every attribute is chosen, and how often a chosen one shows +1 (MultiBit) or lies in its window (Piecewise)."""
    if isinstance(randomizer, Piecewise) and randomizer.rest is Rest.RAW:
        return np.empty(0)
    chosen, known = rows != 0, np.ones(rows.shape[1], dtype=bool)
    if isinstance(randomizer, MultiBit):
        hit, chance = rows > 0, randomizer.up(np.asarray(record, dtype=np.float64))
    else:
        law = randomizer.law
        place = randomizer.scaled(np.asarray(record, dtype=np.float64)) * law.reach
        middle = np.rint(place)
        hit, chance = np.abs(rows * law.scale - middle) < law.window / 2, np.full(len(middle), law.inside)
        known = np.abs(place - middle) < 1e-6  # between two grid points the window is drawn, too
    there = chosen.sum(axis=0)
    often = binomial_p_values(there, len(rows), randomizer.m / randomizer.width)
    found, same = np.unique(chance[known], return_inverse=True)
    hits, trials = (np.bincount(same, n[known], minlength=len(found)) for n in ((hit & chosen).sum(axis=0), there))
    return np.concatenate([often, binomial_p_values(hits, trials, found)])


def _cap(randomizer: Direction, record: Any, reports: Array) -> Array:
    """How often the released direction lies in the cap around the record's own."""
    own = randomizer.directions(np.asarray(record, dtype=np.float64))[0]
    if not own.any():
        return np.empty(0)
    weight = randomizer.cap / randomizer.reject
    chance = weight / (weight + 1 - randomizer.cap)
    return binomial_p_values((reports @ own >= randomizer.threshold).sum(), len(reports), chance)


def _key(report: Any) -> Any:
    return tuple(np.asarray(report).tolist()) if np.ndim(report) else int(report)
