"""Exact ratios over whole alphabets, and samplers that do not follow their density."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from graphveil.audit.local.exact_ratios import audit_randomizer, edge_domain
from graphveil.exchange.randomizers import (
    BucketResponse,
    Contacts,
    Direction,
    EdgeListResponse,
    LabelHistogram,
    LabelResponse,
    LaplaceRows,
    MultiBit,
    Piecewise,
    Rest,
)
from graphveil.privacy.local import Part
from graphveil.privacy.noise import Noise
from tests.audit.mutants.late import reports_in_the_order_of_contacts

BUCKETS = np.arange(9) % 3
CASES = [
    (LabelResponse(1.3, 3), Part.LABELS, None),
    (MultiBit(5.0, 4), Part.FEATURES, None),
    (Piecewise(2.0, 4), Part.FEATURES, None),
    (LaplaceRows(2.0, 3), Part.FEATURES, None),
    (Direction(2.0, 4, None), Part.FEATURES, None),
    (BucketResponse(1.0, 3), Part.EDGES, BUCKETS),
    (LabelHistogram(1.0, 3), Part.EDGES, BUCKETS),
    (LabelHistogram(1.0, 3, "hidden", "zero-out"), Part.EDGES, BUCKETS),
    (EdgeListResponse(1.0, 9), Part.EDGES, None),
]


@pytest.mark.parametrize(("randomizer", "part", "broadcast"), CASES, ids=lambda value: type(value).__name__)
def test_the_worst_ratio_is_the_declared_epsilon(randomizer, part, broadcast):
    found = audit_randomizer(randomizer, part, 3, 9, broadcast, Noise(1))
    declared = randomizer.cost
    assert 0.99 * declared <= found.epsilon <= declared + 1e-9
    assert found.honest and found.infinite_pairs == 0


@dataclass(frozen=True)
class HalfTheNoise(LabelHistogram):
    """Says what it should cost, and is drawn for half a contact."""

    moved = 0.5

    @property
    def epsilon(self):
        return self.budget


def test_noise_for_half_a_contact_is_found_over_whole_lists():
    found = audit_randomizer(HalfTheNoise(1.0, 3, "hidden", "zero-out"), Part.EDGES, 3, 9, BUCKETS, Noise(1))
    assert found.epsilon == pytest.approx(2.0, rel=1e-6) and "added or removed in lists of up to 4" in found.unit


def test_attributes_in_the_clear_have_infinite_ratios():
    found = audit_randomizer(Piecewise(1.0, 5, sampled=2, rest=Rest.RAW), Part.FEATURES, 3, 9, None, Noise(1))
    assert math.isinf(found.epsilon) and found.infinite_pairs > 10


@dataclass(frozen=True)
class InOrder(BucketResponse):
    """Reports stand in the order of the contacts, and the density says so."""

    def randomize(self, records, broadcast, rng):
        drawn = BucketResponse.randomize(self, records.targets[:, None], broadcast, rng)
        return Contacts(records.starts, drawn.ravel())

    def log_density(self, record, report, broadcast=None):
        each = zip(np.atleast_1d(record), np.atleast_1d(report), strict=True)
        return sum(BucketResponse.log_density(self, contact, told, broadcast) for contact, told in each)


LARGE = np.arange(60) % 3  # 60^2 reports are too many to try them all


@pytest.mark.parametrize("buckets", [BUCKETS, LARGE], ids=["all reports", "some"])
def test_point_9_whole_lists_whose_order_is_kept_cost_more_than_a_contact(buckets):
    """Lists of three whose places all change cost 3 epsilon, of which two change 2; draws follow the density that says so, so it
    is the ratio that shows it."""
    found = audit_randomizer(InOrder(1.0, 3, owned=False), Part.EDGES, 3, len(buckets), buckets, Noise(1))
    assert found.whole == (buckets is BUCKETS) and "lists of 3" in found.unit
    assert found.epsilon == pytest.approx(3.0 if found.whole else 2.0, abs=1e-6)
    assert found.honest == found.whole  # drawn ratios above the bound are called false, too


@pytest.mark.parametrize("buckets", [BUCKETS, np.arange(33) % 3, LARGE], ids=["lists of 3", "lists of 2", "some"])
def test_point_9_an_order_that_is_kept_in_silence_does_not_follow_the_density_of_whole_lists(buckets):
    bucket = BucketResponse(1.0, 3)
    healthy = audit_randomizer(bucket, Part.EDGES, 3, len(buckets), buckets, Noise(1))
    assert healthy.honest and 0.99 * bucket.epsilon <= healthy.epsilon <= bucket.epsilon + 1e-9
    assert healthy.whole == (len(buckets) < 60)
    with reports_in_the_order_of_contacts():
        assert not audit_randomizer(bucket, Part.EDGES, 3, len(buckets), buckets, Noise(1)).honest


class Favourite(BucketResponse):
    """Within its bucket the last member is named most of the time; buckets are as stated."""

    def randomize(self, records, broadcast, rng):
        drawn = super().randomize(records, broadcast, rng)
        last = len(broadcast) - 1
        moved = (np.asarray(broadcast)[drawn.targets] == broadcast[last]) & rng.coins(0.5, len(drawn.targets))
        return Contacts(drawn.starts, np.where(moved, last, drawn.targets)).sorted()


class Sharper(BucketResponse):
    """Draws with one and a half times the budget."""

    def randomize(self, records, broadcast, rng):
        return BucketResponse(1.5 * self.budget, self.buckets, self.owned).randomize(records, broadcast, rng)


@pytest.mark.parametrize("wrong", [Favourite, Sharper])
@pytest.mark.parametrize("buckets", [BUCKETS, LARGE], ids=["all reports", "some"])
def test_lists_that_name_members_or_buckets_too_often_are_seen(wrong, buckets):
    assert not audit_randomizer(wrong(1.0, 3), Part.EDGES, 3, len(buckets), buckets, Noise(1)).honest


@pytest.mark.parametrize("slots", [9, 30])
def test_all_sets_of_slots_are_tried_while_they_are_few(slots):
    found = audit_randomizer(EdgeListResponse(1.0, slots), Part.EDGES, 3, slots, None, Noise(1))
    assert found.whole == (slots == 9) and found.honest


class Dishonest(LabelResponse):
    """Says one thing and draws another: the label is kept twice as often as stated."""

    def randomize(self, records, broadcast, rng):
        drawn = super().randomize(records, broadcast, rng)
        return np.where(rng.coins(0.5, drawn.size), records, drawn)


class Leaky(Piecewise):
    """Leaves the attributes that were not chosen in the report."""

    def randomize(self, records, broadcast, rng):
        report = super().randomize(records, broadcast, rng).toarray()
        return np.where(report == 0, records, report)


def test_a_sampler_that_does_not_follow_its_density_is_seen():
    assert not audit_randomizer(Dishonest(1.0, 3), Part.LABELS, 3, 9, None, Noise(1)).honest
    assert not audit_randomizer(Leaky(1.0, 4, sampled=1), Part.FEATURES, 3, 9, None, Noise(1)).honest


@dataclass(frozen=True)
class Reader:
    """Stands for a mechanism that reads everybody's lists."""

    lists: Contacts


def test_an_edge_is_taken_out_of_both_lists():
    lists = Contacts.of([[1, 2], [0], [0]])
    pairs = edge_domain(Reader(lists), lists)
    assert len(pairs) == 2
    sizes = sorted(len(fewer.lists.targets) for _, fewer in pairs)
    assert sizes == [2, 2]
