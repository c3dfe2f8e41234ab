"""Batches are those of the plan: equal rates, independent across records and across steps; empty ones are noisy steps.

A check of one release fails without cause with probability at most 1e-9.
"""

from unittest.mock import patch

import numpy as np
import pytest
from scipy.special import ndtr

from graphveil.audit import audit_method
from graphveil.audit.central.batches import batch_failures
from graphveil.audit.central.conformance import ConformanceError, awkward_graph, check_private_method
from graphveil.audit.central.replay import Recording
from graphveil.audit.result import RED
from graphveil.methods.dp_mlp import DpMlp
from graphveil.methods.dp_sage import DpSage
from graphveil.methods.dpar import Dpar
from graphveil.methods.dpdgc import Dpdgc
from graphveil.privacy.noise import Noise
from graphveil.privacy.promise import NodeLevel
from tests.audit.healthy import stopping_at_the_first_failure
from tests.audit.mutants.core import empty_batches_skipped, empty_batches_without_noise

RECORD = NodeLevel(4.0, 1e-4)
SAMPLED = DpMlp(network="paper", epochs=5, hidden=4, batch_size=5)


def recorded(method):
    data, _ = awkward_graph(method)
    run = Recording(method, method.plan(method.facts(data), RECORD), data, 0)
    run.run(data, run.recorder)
    return run


@pytest.mark.parametrize(
    "method",
    [
        SAMPLED,
        DpSage(steps=3, hidden=4, max_degree=3),
        Dpdgc(steps=3, code_steps=3, width=4),
        Dpar(steps=3, sources=6, projection=3, batch_size=3),
        DpMlp(mode="published", epochs=4, hidden=8, batch_size=5),
    ],
    ids=repr,
)
def test_batches_are_those_of_the_plan(method):
    run = recorded(method)
    assert any(step.mechanism.poisson for step in run.plan.steps)
    assert not [str(failure) for failure in batch_failures(run)]


def wrong_coins(draw):
    """``Noise.coins`` replaced; ``draw(uniform numbers, rate, size, what was drawn before)``."""
    before = []

    def coins(self, rate, size):
        before.append(np.asarray(draw(ndtr(self.gaussian(1.0, size)), rate, size, before)))
        return before[-1]

    return patch.object(Noise, "coins", coins)


def one_record_more_often(u, rate, size, before):
    return u < rate * (1 + 0.3 * (np.arange(size) == 3))


def in_pairs(u, rate, size, before):
    return np.repeat(u, 2)[:size] < rate


def every_other_batch_again(u, rate, size, before):
    same = [batch for batch in before[-2:] if len(batch) == size]
    return same[0] if len(same) == 2 and len(before) % 4 in (2, 3) else u < rate


def leaning_on_the_last(u, rate, size, before):
    fresh = u < rate
    return np.where(np.arange(size) % 2, fresh, before[-1]) if before and len(before[-1]) == size else fresh


def of_fixed_size(u, rate, size, before):
    return u.argsort().argsort() < round(rate * size)


@pytest.mark.parametrize(
    ("draw", "meaning"),
    [
        (one_record_more_often, "more or less often"),
        (in_pairs, "coins lean on each other"),
        (every_other_batch_again, "too often alike"),
        (leaning_on_the_last, "leans on the one before"),
        (of_fixed_size, "varies too little"),
    ],
)
def test_unequal_rates_and_dependence_across_steps_or_records_are_found(draw, meaning):
    run = recorded(SAMPLED)
    with wrong_coins(draw):
        found = [str(failure) for failure in batch_failures(run)]
    assert any(meaning in text for text in found), found


@pytest.mark.parametrize("plant", [empty_batches_skipped, empty_batches_without_noise])
def test_an_empty_batch_that_is_no_noisy_step_turns_suite_and_audit_red(plant):
    with plant():
        assert any("empty batch" in str(failure) for failure in batch_failures(recorded(SAMPLED)))
        with stopping_at_the_first_failure(), pytest.raises(ConformanceError):
            check_private_method(SAMPLED, [RECORD])
        assert audit_method(SAMPLED, RECORD, runs=1, samples=4000, draws=200, outside=False).verdict == RED
