"""Feature and label randomizers: exact ratios over whole alphabets, unbiasedness and variance, one record or many."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import kstest

from graphveil.errors import InputError
from graphveil.exchange.randomizers import Direction, LabelResponse, LaplaceRows, MultiBit, Piecewise
from graphveil.privacy.noise import Noise

from .exact import SIX_SIGMA, assert_attains, assert_unbiased, total_mass, worst_log_ratio

CORNERS = [np.array(corner) for corner in product((0.0, 0.3, 1.0), repeat=3)]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 16.0, 30.0])
@pytest.mark.parametrize("sampled", [1, 2, 3])
def test_multi_bit_attains_epsilon_on_its_whole_alphabet_and_never_exceeds_it(epsilon, sampled):
    randomizer = MultiBit(epsilon, 3, sampled=sampled)
    reports = [np.array(r) for r in product((-1, 0, 1), repeat=3) if np.count_nonzero(r) == sampled]
    assert total_mass(randomizer, CORNERS[5], reports) == pytest.approx(1.0, abs=1e-12)
    assert_attains(randomizer, worst_log_ratio(randomizer, CORNERS, reports))


def test_multi_bit_chooses_the_paper_m():
    assert [MultiBit(epsilon, 10).m for epsilon in (0.5, 2.17, 2.18, 4.4, 9.0)] == [1, 1, 1, 2, 4]
    assert MultiBit(30.0, 3).m == 3


def test_multi_bit_estimates_are_unbiased_with_the_stated_variance():
    record = np.array([-2.0, 0.0, 1.5, 4.0])
    randomizer = MultiBit(2.0, 4, lower=-2.0, upper=4.0, sampled=2)
    reports = randomizer.randomize(np.tile(record, (60_000, 1)), None, Noise(1))
    assert_unbiased(randomizer.estimate(reports), record, randomizer.variance(record))


def test_the_budget_of_multi_bit_is_split_among_the_sampled_attributes():
    """[ACC 7]: three attributes at epsilon 0.5 have a ratio of e^0.1667 each."""
    randomizer = MultiBit(0.5, 3, sampled=3)
    one = randomizer.log_ratio(np.array([1.0, 0, 0]), np.zeros(3), np.ones(3))
    assert one == pytest.approx(0.5 / 3, abs=1e-12)


@pytest.mark.parametrize("classes", [2, 7])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 30.0])
def test_label_response_attains_epsilon_and_never_exceeds_it(classes, epsilon):
    randomizer = LabelResponse(epsilon, classes)
    labels = list(range(classes))
    assert total_mass(randomizer, 1, labels) == pytest.approx(1.0, abs=1e-12)
    assert_attains(randomizer, worst_log_ratio(randomizer, labels, labels))
    assert np.allclose(randomizer.channel.sum(axis=1), 1)


def test_label_reports_follow_the_channel_and_their_estimates_are_unbiased():
    randomizer, draws = LabelResponse(1.5, 4), 60_000
    reports = randomizer.randomize(np.full(draws, 2), None, Noise(3))
    frequency = np.bincount(reports, minlength=4) / draws
    expected = randomizer.channel[2]
    assert np.all(np.abs(frequency - expected) < SIX_SIGMA * np.sqrt(expected * (1 - expected) / draws))
    assert_unbiased(randomizer.estimate(reports), np.eye(4)[2], randomizer.variance(2))


def test_a_label_outside_the_public_classes_is_refused():
    with pytest.raises(InputError, match=r"0\.\.2"):
        LabelResponse(1.0, 3).randomize([0, 3], None, Noise(0))


@pytest.mark.parametrize("norm", [None, 2.0])
def test_laplace_rows_attain_epsilon_at_far_reports_and_never_exceed_it(norm):
    randomizer = LaplaceRows(1.0, 3, norm=norm)
    ends = [np.array([s, 0, 0]) for s in (-9.0, 9.0)] if norm else [np.zeros(3), np.ones(3)]
    records = [*ends, np.array([0.2, 0.5, 0.9])]
    points = np.linspace(-40, 40, 23)
    reports = [np.array(r) for r in product(points, (-40.0, 0.3, 40.0), (-40.0, 0.7, 40.0))]
    assert_attains(randomizer, worst_log_ratio(randomizer, records, reports))


def test_laplace_rows_have_the_laplace_law_around_the_clipped_record():
    randomizer = LaplaceRows(2.0, 2)
    reports = randomizer.randomize(np.tile([0.25, 7.0], (40_000, 1)), None, Noise(5))
    for column, centre in ((0, 0.25), (1, 1.0)):
        assert kstest((reports[:, column] - centre) / randomizer.scale, "laplace").pvalue > 1e-6  # false alarms: 1e-6
    assert_unbiased(reports, np.array([0.25, 1.0]), randomizer.variance(None))


@pytest.mark.parametrize(
    "randomizer",
    [MultiBit(3.0, 5), Piecewise(3.0, 5), Direction(3.0, 5, None), Direction(2.0, 5, 3), LaplaceRows(3.0, 5)],
)
def test_one_record_or_many_dense_or_sparse_give_the_same_shape_of_report(randomizer):
    rows = np.random.default_rng(0).random((4, 5))
    one, many = randomizer.randomize(rows[0], None, Noise(1)), randomizer.randomize(rows, None, Noise(2))
    sparse = randomizer.randomize(sp.csr_matrix(rows), None, Noise(2))
    width = randomizer.dimension if isinstance(randomizer, Direction) else 5
    assert one.shape == (width,) and many.shape == sparse.shape == (4, width)
    dense = lambda report: report.toarray() if sp.issparse(report) else report
    assert np.allclose(dense(many), dense(sparse))
    assert np.isfinite(randomizer.log_density(rows[0], one))


@pytest.mark.parametrize("budget", [0, -1.0, float("nan"), float("inf"), 31.0])
def test_unusable_budgets_are_refused(budget):
    for build in (lambda: MultiBit(budget, 3), lambda: LabelResponse(budget, 3), lambda: Direction(budget, 3)):
        with pytest.raises(InputError, match="epsilon must lie in"):
            build()


def test_a_record_of_the_wrong_width_is_refused():
    with pytest.raises(InputError, match="4 attributes"):
        MultiBit(1.0, 3).randomize(np.zeros(4), None, Noise(0))
