"""The curator admits what the plan contains, writes before it releases, and filters adaptive slots."""

import json

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from graphveil.errors import PrivacyError
from graphveil.graph.validate import validate
from graphveil.privacy.accounting.loss import gaussian_epsilon
from graphveil.privacy.curator import Curator, PaperCurator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.ledger import Ledger
from graphveil.privacy.mechanisms import DpGradient, Gaussian
from graphveil.privacy.noise import Noise
from graphveil.privacy.plan import Plan, Release, Slot, calibrate_scale, split_mu, total_mu
from graphveil.privacy.promise import EdgeLevel, NodeLevel

PROMISE = NodeLevel(2.0, 1e-3)


@pytest.fixture
def graph():
    kinds = torch.arange(8) % 4
    data = Data(
        x=torch.eye(8, dtype=torch.float64),
        y=torch.tensor([0, 1] * 4),
        edge_index=torch.tensor([[0, 1], [1, 0]]),
        train_mask=kinds < 2,
        val_mask=kinds == 2,
        test_mask=kinds == 3,
    )
    data.num_classes, data.directed = 2, False
    return validate(data)


def curator(graph, *steps, ledger=None, promise=PROMISE, kind=Curator):
    return kind(graph, Plan(promise, PublicFacts.of(graph), steps), Noise(0), ledger or Ledger())


def counted(name="count", sigma=1.0, dimension=1):
    return Release(name, Gaussian(sigma, dimension), {"train": 1.0}, "a count")


def test_what_the_plan_does_not_contain_is_refused(graph):
    with pytest.raises(PrivacyError, match="no release named"):
        curator(graph, counted()).release("something else", lambda private: [0.0])


def test_a_release_happens_once(graph):
    door = curator(graph, counted())
    door.release("count", lambda private: [1.0])
    with pytest.raises(PrivacyError, match="already happened"):
        door.release("count", lambda private: [1.0])


def test_a_value_of_another_shape_than_planned_is_refused(graph):
    with pytest.raises(PrivacyError, match="the plan says 1"):
        curator(graph, counted()).release("count", lambda private: [1.0, 2.0])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_value_that_is_not_finite_is_refused(graph, bad):
    with pytest.raises(PrivacyError, match="not finite"):
        curator(graph, counted()).release("count", lambda private: [bad])


def test_query_labels_are_never_handed_out(graph):
    seen = {}
    curator(graph, counted()).release("count", lambda private: seen.setdefault("labels", private.labels)[:1] * 1.0)
    hidden = ~(graph.masks["train"] | graph.masks["calibration"])
    assert (seen["labels"][hidden] == -1).all() and (graph.labels[hidden] >= 0).all()


def test_the_ledger_is_on_disk_before_the_query_runs(graph, tmp_path):
    path = tmp_path / "ledger.jsonl"
    door = curator(graph, counted(), ledger=Ledger(path))

    def killed(private):
        assert json.loads(path.read_text())["name"] == "count"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        door.release("count", killed)
    assert len(path.read_text().splitlines()) == 1


def test_gradient_steps_are_counted_and_limited(graph):
    release = Release("own", DpGradient(1.0, 1.0, 3, 2), {"train": 1.0}, "rows")
    steps = curator(graph, release).gradients("own", lambda private, rows: rows)
    for _ in range(3):
        assert steps.step(lambda rows, batch: np.zeros(2)).shape == (2,)
    with pytest.raises(PrivacyError, match="all of its 3 steps"):
        steps.step(lambda rows, batch: np.zeros(2))


def test_only_kinds_that_pay_take_part_in_gradients(graph):
    release = Release("own", DpGradient(1.0, 1.0, 1, 2), {"train": 1.0, "query": 0.0}, "rows")
    steps = curator(graph, release).gradients("own", lambda private, rows: rows)
    assert np.array_equal(steps._prepared, np.flatnonzero(graph.masks["train"]))


def test_poisson_batches_may_be_empty_and_still_get_noise(graph):
    release = Release("own", DpGradient(1.0, 1.0, 50, 2, rate=1e-9), {"train": 1.0}, "rows")
    steps = curator(graph, release).gradients("own", lambda private, rows: rows)
    outputs = [steps.step(lambda rows, batch: np.zeros(2) if len(batch) == 0 else np.ones(2)) for _ in range(50)]
    assert np.std(outputs) > 0.5


def slots(*names, sensitivity=None, share=1.0):
    bound = sensitivity or {"train": 1.0, "calibration": 1.0, "query": 1.0}
    return tuple(Slot(name, bound, share, 4, "adaptive") for name in names)


def test_adaptive_shares_may_add_up_to_the_whole_budget_and_no_further(graph):
    door = curator(graph, *slots("a", "b", "c"))
    door.release("a", lambda private: np.zeros(4), share=0.6)
    door.release("b", lambda private: np.zeros(4), share=0.4)
    assert total_mu(door.ledger.spent("train")) <= door.plan.mu
    with pytest.raises(PrivacyError, match="would exceed the promise"):
        door.release("c", lambda private: np.zeros(4), share=1e-9)
    assert [entry.name for entry in door.ledger.entries] == ["a", "b"]  # a refusal leaves no trace


def test_fixed_releases_beside_slots_count_against_the_same_budget(graph):
    door = curator(graph, *slots("a"), counted(sigma=0.05))
    door.release("a", lambda private: np.zeros(4), share=1.0)
    with pytest.raises(PrivacyError, match="would exceed the promise"):
        door.release("count", lambda private: [1.0])


def test_a_kind_that_is_not_read_keeps_its_budget(graph):
    train, calibration = ({kind: 1.0} for kind in ("train", "calibration"))
    steps = (*slots("a", sensitivity=train), *slots("b", sensitivity=calibration))
    door = curator(graph, *steps)
    door.release("a", lambda private: np.zeros(4), share=1.0)
    door.release("b", lambda private: np.zeros(4), share=1.0)


@pytest.mark.parametrize("share", [None, 0.0, -0.1, 0.7])
def test_a_share_outside_the_bounds_of_its_slot_is_refused(graph, share):
    with pytest.raises(PrivacyError, match="share"):
        curator(graph, *slots("a", share=0.5)).release("a", lambda private: np.zeros(4), share=share)


def test_an_adaptive_plan_promises_its_budget_not_its_spend(graph):
    plan = curator(graph, *slots("a")).plan
    assert plan.epsilon() == pytest.approx(gaussian_epsilon(plan.mu, 1e-3)) == pytest.approx(2.0)


def test_records_are_open_at_edge_level_without_their_lists_and_closed_elsewhere(graph):
    with pytest.raises(PrivacyError, match="private at node level"):
        curator(graph).open_records()
    assert curator(graph, promise=EdgeLevel(1.0, 1e-4)).open_records().lists.arcs == 0


def test_peeking_exists_in_published_mode_only(graph):
    assert curator(graph, kind=PaperCurator).peek("look", lambda private: 7) == 7
    assert not hasattr(curator(graph), "peek")


def test_amplification_is_not_claimed_unless_slots_were_sampled(graph):
    plan = Plan(PROMISE, PublicFacts.of(graph), (counted(),), sampled=0.2)
    careless = Curator(graph, plan, Noise(0), Ledger())
    with pytest.raises(PrivacyError, match="sample_slots"):
        careless.release("count", lambda private: [1.0])
    door = Curator(graph, plan, Noise(0), Ledger())
    kept = door.sample_slots()
    door.release("count", lambda private: [float(private.present[~kept].sum())])
    assert not door._private.present[~kept].any()


def test_shares_must_not_exceed_the_whole():
    with pytest.raises(PrivacyError):
        split_mu(PROMISE, {"a": 0.7, "b": 0.4})


@pytest.mark.parametrize("target", [0.03, 1.0, 7.0, 300.0])
def test_calibration_never_overshoots_and_is_tight(target):
    scale = calibrate_scale(lambda z: 5.0 / z, target)
    assert 5.0 / scale <= target
    assert 5.0 / (scale / 1.001) > target
