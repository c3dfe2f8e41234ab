"""Next month's export: other order, some people gone, others new. Everybody gets the prediction that is theirs, by id."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import graphveil as gv
from graphveil.errors import DataWarning, InputError
from graphveil.graph import powerlaw_sbm

PROMISE = gv.NodeLevel(8.0, 1e-3, adjacency="record")
METHODS = {"roster": gv.Roster(), "ballot": gv.Ballot(assume="homophilous"), "dp-mlp": gv.DpMlp()}


def october():
    data = gv.random_split(powerlaw_sbm(3, nodes=60, features=5, classes=3, homophily=0.9), seed=0)
    data.ids = [f"AC{number:03d}" for number in range(60)]
    return data


DATA = october()
MODELS = {name: method.fit(DATA, PROMISE, seed=1) for name, method in METHODS.items()}


def export(people, fresh, seed):
    """These people of October in this order, and so many new ones somewhere among them; edges among those who are there."""
    rng = np.random.default_rng(seed)
    order = [*people, *range(-1, -fresh - 1, -1)]
    rng.shuffle(order)
    place = {person: row for row, person in enumerate(order)}
    edges = [(place[a], place[b]) for a, b in DATA.edge_index.T.tolist() if a in place and b in place]
    for new in range(-1, -fresh - 1, -1):
        known = [person for person in people if person % 2]
        if known:
            friend = place[known[int(rng.integers(len(known)))]]
            edges += [(place[new], friend), (friend, place[new])]
    other = DATA.clone()
    rows = torch.tensor([max(person, 0) for person in order])
    other.x, other.y = DATA.x[rows].clone(), DATA.y[rows].clone()
    other.edge_index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T
    other.ids = [f"AC{person:03d}" if person >= 0 else f"NEW{-person}" for person in order]
    for mask in ("train_mask", "val_mask", "test_mask"):
        other[mask] = DATA[mask][rows].clone()
    return other, order


@pytest.mark.parametrize("name", MODELS)
@given(kept=st.sets(st.integers(0, 59), min_size=5), fresh=st.integers(0, 4), seed=st.integers(0, 99))
def test_everybody_gets_their_own_prediction_whatever_the_order(name, kept, fresh, seed):
    model = MODELS[name]
    other, order = export(sorted(kept), fresh, seed)
    found = model.predict_proba(other).numpy()
    alone, row = export(sorted(kept), fresh, seed + 1)  # the same people, edges and newcomers in another order
    if fresh == 0:
        again = model.predict_proba(alone).numpy()
        for person in kept:
            np.testing.assert_allclose(found[order.index(person)], again[row.index(person)], atol=1e-12)
    # the same lists, with everybody who left still there but without contacts
    still = DATA.clone()
    inside = torch.isin(DATA.edge_index, torch.tensor(sorted(kept))).all(dim=0)
    still.edge_index = DATA.edge_index[:, inside]
    if fresh == 0:
        whole = model.predict_proba(still).numpy()
        for person in kept:
            np.testing.assert_allclose(found[order.index(person)], whole[person], atol=1e-12)
    assert found.shape == (len(kept) + fresh, 3) and np.isfinite(found).all()


def test_a_newcomer_is_scored_by_own_features_and_list():
    other, order = export(range(60), 1, 0)
    new = order.index(-1)
    alone = MODELS["roster"].predict_proba(other)[new]
    without = other.clone()
    without.edge_index = other.edge_index[:, (other.edge_index != new).all(dim=0)]
    assert not torch.allclose(alone, MODELS["roster"].predict_proba(without)[new])
    for name in ("ballot", "dp-mlp"):  # their predictions read no lists
        assert torch.allclose(MODELS[name].predict_proba(other)[new], MODELS[name].predict_proba(without)[new])


def test_newcomers_are_said_and_strangers_refused():
    other, _ = export(range(60), 1, 0)
    with pytest.warns(DataWarning, match="scored as newcomers"):
        MODELS["roster"].predict(other)
    other.ids = [f"X{row}" for row in range(61)]
    with pytest.raises(InputError, match="not in the training data"):
        MODELS["roster"].predict(other)


def test_methods_that_cannot_place_a_person_say_so():
    model = gv.Gap(hops=1).fit(DATA, gv.NodeLevel(8.0, 1e-3, adjacency="record"), seed=1)
    other, order = export(range(60), 1, 0)
    del order
    with pytest.raises(InputError, match="releases of one graph say nothing about another"):
        model.predict(other)
    gone, _ = export(range(50), 0, 0)
    with pytest.raises(InputError, match="releases of one graph say nothing about another"):
        model.predict(gone)


def test_without_ids_another_number_of_rows_is_refused_where_rows_matter():
    gone, _ = export(range(50), 0, 0)
    del gone.ids
    for name in ("roster", "ballot"):
        with pytest.raises(InputError, match="releases of one graph say nothing about another"):
            MODELS[name].predict(gone)
    assert len(MODELS["dp-mlp"].predict(gone)) == 50


def test_newcomers_are_nobody_elses_business():
    other, _ = export(range(60), 1, 0)
    with pytest.raises(InputError, match="people who came later"):
        MODELS["roster"].predict_proba(other, access="charge")
    assert len(MODELS["roster"].predict_proba(export(range(40), 0, 0)[0], access="charge")) == 40
