"""Contact lists from predictions that read them: found from own-row predictions, not from what is published."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data

import graphveil as gv
from graphveil.attacks.link_teller import OWN_LIST
from graphveil.attacks.lists import BLIND


def lonely(nodes=200, seed=0):
    """Half of the people list one person, whom they have in common with others of their class."""
    coins = torch.Generator().manual_seed(seed)
    labels = torch.arange(nodes) % 2
    x = torch.rand(nodes, 4, generator=coins)
    x[torch.arange(nodes), labels] += 1
    hubs = torch.randint(0, 10, (nodes,), generator=coins) * 2 + labels
    chance = torch.rand(nodes, generator=coins)
    data = Data(x=x, y=labels, edge_index=torch.stack([torch.arange(nodes), hubs]))
    data.train_mask, data.val_mask, data.test_mask = chance < 0.7, (chance >= 0.7) & (chance < 0.8), chance >= 0.8
    data.num_classes, data.directed = 2, True
    return data


@pytest.fixture(scope="module")
def model():
    return gv.Roster().fit(lonely(), gv.NodeLevel(16.0), seed=0)


def test_a_list_of_one_entry_is_read_off_its_owners_prediction(model):
    result = gv.ListReconstruction().run(model, lonely())
    assert result.facts["recovered"] > 0.9
    assert result.auc > 0.97


def test_what_is_published_says_hardly_anything_about_a_list(model):
    result = gv.ListReconstruction().run(model, lonely())
    assert result.facts["recovered_from_published"] < 0.1
    assert result["published predictions"].figures["auc"] < 0.75


def test_a_method_that_reads_no_lists_at_prediction_gives_nothing():
    data = lonely()
    result = gv.ListReconstruction().run(gv.DpMlp(steps=5).fit(data, gv.NodeLevel(4.0), seed=0), data)
    assert result.facts["recovered"] == 0 and result.auc == 0.5 and BLIND in result.notes


def test_without_lists_of_one_entry_there_is_nobody_to_attack():
    data = lonely()
    data.edge_index = torch.cat([data.edge_index, data.edge_index.roll(1, 1)[[1, 0]][:, :0]], dim=1)[:, :0]
    with pytest.raises(gv.InputError, match="exactly one entry"):
        gv.ListReconstruction().run(gv.DpMlp(steps=5).fit(data, gv.NodeLevel(4.0), seed=0), data)


def test_link_teller_says_that_it_is_blind_to_own_lists(model):
    data = lonely()
    result = gv.LinkTeller().run(model, data, gv.sample_pairs(data, "balanced", 20, seed=0))
    assert OWN_LIST in result.notes
    assert not any("does not read the graph" in note for note in result.notes)


def test_members_of_a_saved_roster_are_training_and_calibration_nodes(model):
    result = gv.Membership("lr").run_on(model, model.method, model.certificate.promise, lonely(), seed=0)
    data = lonely()
    assert result.facts["target_members"] == int((data.train_mask | data.val_mask).sum())
