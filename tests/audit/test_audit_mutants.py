"""Every planted bug turns the audit red; without it the same audit is green."""

import pytest

from graphveil.audit import audit_method
from graphveil.audit.result import GREEN, RED
from graphveil.privacy.local import Local
from tests.audit.healthy import remembered
from tests.audit.mutants import MORE_MUTANTS, MUTANTS

BY_SAMPLING = {"replacing accounted as removing", "linear amplification"}  # no other check sees these


def verdict(method, promises, samples=10_000):
    """Lower bounds hold with their confidence for any number of samples: fewer show less, and raise no more false alarms."""
    (promise,) = promises
    quick = {} if isinstance(promise, Local) else {"samples": samples, "outside": False}
    return audit_method(method, promise, runs=1, **quick).verdict


def closer(method, promises):
    return verdict(method, promises, samples=60_000)


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_of_the_conformance_suite_turns_the_audit_red(name):
    plant, method, promises = MUTANTS[name]
    assert remembered(verdict, method, *promises) == GREEN
    with plant():
        assert verdict(method, promises) == RED


@pytest.mark.parametrize("name", MORE_MUTANTS)
def test_mutants_of_sampling_accounting_and_local_randomizers_turn_the_audit_red(name):
    plant, build, promise = MORE_MUTANTS[name]
    look = closer if name in BY_SAMPLING else verdict
    assert remembered(look, build(), promise) == GREEN
    with plant():
        assert look(build(), [promise]) == RED


def test_there_are_more_than_a_dozen_mutants():
    assert len(MUTANTS) + len(MORE_MUTANTS) >= 20


@pytest.mark.parametrize("seed", range(10))
def test_code_without_bugs_is_green_for_ten_seeds(seed):
    """False alarms: each verdict is wrong with probability at most 3.1e-4 (its own figure), ten of them with at most 3.1e-3."""
    from graphveil.methods.dp_mlp import DpMlp
    from graphveil.privacy.promise import NodeLevel

    found = audit_method(DpMlp(steps=4), NodeLevel(4.0, 1e-4), runs=1, samples=60_000, outside=False, seed=seed)
    assert found.verdict == GREEN and found.false_alarm < 4e-4
