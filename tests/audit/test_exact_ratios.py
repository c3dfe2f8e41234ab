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

BUCKETS = np.arange(9) % 3
CASES = [
    (LabelResponse(1.3, 3), Part.LABELS, None),
    (MultiBit(5.0, 4), Part.FEATURES, None),
    (Piecewise(2.0, 4), Part.FEATURES, None),
    (LaplaceRows(2.0, 3), Part.FEATURES, None),
    (Direction(2.0, 4, None), Part.FEATURES, None),
    (BucketResponse(1.0, 3), Part.EDGES, BUCKETS),
    (LabelHistogram(1.0, 3), Part.EDGES, BUCKETS),
    (EdgeListResponse(1.0, 9), Part.EDGES, None),
]


@pytest.mark.parametrize(("randomizer", "part", "broadcast"), CASES, ids=lambda value: type(value).__name__)
def test_the_worst_ratio_is_the_declared_epsilon(randomizer, part, broadcast):
    found = audit_randomizer(randomizer, part, 3, 9, broadcast, Noise(1))
    declared = randomizer.cost
    assert 0.99 * declared <= found.epsilon <= declared + 1e-9
    assert found.honest and found.infinite_pairs == 0


def test_attributes_in_the_clear_have_infinite_ratios():
    found = audit_randomizer(Piecewise(1.0, 5, sampled=2, rest=Rest.RAW), Part.FEATURES, 3, 9, None, Noise(1))
    assert math.isinf(found.epsilon) and found.infinite_pairs > 10


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
