"""The parts of Roster's proof for one edge, each against a dense grid or many draws, and the figures that follow from it."""

import math

import numpy as np
import pytest

from graphveil.methods.roster import Roster
from graphveil.methods.roster.bounds import (
    COVERED,
    ROWS_SHARE,
    implied_mu,
    one_edge,
    one_entry,
    reading_bound,
    steepest,
    stretch,
)
from graphveil.methods.roster.weights import LEAST_FLOOR
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.promise import NodeLevel
from tests.methods.roster_histories import CLIP, mixed
from tests.methods.roster_witness import softmax


def test_the_steepest_slope_of_a_shortened_residual_is_that_of_a_dense_grid():
    q = np.linspace(1e-6, 1.0, 200_001)
    lam = np.where(q <= 0.5, 2 * q * (1 - q), 0.5)
    rng = np.random.default_rng(0)
    for _ in range(60):
        unit, slot, classes = rng.uniform(0.1, 1.1), rng.choice([0.0, 0.05, 0.3, 0.6]), int(rng.choice([2, 3, 10]))
        clip = rng.choice([0.01, 0.25, 1.0, 3.0])
        norm = np.sqrt(unit**2 * q**2 * classes / (classes - 1) + slot**2 * (1 - 1 / classes))
        largest = (unit * lam / np.maximum(clip, norm)).max()
        assert largest <= steepest(unit, clip, slot, classes) <= 1.001 * largest * (1 + 1e-4)


def test_softmax_residuals_are_no_steeper_than_the_slope_says():
    """Two residuals on their way through the clip, finite differences along random directions."""
    rng = np.random.default_rng(1)
    for classes in (2, 3, 7):
        for unit, slot, clip in ((1.0, 0.0, 0.25), (0.8, 0.5, 0.25), (1.0, 0.0, 1.0)):
            goal = np.eye(classes)[0]
            z = rng.normal(size=(20_000, classes)) * rng.choice([0.3, 1.0, 4.0], (20_000, 1))
            step = rng.normal(size=z.shape)
            step *= 1e-5 / np.linalg.norm(step, axis=1, keepdims=True)
            own = np.broadcast_to(slot * (1 / classes - goal), z.shape)
            ends = [np.concatenate([unit * (softmax(end) - goal), own], axis=1) for end in (z, z + step)]
            a, b = (w * np.minimum(1, clip / np.linalg.norm(w, axis=1, keepdims=True)) for w in ends)
            slope = (np.linalg.norm(a - b, axis=1) / 1e-5).max() / clip
            assert slope <= steepest(unit, clip, slot, classes) * (1 + 1e-4)


def test_one_entry_moves_what_a_list_reads_by_at_most_the_stretch():
    for floor in (1, 2, 3, 4, 16, 64):
        d = np.arange(0, 5000)
        before, after = (1 / np.sqrt(np.maximum(entries, floor)) for entries in (d, d + 1))
        reads = after + (before - after) * d  # the new entry, and all old ones that weigh less
        lists = np.sqrt(d * (before - after) ** 2 + after**2)
        assert reads.max() * math.sqrt(floor) <= stretch(floor) * (1 + 1e-12)
        assert lists.max() * math.sqrt(floor) <= 1 + 1e-12
        c = 1 - np.sqrt(d[floor:] / (d[floor:] + 1))
        assert (4 * c + 2 * c**2).max() <= 2 / floor  # two ends whose lists are the same
        assert floor == 1 or reads.max() * math.sqrt(floor) == pytest.approx(stretch(floor))


def test_every_decision_leaves_room_for_reading_lists():
    """The rule for heavy lists is part of the proof: B is never negative, and not cut at 0."""
    with pytest.raises(ValueError, match="no room"):
        reading_bound(1.0, math.sqrt(1.01), 0.0, 2 - 1, 0.25, 2)
    for angle in np.linspace(0, math.pi / 2, 400):
        for own in (0.0, 0.7):
            for mass in (0.3, 1.6, 3.0, 100.0, 1e9):
                weights = mixed(math.cos(angle), math.sin(angle), own * math.sin(angle), mass, 3)
                assert weights.reading >= 0 and weights.floor >= LEAST_FLOOR >= 2
                edge = math.sqrt(2) * weights.lists / (weights.unit * math.sqrt(weights.floor))
                slope = steepest(weights.unit, weights.clip, weights.slot, 3)
                edge += 2 * slope * stretch(weights.floor) * weights.reading / math.sqrt(weights.floor)
                assert edge <= COVERED * (1 + 1e-12)
                assert weights.scale * weights.clip == pytest.approx(CLIP)


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_the_implied_figures_are_those_of_the_review(classes):
    """Without cover: an entry costs max(1.361, sqrt(.97 2C/(C-1))) mu, an edge at most 2.7225 mu or what two rows cost."""
    plan = Roster(edge_cover=False).plan(PublicFacts(1000, 5, classes), NodeLevel(4.0, 1e-4))
    row = ROWS_SHARE * 2 * classes / (classes - 1)
    entry = one_entry(False, classes)
    of_labelled = {name: change for name, change in entry.items() if name != "rows"}
    assert implied_mu(plan, of_labelled, CLIP) / plan.mu == pytest.approx(1.3611, abs=1e-3)
    assert implied_mu(plan, {"rows": entry["rows"]}, CLIP) / plan.mu == pytest.approx(math.sqrt(row), abs=1e-5)
    costs = [implied_mu(plan, changes, CLIP) / plan.mu for changes in one_edge(False, classes)]
    assert costs == pytest.approx([2.7225, math.sqrt(1.8525 + row), math.sqrt(2 * row)], abs=1e-3)
    if classes == 2:
        assert math.sqrt(row) == pytest.approx(1.970, abs=1e-3) and max(costs) == pytest.approx(2.786, abs=1e-3)
