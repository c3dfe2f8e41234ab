"""Every planned release is drawn many times through the curator: releases of one number and of tables, reached or not.

Healthy code fails a check of one release with probability at most 1e-9; here there are about a hundred of them.
"""

from unittest.mock import patch

import numpy as np
import pytest

from graphveil.audit import audit_method
from graphveil.audit.central.conformance import awkward_graph, example_promise
from graphveil.audit.central.many_draws import DRAWS, ManyDraws, all_steps, answer_of, curators, law_of, many_draws
from graphveil.audit.central.replay import Recording
from graphveil.audit.result import RED
from graphveil.methods.ballot import Ballot
from graphveil.methods.dp_sage import DpSage
from graphveil.methods.dpar import Dpar
from graphveil.methods.dpdgc import Dpdgc
from graphveil.methods.edge_rand import EdgeRand
from graphveil.methods.gap import Gap
from graphveil.methods.nip_gnn import NipGnn
from graphveil.privacy.mechanisms import EdgeFlips, GumbelTop, RandomizedResponse
from graphveil.privacy.noise import Noise
from graphveil.privacy.promise import EdgeLevel, NodeLevel
from tests.audit.mutants.core import (
    a_tenth_of_the_noise_on_one_number,
    half_the_noise_handed_back,
    half_the_noise_on_the_last_number,
)

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


def test_every_release_is_drawn_ten_thousand_times_whether_a_history_reaches_it_or_not():
    run, counted = recorded(BALLOT, RECORD), []
    real = law_of

    def counting(mechanism, clean):
        law, number = real(mechanism, clean), len(counted)
        counted.append(0)
        add = law.add

        def counted_add(drawn):
            counted[number] += len(drawn)
            add(drawn)

        law.add = counted_add
        return law

    with patch("graphveil.audit.central.many_draws.law_of", counting):
        assert not list(many_draws(run))
    assert len(counted) == len(run.plan.steps) == 11 and min(counted) >= DRAWS == 10_000


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
