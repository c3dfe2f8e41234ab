"""Every planned release is drawn many times through the curator: releases of one number and of tables, reached or not.

Healthy code fails a check of one release with probability at most 1e-9; here there are about a hundred of them.
"""

from functools import lru_cache
from unittest.mock import patch

import numpy as np
import pytest

from graphveil.audit import audit_method
from graphveil.audit.central.conformance import awkward_graph, example_promise
from graphveil.audit.central.many_draws import (
    DRAWS,
    WIDE,
    AddedLaw,
    ManyDraws,
    all_steps,
    answer_of,
    curators,
    law_of,
    many_draws,
    part_of,
)
from graphveil.audit.central.replay import Recording
from graphveil.audit.everything import promises_of
from graphveil.audit.result import RED
from graphveil.audit.settings import audit_settings
from graphveil.methods.ballot import Ballot
from graphveil.methods.dp_sage import DpSage
from graphveil.methods.dpar import Dpar
from graphveil.methods.dpdgc import Dpdgc
from graphveil.methods.edge_rand import EdgeRand
from graphveil.methods.gap import Gap
from graphveil.methods.nip_gnn import NipGnn
from graphveil.methods.registry import method_class, method_names, modes_of
from graphveil.privacy.local import LOCAL
from graphveil.privacy.mechanisms import AskedFlips, EdgeFlips, GumbelTop, RandomizedResponse
from graphveil.privacy.noise import Noise, grid
from graphveil.privacy.plan import Slot
from graphveil.privacy.promise import EdgeLevel, NodeLevel
from tests.audit.mutants.core import (
    a_tenth_of_the_noise_on_one_number,
    half_the_noise_handed_back,
    half_the_noise_on_the_last_number,
)
from tests.audit.mutants.late import noise_cut_at_two_sigma

RECORD = NodeLevel(4.0, 1e-4)
BALLOT = Ballot(steps=4, combiner_steps=4, release_accuracy=True, assume="homophilous")


def recorded(method, promise):
    data, _ = awkward_graph(method)
    run = Recording(method, method.plan(method.facts(data), promise), data, 0)
    run.run(data, run.recorder)
    return run


@pytest.mark.parametrize(
    ("method", "promise"),
    [
        (BALLOT, RECORD),
        (Ballot(), EdgeLevel(4.0, 1e-4)),
        (Gap(steps=4), RECORD),
        (DpSage(steps=3, hidden=4, max_degree=3), RECORD),
        (Dpdgc(steps=3, code_steps=3, width=4, codes="rr-labels"), RECORD),
        (Dpar(steps=3, sources=6, projection=3, select="em1"), RECORD),
        (EdgeRand(epochs=2, hidden=4), EdgeLevel(4.0, 1e-4)),
        (NipGnn(steps=3, width=4, labels="rr", noise="laplace"), example_promise(min(NipGnn().supports, key=str), 12)),
    ],
    ids=repr,
)
def test_every_planned_release_has_its_law(method, promise):
    run = recorded(method, promise)
    assert run.plan.steps and not [str(failure) for failure in many_draws(run)]


def counted_draws(run, draws=DRAWS):
    """By release, (numbers of a draw, draws) of everything that is compared with a law; and what was found."""
    counted, real = [], law_of

    def counting(mechanism, clean):
        law, number = real(mechanism, clean), len(counted)
        counted.append((getattr(mechanism, "pairs", np.size(clean)), 0))
        add = law.add

        def counted_add(drawn):
            size, before = counted[number]
            counted[number] = (size, before + len(drawn))
            add(drawn)

        law.add = counted_add
        return law

    with patch("graphveil.audit.central.many_draws.law_of", counting):
        found = [str(failure) for failure in many_draws(run, draws)]
    return counted, found


@lru_cache
def one_table(width):
    """A release of 33 rows of so many numbers."""
    return recorded(Gap(hops=1, steps=4, hidden=width), EdgeLevel(4.0, 1e-4))


@pytest.mark.parametrize("wide", [2640, 16_500])
def test_point_14_every_mechanism_is_drawn_ten_thousand_times_at_every_dimension(wide):
    """Up to 2500 numbers the whole release; beyond, a part of 2500 of them, and whole tables of 25 million numbers in all."""
    counted, found = counted_draws(one_table(wide // 33))
    assert not found and [size for size, _ in counted] == [wide, 2500]
    for size, draws in counted:
        assert draws >= (10_000 if size <= WIDE == 2500 else max(25_000_000 // size, 150))


def test_point_14_narrow_releases_are_drawn_whole_whether_a_history_reaches_them_or_not():
    run = recorded(BALLOT, RECORD)
    counted, found = counted_draws(run)
    assert not found and len(counted) == len(run.plan.steps) == 11
    assert all(size <= WIDE and draws >= DRAWS == 10_000 for size, draws in counted)


def test_point_14_no_release_of_all_audits_is_wide():
    private = [method_class(name, mode)() for name in method_names() for mode in modes_of(name)]
    sizes = []
    for method in (method for method in private if method.supports and LOCAL not in method.supports):
        small = method.clone().set_params(**audit_settings(method))
        facts = small.facts(awkward_graph(small)[0])
        for promise in promises_of(method, 4.0):
            for step in small.plan(facts, promise.at(1e-4)).steps:
                drawn = step if isinstance(step, Slot) else step.mechanism
                sizes.append(getattr(drawn, "dimension", None) or getattr(drawn, "pairs", None) or facts.nodes)
    assert len(sizes) > 60 and max(sizes) <= WIDE


def spoiled(where, factor):
    """Noise of tables is multiplied at these places."""
    real = Noise.gaussian

    def gaussian(self, sigma, shape):
        found = real(self, sigma, shape)
        if np.ndim(found) == 2:
            found[where] = np.rint(found[where] * factor / grid(sigma)) * grid(sigma)
        return found

    return patch.object(Noise, "gaussian", gaussian)


@pytest.mark.parametrize(
    ("where", "factor"),
    [((5, 17), 0.0), ((5, 17), 0.5), ((5, 17), 2.0), ((5, slice(None)), 0.9), ((slice(None), 17), 1.2)],
    ids=["a number without noise", "half", "twice", "a row with a tenth less", "a column with a fifth more"],
)
def test_point_14_defects_of_a_number_a_row_and_a_column_of_a_wide_table_are_found(where, factor):
    """As few tables as there ever are; the part that is drawn more often is one row of numbers and does not show it."""
    few = patch.multiple("graphveil.audit.central.many_draws", MOST=100_000, WIDE=50)
    with few, spoiled(where, factor):
        found = list(many_draws(one_table(200)))
    assert found and all(failure.release == "hop 1" and "scale" in failure.detail for failure in found)


def test_point_14_a_defect_that_is_the_same_everywhere_is_found_in_the_part_alone():
    wrong = AddedLaw.wrong
    few = patch.multiple("graphveil.audit.central.many_draws", MOST=100_000, WIDE=50)
    with few, patch.object(AddedLaw, "wrong", lambda law: wrong(law) if law._clean.ndim == 1 else iter(())):
        assert not list(many_draws(one_table(200)))
        with noise_cut_at_two_sigma():
            assert [failure.release for failure in many_draws(one_table(200))]


@pytest.mark.parametrize(
    ("mechanism", "clean"),
    [
        (EdgeFlips(1.0, 9000), np.arange(0, 9000, 5)),
        (GumbelTop(1.0, 2, 40, 100), np.linspace(0, 2, 4000).reshape(40, 100)),
        (RandomizedResponse(1.0, 4), np.arange(9000) % 4),
    ],
)
def test_a_part_of_a_wide_release_has_the_law_of_the_mechanism(mechanism, clean):
    small, part = part_of(mechanism, clean)
    numbers = getattr(small, "pairs", np.size(part))
    assert 0.9 * WIDE <= numbers <= WIDE
    law, noise = law_of(small, part), Noise(5)
    law.add([small.apply(part, noise) for _ in range(300)])
    assert not list(law.wrong())


def test_noise_divided_by_ten_on_a_release_of_one_number_turns_the_audit_red():
    """Ballot's ``test``: calibration records would pay 28.1 for 4.0."""
    with a_tenth_of_the_noise_on_one_number():
        found = audit_method(BALLOT, RECORD, runs=1, samples=10_000, outside=False)
    assert found.verdict == RED
    assert any(f.check == "noise" and f.release == "test" and "scale" in f.detail for f in found.failures)


def test_a_curator_that_hands_back_less_noise_than_it_draws_is_found():
    run = recorded(Gap(steps=4), RECORD)
    with half_the_noise_handed_back():
        assert {f.release for f in many_draws(run, 200)} == {"mean", "hop 1", "hop 2"}


def test_one_number_of_a_table_without_its_noise_is_found():
    run = recorded(Gap(steps=4), RECORD)
    with half_the_noise_on_the_last_number():
        assert {f.release for f in many_draws(run)} == {step.name for step in run.plan.steps}


@pytest.mark.parametrize(
    ("mechanism", "clean", "wrong"),
    [
        (RandomizedResponse(1.0, 4), np.arange(12) % 4, RandomizedResponse(1.3, 4)),
        (EdgeFlips(1.0, 66), np.arange(0, 66, 5), EdgeFlips(1.3, 66)),
        (AskedFlips(1.0, 99), np.stack([np.arange(0, 99, 3), np.arange(33) % 2]), AskedFlips(1.3, 99)),
        (GumbelTop(1.0, 2, 3, 5), np.linspace(0, 2, 15).reshape(3, 5), GumbelTop(0.7, 2, 3, 5)),
    ],
)
def test_categories_sets_and_choices_have_laws_too(mechanism, clean, wrong):
    noise = Noise(3)
    for drawing, expected in ((mechanism, True), (wrong, False)):
        law = law_of(mechanism, clean)
        law.add([drawing.apply(clean, noise) for _ in range(DRAWS)])
        assert (not list(law.wrong())) == expected


def test_slots_are_drawn_with_what_the_run_has_answered():
    run = recorded(BALLOT, RECORD)
    seen = {event.name: event.clean for event in run.recorder.events}
    (curator, tape), *_ = curators(run, 1, lambda: ManyDraws(2))
    step = run.plan.step("probe")
    all_steps(curator, step, answer_of(step, run))
    assert np.array_equal(tape.clean, seen["probe"]) and len(tape.drawn) == 2
    assert not answer_of(run.plan.step("hop 1"), run).any() and "hop 1" not in seen
