"""Every figure agrees with scikit-learn or a hand count; the epsilon bound is valid and not empty."""

import math

import numpy as np
import pytest
from sklearn import metrics as sk

from graphveil.attacks.metrics import FIGURES, epsilon_lower_bound, measure, roc
from graphveil.errors import InputError


def cases(seed, size=400, levels=None):
    rng = np.random.default_rng(seed)
    truth = rng.random(size) < 0.3
    score = truth + rng.normal(size=size) * 1.5
    return truth, np.round(score * levels) / levels if levels else score


@pytest.mark.parametrize("levels", [None, 2])
@pytest.mark.parametrize("seed", range(3))
def test_ranking_figures_agree_with_scikit_learn_with_and_without_ties(seed, levels):
    truth, score = cases(seed, levels=levels)
    found = measure(truth, score, resamples=0)
    false, true, _ = sk.roc_curve(truth, score, drop_intermediate=False)
    assert found["auc"] == pytest.approx(sk.roc_auc_score(truth, score), abs=1e-12)
    assert found["average_precision"] == pytest.approx(sk.average_precision_score(truth, score), abs=1e-12)
    assert found["tpr_at_1_percent"] == pytest.approx(true[false <= 0.01].max(), abs=1e-12)
    assert found["tpr_at_0.1_percent"] == pytest.approx(true[false <= 0.001].max(), abs=1e-12)
    mine = roc(truth, score)
    assert np.allclose(mine[0], false) and np.allclose(mine[1], true)


def test_decisions_at_a_threshold_agree_with_scikit_learn():
    truth, score = cases(3)
    found, said = measure(truth, score, threshold=0.4, resamples=0), score >= 0.4
    assert found["accuracy"] == pytest.approx(sk.accuracy_score(truth, said))
    assert found["precision"] == pytest.approx(sk.precision_score(truth, said))
    assert found["recall"] == pytest.approx(sk.recall_score(truth, said))
    assert found["f1"] == pytest.approx(sk.f1_score(truth, said))


def test_a_belief_says_yes_to_the_top_share():
    truth = np.array([True, True, False, True, False, False, False, False])
    score = np.array([8.0, 7, 6, 5, 4, 3, 2, 1])
    found = measure(truth, score, belief=0.5, resamples=0)  # the top four hold three of three positives
    assert found["precision"] == 0.75 and found["recall"] == 1.0 and found["accuracy"] == 7 / 8


def test_a_constant_score_is_chance_in_every_figure():
    truth = np.repeat([True, False], [30, 70])
    found = measure(truth, np.zeros(100), resamples=20)
    assert found["auc"] == 0.5 and found["average_precision"] == pytest.approx(0.3)
    assert found["precision"] == pytest.approx(0.3) and found["recall"] == pytest.approx(0.3)
    assert found["tpr_at_1_percent"] == 0 and found.epsilon == 0


def test_auc_is_signed_so_a_reversed_score_stays_below_one_half():
    truth, score = cases(4)
    right, wrong = (measure(truth, s, resamples=0)["auc"] for s in (score, -score))
    assert right > 0.6 and wrong == pytest.approx(1 - right)


def test_bootstrap_intervals_hold_the_value_and_cover_the_true_auc():
    """Normal scores one deviation apart have AUC Phi(1/sqrt 2); 40 intervals of 95 % miss more than 8 with p < 1e-3."""
    true_auc, missed = 0.5 * (1 + math.erf(0.5)), 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        truth = np.repeat([True, False], 150)
        figure = measure(truth, rng.normal(size=300) + truth, resamples=150, seed=seed).values["auc"]
        assert figure.low <= figure.value <= figure.high
        missed += not figure.low <= true_auc <= figure.high
    assert missed <= 8


def test_all_figures_are_there():
    found = measure(*cases(0), resamples=5).to_json()
    assert set(FIGURES) <= found.keys() and {"epsilon_lower_bound", "positives", "negatives"} <= found.keys()


@pytest.mark.parametrize(
    ("truth", "score", "word"),
    [
        ([True, True], [1.0, 2.0], "only one answer"),
        ([True, False], [1.0, np.nan], "not finite"),
        ([True, False], [1.0], "one score per case"),
    ],
)
def test_useless_cases_are_refused(truth, score, word):
    with pytest.raises(InputError, match=word):
        measure(np.array(truth), np.array(score))


def randomised_response(epsilon, size, seed):
    """The balanced game: one coin per case, the attacker sees it through randomised response."""
    rng = np.random.default_rng(seed)
    truth = rng.random(size) < 0.5
    kept = rng.random(size) < math.exp(epsilon) / (1 + math.exp(epsilon))
    return truth, (truth == kept).astype(float)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_bound_on_a_game_of_known_epsilon_is_valid_and_reaches_a_good_part_of_it(epsilon):
    """Each bound exceeds epsilon with probability at most 0.05: of 100, more than 14 do with probability < 2e-4."""
    bounds = [epsilon_lower_bound(*randomised_response(epsilon, 3000, seed), seed=seed) for seed in range(100)]
    assert sum(bound > epsilon for bound in bounds) <= 14
    assert np.median(bounds) > 0.6 * epsilon


def test_choosing_the_threshold_on_the_cases_it_is_judged_by_would_not_be_valid():
    """With many thresholds and no signal, the halves keep the bound at 0 almost always (5 % error allowed)."""
    rng = np.random.default_rng(0)
    bounds = [epsilon_lower_bound(rng.random(300) < 0.5, rng.random(300), seed=seed) for seed in range(100)]
    assert sum(bound > 0 for bound in bounds) <= 14


def test_the_bound_uses_delta_and_the_better_side():
    truth = np.repeat([True, False], 500)
    caught = np.concatenate([np.arange(500) < 50, np.zeros(500, dtype=bool)]).astype(float)  # TPR 0.1, FPR 0
    plain = epsilon_lower_bound(truth, caught)
    assert plain > 1.0 and epsilon_lower_bound(truth, caught, delta=0.2) == 0.0
    cleared = np.concatenate([np.ones(500), np.arange(500) >= 50]).astype(float)  # TNR 0.1, FNR 0
    assert epsilon_lower_bound(truth, cleared) > 1.0
