"""Randomizers of contact lists: exact ratios by enumeration, the cost of an edge that stands in two lists."""

import math
from itertools import chain, combinations, product

import numpy as np
import pytest

from graphveil.errors import InputError
from graphveil.exchange.randomizers import BucketResponse, Contacts, EdgeListResponse, LabelHistogram, NeighbourMean
from graphveil.exchange.randomizers.categories import owns
from graphveil.privacy.accounting.loss import gaussian_delta
from graphveil.privacy.noise import Noise

from .exact import SIX_SIGMA, assert_attains, assert_unbiased, total_mass, worst_log_ratio

SUBSETS = [np.array(s, dtype=int) for s in chain.from_iterable(combinations(range(4), k) for k in range(5))]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 30.0])
def test_one_bit_of_a_list_costs_epsilon_and_a_swap_costs_two(epsilon):
    """[GP 6]: a swap is two bits, so epsilon per edge gives 2 epsilon per swap, not the other way round."""
    randomizer = EdgeListResponse(epsilon, 4)
    a, added, swapped = np.array([0, 1]), np.array([0, 1, 2]), np.array([0, 2])
    assert total_mass(randomizer, a, SUBSETS) == pytest.approx(1.0, abs=1e-9)
    assert_attains(randomizer, worst_log_ratio(randomizer, [a, added], SUBSETS))
    assert worst_log_ratio(randomizer, [a, swapped], SUBSETS) == pytest.approx(2 * randomizer.epsilon, rel=1e-9)


def test_gp_5_an_undirected_edge_reported_by_both_ends_costs_twice():
    randomizer = EdgeListResponse(1.0, 4)
    with_edge, without = (np.array([1]), np.array([0])), (np.array([], dtype=int), np.array([], dtype=int))
    both = sum(randomizer.log_ratio(a, b, a) for a, b in zip(with_edge, without, strict=True))
    assert both == pytest.approx(2.0, abs=1e-9)


def test_noisy_lists_keep_bits_with_the_stated_probability():
    randomizer, lists = EdgeListResponse(1.0, 50), 4000
    record = np.arange(0, 50, 5)
    reports = randomizer.randomize(Contacts.of([record] * lists), None, Noise(3))
    bits = np.zeros((lists, 50))
    bits[reports.owners, reports.targets] = 1
    truth = np.isin(np.arange(50), record).astype(float)
    estimates = (bits - randomizer.flip) / (1 - 2 * randomizer.flip)
    assert_unbiased(estimates, truth, randomizer.variance(record))
    assert np.allclose(randomizer.estimate(reports[0]), estimates[0])
    one = randomizer.randomize(record, None, Noise(3))
    assert np.all(np.diff(one) > 0)


UNEQUAL = np.array([0, 0, 0, 0, 1, 1, 2])


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_gp_7_the_bucket_response_is_exactly_epsilon_for_unequal_buckets(epsilon):
    randomizer, slots = BucketResponse(epsilon, 3), list(range(7))
    assert total_mass(randomizer, 4, slots, UNEQUAL) == pytest.approx(1.0, abs=1e-12)
    assert_attains(randomizer, worst_log_ratio(randomizer, slots, slots, UNEQUAL))


def test_gp_7_weighing_members_in_one_shot_is_not_epsilon():
    """P(r | u) proportional to e^(epsilon [same bucket]): the normalisers of unequal buckets differ."""
    epsilon, weights = 1.0, np.where(UNEQUAL[:, None] == UNEQUAL[None, :], math.e, 1.0)
    probabilities = np.log(weights / weights.sum(axis=1, keepdims=True))
    worst = max(np.max(probabilities[a] - probabilities[b]) for a, b in product(range(7), repeat=2))
    assert worst > 1.2 * epsilon


def test_the_probability_of_the_true_bucket_is_close_to_chance_at_small_epsilon():
    expected = {0.1: 0.156, 1.0: 0.31, 2.0: 0.55, 4.0: 0.90}
    for epsilon, hit in expected.items():
        assert BucketResponse(epsilon, 7).response.keep == pytest.approx(hit, abs=0.005)


def test_bucket_reports_follow_their_probabilities_and_their_estimates_are_unbiased():
    randomizer, draws = BucketResponse(1.0, 3), 40_000
    reports = randomizer.randomize(np.full(draws, 5), UNEQUAL, Noise(4))
    mass = np.exp([randomizer.log_density(5, slot, UNEQUAL) for slot in range(7)])
    frequency = np.bincount(reports, minlength=7) / draws
    assert np.all(np.abs(frequency - mass) < SIX_SIGMA * np.sqrt(mass / draws))
    assert_unbiased(randomizer.estimate(reports, UNEQUAL), np.eye(3)[1], randomizer.variance(1))
    assert randomizer.randomize(5, UNEQUAL, Noise(1)) in range(7)


def test_a_bucket_without_member_is_refused():
    with pytest.raises(InputError, match="no member"):
        BucketResponse(1.0, 4).randomize(np.array([0]), UNEQUAL, Noise(0))


def test_every_undirected_edge_has_one_owner():
    u, v = (np.array(p) for p in zip(*combinations(range(60), 2), strict=True))
    assert np.all(owns(u, v) != owns(v, u))
    assert 0.4 < owns(u, v).mean() < 0.6


BINS = np.array([0, 0, 1, 1, 2, 2])


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_a_swap_in_a_histogram_costs_epsilon_and_one_contact_more_costs_half(epsilon):
    randomizer = LabelHistogram(epsilon, 3)
    records = [np.array([0, 2]), np.array([0, 4]), np.array([1, 3]), np.array([4, 2])]
    reports = [np.array(r) for r in product((-50.0, 0.4, 1.0, 50.0), repeat=3)]
    adjacent = [(a, b) for a, b in product(records, repeat=2) if len(set(a) & set(b)) == 1]
    worst = max(randomizer.log_ratio(a, b, r, BINS) for a, b in adjacent for r in reports)
    assert_attains(randomizer, worst)
    longer = np.array([0, 2, 4])
    assert max(abs(randomizer.log_ratio(records[0], longer, r, BINS)) for r in reports) == pytest.approx(epsilon / 2)


def test_rewiring_an_edge_moves_three_histograms_and_costs_two_epsilon():
    """(u, v) becomes (u, w): u swaps a contact, v loses one, w gains one."""
    randomizer = LabelHistogram(1.0, 3)
    u, v, w = 0, 2, 4
    before = {u: [v], v: [u], w: []}
    after = {u: [w], v: [], w: [u]}
    reports = [np.array(r) for r in product((-50.0, 50.0), repeat=3)]
    ratio = lambda one, r: randomizer.log_ratio(np.array(before[one], int), np.array(after[one], int), r, BINS)
    total = sum(max(ratio(one, r) for r in reports) for one in (u, v, w))
    assert total == pytest.approx(randomizer.edge_units * randomizer.epsilon) == pytest.approx(2.0)


def test_histogram_counts_the_released_labels_of_contacts():
    randomizer = LabelHistogram(2.0, 3)
    lists = Contacts.of([[0, 1, 4], [], [5]])
    assert randomizer.counts(lists, BINS).tolist() == [[2, 0, 1], [0, 0, 0], [0, 0, 1]]
    reports = randomizer.randomize(Contacts.of([lists[0]] * 20_000), BINS, Noise(1))
    assert randomizer.randomize(lists[0], BINS, Noise(1)).shape == (3,)
    assert_unbiased(reports, np.array([2.0, 0.0, 1.0]), randomizer.variance())
    with pytest.raises(InputError, match="outside"):
        randomizer.counts(Contacts.of([[9]]), BINS)


def test_the_neighbour_mean_has_the_gaussian_delta_exactly():
    """The log-ratio is Gaussian with mean mu^2/2 and standard deviation mu = gap/sigma."""
    randomizer = NeighbourMean(1.0, 2, 1e-3)
    rows = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    a, b = np.array([0, 2, 3]), np.array([1, 2, 3])
    lists = Contacts.of([a, b])
    gap = np.linalg.norm(np.subtract(*randomizer.means(lists, rows)))
    assert gap == pytest.approx(2 / 3)  # attained by opposite rows
    assert gaussian_delta(gap / randomizer.sigma(3), randomizer.epsilon) <= 1e-3
    assert gaussian_delta(gap / randomizer.sigma(3), 0.99) > 1e-3
    reports = randomizer.randomize(Contacts.of([a] * 4000), rows, Noise(1))
    assert_unbiased(reports, randomizer.means(lists, rows)[0], randomizer.variance(a))
    ratios = np.array([randomizer.log_ratio(a, b, r, rows) for r in reports[:500]])
    mu = gap / randomizer.sigma(3)
    assert abs(ratios.mean() - mu**2 / 2) < SIX_SIGMA * mu / math.sqrt(500)


def test_the_noise_of_the_neighbour_mean_shrinks_with_the_degree():
    """[GP 8]: about 0.54 at degree 4 and 0.07 at degree 31, epsilon 4."""
    randomizer = NeighbourMean(4.0, 64, 1e-5)
    assert randomizer.sigma(4) == pytest.approx(0.54, rel=0.03)
    assert randomizer.sigma(31) == pytest.approx(0.07, rel=0.03)
