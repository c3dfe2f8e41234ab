"""Brute force: no record, entry or edge moves a release of Roster by more than ``roster/bounds.py`` says, on any history."""

import math

import numpy as np
import pytest

from graphveil.graph.lists import GRID
from graphveil.learn import engine
from graphveil.learn.engine.local import Local
from graphveil.learn.grids import coefficient_grain
from graphveil.methods.roster import Roster
from graphveil.methods.roster.bounds import SHARES, grain, one_record
from graphveil.methods.roster.records import Blocks
from graphveil.methods.roster.summands import CHUNK
from graphveil.methods.roster.weights import Weights
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.promise import NodeLevel, Relation
from tests.methods.roster_histories import CLIP, Free, history, moved
from tests.methods.roster_witness import KINDS, LABELLED, WORLDS, World, sparse_world

PAID = {**dict.fromkeys(LABELLED, ("mean", *SHARES)), **dict.fromkeys(("query", "other"), ("mean", "rows"))}


def record_bounds(relation, classes):
    return {"mean": 1.0 if relation is Relation.ZERO_OUT else 2.0, **one_record(relation, classes)}


class Worst:
    """The largest changes seen, as parts of their bounds; a larger one fails at once."""

    def __init__(self):
        self.parts = {}

    def see(self, name, kind, change, bound, slack=1e-9):
        assert change <= bound * (1 + 1e-9) + slack, (name, kind, change, bound)
        self.parts[name, kind] = max(self.parts.get((name, kind), 0.0), change / bound if bound else 0.0)

    def largest(self, name):
        return max(part for (release, _), part in self.parts.items() if release == name)


@WORLDS
@pytest.mark.parametrize("cover", [False, True])
def test_every_sum_is_that_of_the_recipe_computed_record_by_record(cover, a_world):
    """Fifty small worlds, and one of more people than a kernel reads at a time."""
    rng = np.random.default_rng(10 + cover)
    for people in [None] * 50 + [2 * CHUNK]:
        world = a_world(rng, people=people)
        past = history(rng, world, cover)
        told, expected = past.sums(world), past.witnessed(world)
        for name, value in expected.items():
            error = np.abs(told[name] - value.reshape(told[name].shape)).max(initial=0.0)
            assert error <= 4 * len(world.y) * GRID / CLIP, (name, error)
        with engine.using(Local(1, records=2)):
            assert all(np.array_equal(told[name], value) for name, value in past.sums(world).items())


@WORLDS
@pytest.mark.parametrize("cover", [False, True])
def test_blanking_any_record_moves_each_release_by_at_most_its_bound_and_attains_it(cover, a_world):
    rng, worst = np.random.default_rng(cover), Worst()
    for _ in range(70):
        world = a_world(rng)
        past = history(rng, world, cover)
        before, bounds = past.sums(world), record_bounds(Relation.ZERO_OUT, world.classes)
        for r, kind in enumerate(world.kinds):
            for name, change in moved(before, past.sums(world.blank(r))).items():
                worst.see(name, kind, change, bounds[name] if name in PAID[kind] else 0.0)
    assert all(worst.largest(name) > 0.9999 for name in ("mean", "prior", "gradients"))
    assert worst.largest("probe") > 0.99 and worst.largest("rows") > 0.99
    assert {kind for _, kind in worst.parts} == set(KINDS)


@WORLDS
@pytest.mark.parametrize("cover", [False, True])
def test_replacing_any_record_moves_each_release_by_at_most_its_bound(cover, a_world):
    """Opposite features and another class, everything drawn anew, no label, no list."""
    rng, worst = np.random.default_rng(20 + cover), Worst()
    for _ in range(60):
        world = a_world(rng)
        past = history(rng, world, cover)
        before, bounds = past.sums(world), record_bounds(Relation.REPLACE, world.classes)
        for r, kind in enumerate(world.kinds):
            x = -world.x[r] if rng.random() < 0.5 else rng.normal(size=world.x.shape[1])
            contacts = tuple(int(j) for j in np.flatnonzero(rng.random(len(world.y)) < rng.choice([0.0, 0.3, 1.0])))
            other = world.replaced(r, x, int(rng.integers(-1, world.classes)), contacts)
            for name, change in moved(before, past.sums(other)).items():
                worst.see(name, kind, change, bounds[name] if name in PAID[kind] else 0.0)
    assert worst.largest("mean") > 0.9999 and worst.largest("prior") > 0.9999
    assert worst.largest("probe") > 0.95 and worst.largest("rows") > 0.99
    assert worst.largest("gradients") > (0.9 if a_world is sparse_world else 0.95)  # of more classes


def lonely(x, y, contacts, kind="train", nodes=70, classes=2):
    """One person with these features, label and contacts among empty slots."""
    features, labels = np.zeros((nodes, 2)), np.full(nodes, -1, dtype=np.int64)
    features[0], labels[0] = x, y
    return World(features, labels, tuple((0, j) for j in contacts), (kind,) + ("other",) * (nodes - 1), classes)


def past_of(nodes=70, classes=2, probe=0.0, prior=None, codes=None, features=None, weights=None):
    width = 2
    model = Blocks.zeros(width, nodes, classes)
    model.codes += 0 if codes is None else codes
    model.features += 0 if features is None else features
    prior = np.full(classes, 1 / classes) if prior is None else prior
    table = np.zeros((width + 2 * nodes, classes)) + probe
    return Free(np.zeros(width), prior, table, np.full(3, 0.01), model, weights or Weights(0.0, 1.0, 0.0, clip=CLIP))


def test_a_labelled_hub_moves_the_test_by_two_and_replaced_by_an_opposite_one_by_sqrt_13():
    past = past_of(probe=np.array([50.0, -50.0]))
    hub = lonely((1.0, 0.0), 0, range(1, 66))
    assert moved(past.sums(hub), past.sums(hub.blank(0)))["test"] == 2.0
    down = lonely((1.0, 0.0), 1, range(1, 2))
    found = moved(past.sums(hub), past.sums(down))["test"]
    assert 0.97 * math.sqrt(13) < found <= math.sqrt(13)


def test_replacing_a_record_attains_the_bounds_of_probe_gradients_and_rows():
    prior = np.array([0.98, 0.02])  # so that a deviation has length 1
    one, other = lonely((1.0, 0.0), 1, (1, 2)), lonely((-1.0, 0.0), 1, (3, 4))
    past = past_of(prior=prior)
    assert moved(past.sums(one), past.sums(other))["probe"] == pytest.approx(math.sqrt(2), abs=1e-6)
    flipped = Weights(1.0, 0.0, 0.0, clip=CLIP)
    past = past_of(weights=flipped, features=np.array([[-500.0, 500.0], [0.0, 0.0]]))
    for label, x in ((0, (1.0, 0.0)), (1, (-1.0, 0.0))):
        assert moved(past.sums(lonely(x, label, ())), past.sums(one.blank(0)))["gradients"] == pytest.approx(
            1, abs=1e-6
        )
    one, other = lonely((1.0, 0.0), 0, ()), lonely((-1.0, 0.0), 0, ())
    past = past_of(weights=flipped, features=np.zeros((2, 2)))
    assert moved(past.sums(one), past.sums(other))["gradients"] == pytest.approx(2, abs=0.02)  # but for the constant
    past = past_of(weights=flipped, features=np.array([[500.0, -500.0], [0.0, 0.0]]))
    one, other = (lonely((sign, 0.0), -1, (), "query") for sign in (1.0, -1.0))
    assert moved(past.sums(one), past.sums(other))["rows"] == pytest.approx(2.0, abs=1e-6)


def test_truncation_under_replace_is_charged_in_the_probe():
    """Two lists on the grid can be one step per number further apart than ideal ones."""
    for nodes, classes in ((30, 3), (100_000, 20)):
        facts = PublicFacts(nodes, 5, classes, kinds={"train": 20, "query": nodes - 20})
        steps = grain(facts, CLIP)["probe"]
        of_features = 2 * coefficient_grain(20, 1.0, classes)  # of two rows
        assert steps == pytest.approx(GRID * math.sqrt(nodes * classes) + of_features)
        kept, replaced = (
            Roster().plan(facts, NodeLevel(4.0, 1e-6, relation=relation)).release("probe").sensitivity["train"]
            for relation in ("zero-out", "replace")
        )
        assert replaced - math.sqrt(2) >= steps * (1 - 1e-9) and kept == 1


def test_shares_add_up_to_one_for_everybody_and_nobody_pays_for_what_reads_them_not():
    facts = PublicFacts(200, 5, 3, kinds={"train": 90, "calibration": 10, "query": 60, "other": 40})
    for relation in ("zero-out", "replace"):
        plan = Roster().plan(facts, NodeLevel(4.0, 1e-4, relation=relation))
        for kind in KINDS:
            losses = {step.name: step.loss(kind).mu for step in plan.steps if step.loss(kind).mu}
            assert set(losses) == set(PAID[kind])
            assert sum(mu**2 for mu in losses.values()) / plan.mu**2 == pytest.approx(1, abs=1e-6)
        assert plan.epsilon() <= 4.0 * (1 + 1e-9)
