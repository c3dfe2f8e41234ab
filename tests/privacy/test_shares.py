"""Shares of the budget add up, and are what composition says they are."""

import math
from dataclasses import replace

import pytest

from graphveil import DpMlp, Local, Lpgnn, NodeLevel, NonPrivate, PublicFacts
from graphveil.privacy.certificate import Certificate
from graphveil.privacy.mechanisms import Gaussian, Laplace
from graphveil.privacy.plan import Release
from graphveil.privacy.shares import UNSPENT, shares

FACTS = PublicFacts(nodes=1000, features=20, classes=3)


def certificate(method, promise):
    plan = method.plan(FACTS, promise)
    return Certificate.of(plan, plan.steps, method=method.name, mode="sound", parameters={})


def test_gaussian_shares_are_squares_of_the_parameters():
    found = certificate(DpMlp(), NodeLevel(4, 1e-4))
    part = shares(found)
    mus = {release.name: release.loss("train").mu for release in found.releases}
    whole = sum(mu * mu for mu in mus.values())
    assert part == pytest.approx({name: mu * mu / whole for name, mu in mus.items()})
    assert math.isclose(sum(part.values()), 1)


def test_what_an_adaptive_plan_left_over_is_unspent():
    found = certificate(DpMlp(), NodeLevel(4, 1e-4))
    half = replace(found, implied={"mu": math.sqrt(2) * found.implied["mu"]})
    assert shares(half)[UNSPENT] == pytest.approx(0.5) and math.isclose(sum(shares(half).values()), 1)


def test_other_noise_is_shared_by_what_each_release_costs_alone():
    found = certificate(DpMlp(), NodeLevel(4, 1e-4))
    mixed = (
        Release("one", Gaussian(2.0, 5), {"train": 1.0}, ""),
        Release("two", Laplace(1.0, 5), {"train": 1.0}, ""),
        Release("two", Laplace(1.0, 5), {"train": 1.0}, ""),
    )
    part = shares(replace(found, releases=mixed))
    assert set(part) == {"one", "two"} and math.isclose(sum(part.values()), 1)
    alone = [found.promise.cost("train", (release.loss("train"),), 1.0) for release in mixed]
    assert part["one"] == pytest.approx(alone[0] / sum(alone))


def test_local_rounds_share_what_they_add_up_to():
    part = shares(certificate(Lpgnn(), Local(1.0, 3.0, "raw")))
    assert sorted(part.values()) == pytest.approx([0.25, 0.75])


def test_without_noise_there_is_no_budget_to_share():
    assert shares(certificate(DpMlp(), NonPrivate())) == {}
    assert shares(certificate(DpMlp(), NodeLevel(math.inf, 1e-4))) == {}
