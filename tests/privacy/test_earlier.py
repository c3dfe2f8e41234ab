"""What several runs cost whoever was in all of them: composed by the project's exact accounting, never less."""

import math

import pytest

from graphveil.errors import InputError
from graphveil.privacy.accounting.loss import Gdp, LaplaceLoss, epsilon_of, gaussian_epsilon
from graphveil.privacy.budget import Charge
from graphveil.privacy.earlier import EarlierRun, together
from graphveil.privacy.promise import Adjacency, NodeLevel

PROMISE = NodeLevel(4.0, 1e-5, adjacency="record")


def run(charge, **more):
    return EarlierRun("ab" * 32, "roster", PROMISE, charge, **more)


def test_ten_gaussian_runs_compose_to_the_closed_form():
    one = Charge({"train": (Gdp(0.3),), "query": (Gdp(0.2),)})
    found = together(PROMISE, one, [run(one)] * 9)
    assert found == pytest.approx(gaussian_epsilon(0.3 * math.sqrt(10), 1e-5), abs=1e-9)


def test_somebody_may_pay_as_another_kind_every_time():
    taught, asked = Charge({"train": (Gdp(1.0),)}), Charge({"query": (Gdp(1.0),)})
    assert together(PROMISE, asked, [run(taught)]) == pytest.approx(gaussian_epsilon(math.sqrt(2), 1e-5))


def test_other_noise_is_composed_as_loss_distributions():
    mixed = [run(Charge({"train": (LaplaceLoss(0.5),)}))]
    found = together(PROMISE, Charge({"train": (Gdp(0.5),)}), mixed)
    assert found == epsilon_of((LaplaceLoss(0.5), Gdp(0.5)), 1e-5)
    assert found < 0.5 + gaussian_epsilon(0.5, 1e-5)


def test_runs_are_kept_as_they_are():
    made = run(Charge({"train": (Gdp(0.3),)}), seeded=True, weaker={"query": Adjacency.RECORD}, taken=True)
    assert EarlierRun.from_json(made.to_json()) == made


def test_a_run_that_cost_nobody_anything_cannot_make_the_others_free():
    free = run(Charge({"train": (Gdp(0.3),)})).to_json() | {"charge": {}}
    with pytest.raises(InputError, match="cost nobody"):
        EarlierRun.from_json(free)
    laplace = Charge({"train": (LaplaceLoss(0.5),)})
    assert together(PROMISE, laplace, [run(Charge({}))]) == together(PROMISE, laplace, []) > 0.4
