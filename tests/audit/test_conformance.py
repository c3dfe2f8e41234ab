"""Every sound mode passes; every published mode fails with exactly the codes on its card; every planted bug is caught."""

import pytest

from graphveil.audit.central.conformance import ConformanceError, check_private_method, example_promise, inspect_method
from graphveil.methods.dp_mlp import DpMlp
from graphveil.methods.gap import Gap
from graphveil.methods.mlp import Mlp
from tests.audit.mutants import MUTANTS

SOUND = [
    DpMlp(steps=4),
    DpMlp(steps=4, centring=0.0),
    DpMlp(network="paper", epochs=6, hidden=8, batch_size=5),
    Gap(steps=4, epochs=2),
    Gap(steps=4, hidden=4, epochs=2),
    Gap(steps=4, hidden=4, epochs=2, hops=1, encoder_layers=2),
    Mlp(epochs=2, hidden=8),
]
PUBLISHED = [DpMlp(mode="published", epochs=4, hidden=8, batch_size=5), Gap(mode="published", hidden=8, epochs=2)]


@pytest.mark.parametrize("method", SOUND, ids=repr)
def test_sound_modes_conform(method):
    report = check_private_method(method)
    assert len(report.promises) == len(method.supports)


def test_declared_sensitivities_are_attained_not_just_respected():
    """A suite whose neighbours never come close to a bound would prove little."""
    largest = check_private_method(Gap(steps=4, hidden=4)).largest
    assert all(largest[name] > 0.98 for name in ("mean", "encoder", "hop 1", "classifier"))


@pytest.mark.parametrize("method", PUBLISHED, ids=repr)
def test_published_modes_fail_with_exactly_the_codes_on_their_card(method):
    with pytest.raises(ConformanceError) as caught:
        check_private_method(method)
    assert caught.value.codes == {gap.code for gap in method.gaps}


@pytest.mark.parametrize("method", PUBLISHED, ids=repr)
def test_each_published_promise_fails_with_exactly_the_gaps_of_its_plan(method):
    from graphveil.privacy.facts import PublicFacts

    facts = PublicFacts(200, 6, 3)
    for guarantee in sorted(method.supports, key=str):
        promise = example_promise(guarantee, 12)
        expected = {gap.code for gap in method.plan(facts, promise).gaps}
        assert inspect_method(method, [promise]).codes == expected, guarantee


@pytest.mark.parametrize("seed", [1, 2])
def test_other_seeds_of_the_suite_pass_too(seed):
    check_private_method(Gap(steps=4, hidden=4), [example_promise(next(iter(Gap().supports)), 12)], seed=seed)


@pytest.mark.parametrize("name", MUTANTS)
def test_planted_bugs_are_caught(name):
    plant, method, promises = MUTANTS[name]
    check_private_method(method, promises)  # healthy without the bug, so it is the bug that is caught
    with plant(), pytest.raises(ConformanceError):
        check_private_method(method, promises)
