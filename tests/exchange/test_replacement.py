"""GraphPrivatizer's replacement as published: its ratio is infinite on a graph of seven people."""

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from graphveil.exchange.randomizers import Contacts, NeighbourReplacement
from graphveil.exchange.randomizers.replacement import Metric, Strategy
from graphveil.privacy.noise import Noise

EDGES = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 4), (3, 4), (3, 5), (4, 6), (5, 6)]
ROWS = np.random.default_rng(3).random((7, 4))


def lists_of(edges, nodes=7):
    return Contacts.of([[v for u, v in [*edges, *((b, a) for a, b in edges)] if u == node] for node in range(nodes)])


def mechanism(strategy, **options):
    return NeighbourReplacement(1.0, lists_of(EDGES), strategy, **options)


@pytest.mark.parametrize("strategy", Strategy)
def test_gp_1_most_swaps_of_one_neighbour_have_an_infinite_ratio(strategy):
    randomizer, slots = mechanism(strategy), range(7)
    worst = {
        (a, b): max(r for r in (randomizer.log_ratio(a, b, out, ROWS) for out in slots) if not math.isnan(r))
        for a, b in permutations(slots, 2)
    }
    infinite = [pair for pair, ratio in worst.items() if ratio == math.inf]
    assert len(infinite) >= 0.8 * len(worst)
    assert randomizer.epsilon == math.inf and randomizer.claim == 1.0


@pytest.mark.parametrize("strategy", Strategy)
def test_gp_1_the_delta_at_the_claimed_epsilon_reaches_one(strategy):
    randomizer, slots = mechanism(strategy), range(7)
    law = np.exp([[randomizer.log_density(u, out, ROWS) for out in slots] for u in slots])
    assert np.allclose(law.sum(axis=1), 1)
    deltas = [np.maximum(law[a] - math.e * law[b], 0).sum() for a, b in permutations(slots, 2)]
    assert max(deltas) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(("size", "expected"), [(10, 2.15), (100, 4.31)])
def test_gp_2_even_on_common_outputs_the_normalisers_differ(size, expected):
    """u has d - 1 = 1 candidate, w has d - 1 = 9 or 99; the report u is kept by u and picked by w."""
    nodes = size + 1
    edges = [(0, v) for v in range(1, nodes)][: size - 1]  # w = 0 knows size - 1 people, u = 1 among them
    randomizer = NeighbourReplacement(1.0, lists_of(edges, nodes))
    rows = np.ones((nodes, 2))
    assert randomizer.log_ratio(1, 0, 1, rows) == pytest.approx(expected, abs=0.005)


def test_gp_3_without_a_candidate_the_truth_is_sent_with_probability_one():
    randomizer = mechanism(Strategy.THRESHOLD, threshold=2.0)
    assert math.exp(randomizer.log_density(3, 3, ROWS)) == 1.0
    assert np.array_equal(randomizer.randomize(np.arange(7), ROWS, Noise(0)), np.arange(7))


def test_gp_4_an_edge_leaks_through_somebody_who_is_not_its_endpoint():
    """0 is next to 1; whether {1, 3} exists decides whether 0 can report 3."""
    without = NeighbourReplacement(1.0, lists_of([e for e in EDGES if e != (1, 3)]), Strategy.THRESHOLD)
    assert mechanism(Strategy.THRESHOLD).log_density(1, 3, ROWS) > -math.inf
    assert without.log_density(1, 3, ROWS) == -math.inf


@pytest.mark.parametrize("metric", Metric)
@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_reports_follow_the_published_probabilities(metric, alpha):
    randomizer, draws = mechanism(Strategy.THRESHOLD, metric=metric, alpha=alpha, threshold=0.2), 20_000
    mass = np.exp([randomizer.log_density(2, out, ROWS) for out in range(7)])
    frequency = np.bincount(randomizer.randomize(np.full(draws, 2), ROWS, Noise(5)), minlength=7) / draws
    assert np.all(np.abs(frequency - mass) <= 6 * np.sqrt(mass / draws))  # false alarms: below 2e-8
    assert mass.sum() == pytest.approx(1.0)


def test_the_most_similar_neighbour_is_the_only_candidate_of_strategy_m():
    chosen = mechanism(Strategy.MOST_SIMILAR).support(ROWS)
    lists = lists_of(EDGES)
    unit = ROWS / np.linalg.norm(ROWS, axis=1, keepdims=True)
    for node in range(7):
        assert chosen[node].tolist() == [max(lists[node], key=lambda other: unit[node] @ unit[other])]


def dense_likeness(randomizer, rows, edges=EDGES):
    """Equations (3) and (4), or the released code's two cosines, on dense rectified rows: an independent computation."""
    lists = lists_of(edges)
    x = randomizer.scale * rows + randomizer.shift
    adjacency = np.zeros((7, 7))
    adjacency[lists.owners, lists.targets] = 1
    degrees = adjacency.sum(axis=1)
    if randomizer.reading == "text":
        mixed = (1 - randomizer.alpha) * x + randomizer.alpha * (adjacency / degrees[:, None]) @ x
        parts = [(1.0, mixed)]
    else:
        near = (adjacency / np.sqrt(np.outer(degrees, degrees))) @ x
        parts = [(randomizer.alpha, x), (1 - randomizer.alpha, near)]

    def alike(a, b):
        if randomizer.metric == "cosine":
            return a @ b / np.linalg.norm(a) / np.linalg.norm(b)
        distance = np.linalg.norm(a - b)
        return distance if randomizer.metric == "distance" else 1 - distance / (np.linalg.norm(a) + np.linalg.norm(b))

    return [
        sum(share * alike(y[u], y[w]) for share, y in parts) for u, w in zip(lists.owners, lists.targets, strict=True)
    ]


@pytest.mark.parametrize("reading", ["text", "code"])
@pytest.mark.parametrize("metric", Metric)
@pytest.mark.parametrize("alpha", [0.0, 0.4, 1.0])
def test_similarity_is_of_rectified_rows_that_are_never_made_dense(reading, metric, alpha):
    encoded = np.random.default_rng(1).integers(-1, 2, (7, 5)).astype(float)
    options = {"metric": metric, "alpha": alpha, "reading": reading, "scale": 7.0, "shift": 0.5}
    randomizer = mechanism(Strategy.THRESHOLD, **options)
    assert np.allclose(randomizer.likeness(encoded), dense_likeness(randomizer, encoded))


@pytest.mark.parametrize("length", [1e-3, 1.0, 1e6])
def test_euclidean_likeness_has_one_scale_whatever_the_length_of_rows(length):
    """1 for equal rows, 0 for opposite ones, 1 - 1/sqrt 2 for equally long ones that share nothing; blank ones are alike."""
    rows = length * np.array([[1.0, 0], [1, 0], [-1, 0], [0, 1], [0, 0], [0, 0]])
    pairs = [(0, 1), (0, 2), (0, 3), (0, 4), (4, 5)]
    expected = {(0, 1): 1.0, (0, 2): 0.0, (0, 3): 1 - math.sqrt(0.5), (0, 4): 0.0, (4, 5): 1.0}
    lists = lists_of(pairs, 6)
    randomizer = NeighbourReplacement(1.0, lists, metric="euclidean")
    for owner, contact, found in zip(lists.owners, lists.targets, randomizer.likeness(rows), strict=True):
        assert found == pytest.approx(expected[min(owner, contact), max(owner, contact)], abs=1e-9)


@given(rows=arrays(np.float64, (7, 3), elements=st.floats(-50, 50)), reading=st.sampled_from(["text", "code"]))
def test_thresholds_from_0_to_1_are_the_range_of_euclidean_likeness(rows, reading):
    likeness = mechanism(Strategy.THRESHOLD, metric="euclidean", alpha=0.4, reading=reading).likeness(rows)
    assert np.all((likeness >= 0) & (likeness <= 1 + 1e-12))


def test_a_threshold_in_the_middle_tells_contacts_apart_by_euclidean_likeness_but_not_by_the_distance():
    rows = 1000 * ROWS

    def candidates(metric, threshold):
        return mechanism(Strategy.THRESHOLD, metric=metric, threshold=threshold).support(rows).degrees.sum()

    everything = lists_of(EDGES).degrees.sum()
    counts = [candidates("euclidean", threshold) for threshold in (0.0, 0.55, 0.65, 1.0)]
    assert counts[0] == everything > counts[1] > counts[2] > counts[3] == 0
    assert {candidates("distance", threshold) for threshold in (0.0, 0.55, 0.65, 1.0)} == {everything}


def test_the_released_code_clears_a_replacement_where_a_later_true_contact_stood():
    """Contacts 1, 2, 5 of somebody become 2, 6, 1: 2 is cleared when the true contact 2 is replaced; 1 stays."""
    lists = Contacts.of([[1, 2, 5]] + [[]] * 7)
    taken = NeighbourReplacement._taken_back(lists, np.array([2, 6, 1]))
    assert taken.tolist() == [True, False, False]


def test_the_released_code_never_replaces_a_contact_without_another_contact():
    edges = [(0, 1), (0, 2)]
    randomizer = NeighbourReplacement(0.1, lists_of(edges, 3), reading="code", threshold=0.0)
    rows = np.ones((3, 2))
    assert randomizer.support(rows).degrees.tolist() == [2, 0, 0]
    assert NeighbourReplacement(0.1, lists_of(edges, 3)).support(rows).degrees.tolist() == [2, 1, 1]
