"""Every mutant is caught by the cheapest check that sees it; without it the same check is silent.

What ``graphveil audit`` says about each is in ``docs/results/mutants.md`` (``python -m tests.audit.mutants.table``).
"""

from collections import Counter

import pytest

from graphveil.audit import audit_method
from graphveil.audit.result import GREEN
from graphveil.methods.dp_mlp import DpMlp
from graphveil.privacy.promise import NodeLevel
from tests.audit.mutants import CENTRAL, CLIENTS, COLLECTORS, CORE, MUTANTS, NAMED, RANDOMIZERS, SAVING
from tests.audit.mutants.checks import something_is_wrong

_HEALTHY: dict[tuple[str, ...], bool] = {}


def wrong_without_the_bug(mutant):
    """Computed once per session for mutants that share check, method and promise."""
    reads_no_method = mutant.suite == "accountants"
    key = (mutant.suite,) if reads_no_method else (mutant.suite, mutant.method.__name__, repr(mutant.promise))
    if key not in _HEALTHY:
        _HEALTHY[key] = something_is_wrong(mutant.suite, mutant.method(), mutant.promise)
    return _HEALTHY[key]


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_is_caught_by_the_suite(mutant):
    assert not wrong_without_the_bug(mutant)
    with mutant.plant():
        assert something_is_wrong(mutant.suite, mutant.method(), mutant.promise)


def test_there_are_forty_named_mutants_in_every_part_and_the_audit_sees_at_least_34():
    assert len(NAMED) == len(MUTANTS) >= 40
    areas = Counter(mutant.area for mutant in MUTANTS)
    assert set(areas) == {CORE, CENTRAL, RANDOMIZERS, CLIENTS, COLLECTORS, SAVING} and min(areas.values()) >= 4
    assert sum(not mutant.unseen for mutant in MUTANTS) >= 34


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
def test_code_without_bugs_is_green_for_ten_seeds(seed):
    """False alarms: each verdict is wrong with probability at most 3.1e-4 (its own figure), ten of them with at most 3.1e-3."""
    found = audit_method(DpMlp(steps=4), NodeLevel(4.0, 1e-4), runs=1, samples=60_000, outside=False, seed=seed)
    assert found.verdict == GREEN and found.false_alarm < 4e-4
