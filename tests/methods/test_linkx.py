"""LINKX: what it reads, how it is saved, and that nothing about it is private."""

import numpy as np
import pytest
import torch

import graphveil as gv
from graphveil.audit.central.neighbours import worst_case_graph
from graphveil.errors import InputError
from graphveil.learn.linkx import Linkx as Network
from graphveil.methods.linkx import Linkx


def test_the_network_adds_both_embeddings_to_their_mixture():
    network = Network(3, 4, 2, 2, embeds=True).initialise(np.random.default_rng(0))
    x, a = torch.randn(5, 3, dtype=torch.float64), torch.randn(5, 4, dtype=torch.float64)
    own = network.own[1](torch.selu(network.own[0](x)))
    near = network.near[0](a)
    mixed = network.mixed[1](torch.selu(network.mixed[0](torch.selu(torch.cat([own, near], 1)))))
    expected = network.head(torch.selu(mixed + own + near))
    torch.testing.assert_close(network((x, a)), expected)
    with pytest.raises(InputError, match="as wide"):
        Network(3, 4, 2, 2, embeds=False)


def test_it_learns_heterophilous_edges_and_survives_saving(tmp_path):
    """Edges alone tell the class (phi = -1): far above the 50 % of guessing."""
    data = gv.load_dataset("csbm:phi=-1.0,nodes=600,features=10,average_degree=20", seed=0)
    model = Linkx(epochs=30, learning_rate=5e-3, hidden=16).fit(data, gv.NonPrivate(), seed=0)
    assert model.score(data) > 0.75 and not model.certificate.holds
    model.save(tmp_path / "run")
    assert torch.equal(gv.load_model(tmp_path / "run").predict_proba(data), model.predict_proba(data))


def test_it_claims_nothing():
    with pytest.raises(InputError, match="not private"):
        Linkx().fit(worst_case_graph()[0], gv.NodeLevel(1.0))


@pytest.mark.parametrize("name", ["csbm:phi", "csbm:phi=high", "csbm:size=3"])
def test_options_in_the_name_of_a_generated_graph_are_checked(name):
    with pytest.raises(InputError, match="csbm"):
        gv.load_dataset(name)
