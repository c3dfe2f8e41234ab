"""A prediction is for a person, not for a row: data in another order are aligned by id, refused, or said to be taken in order."""

import json
import warnings

import networkx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import graphveil as gv
from graphveil.audit.central.neighbours import worst_case_graph
from graphveil.cli.app import main
from graphveil.errors import DataWarning, InputError
from graphveil.graph import write_npz
from graphveil.graph.validate import validate

RECORD = gv.NodeLevel(8.0)
HEARD = {"assume": "homophilous", "steps": 3, "combiner_steps": 3}
WITH_ROWS = {
    "ballot": (gv.Ballot(**HEARD), RECORD),
    "ballot published votes": (gv.Ballot(**HEARD, publish="noisy"), RECORD),
    "ballot edge": (gv.Ballot(epochs=2), gv.EdgeLevel(4.0)),
    "gap": (gv.Gap(steps=2), RECORD),
    "gap bounded": (gv.Gap(steps=2), gv.NodeLevel(8.0, adjacency="bounded-degree", max_degree=12)),
    "dpdgc": (gv.Dpdgc(steps=2, code_steps=2), RECORD),
    "dp-sage": (gv.DpSage(steps=2), RECORD),
    "nip-gnn": (gv.NipGnn(), RECORD),
    "edge-rand": (gv.EdgeRand(epochs=2), gv.EdgeLevel(4.0)),
    "lpgnn": (gv.Lpgnn(epochs=1), gv.Local(features=1.0, labels=1.0, edges="raw")),
}
OWN_FEATURES = {
    "dp-mlp": (gv.DpMlp(steps=2), RECORD),
    "mlp": (gv.Mlp(epochs=2), gv.NonPrivate()),
    "dpar": (gv.Dpar(steps=2), gv.NodeLevel(8.0, adjacency="node")),
    "ballot features": (gv.Ballot(assume="features", steps=2), RECORD),
}


def permuted(data, order, ids=True):
    """The same people in another order."""
    order = torch.as_tensor(order)
    place = torch.empty(len(order), dtype=torch.long)
    place[order] = torch.arange(len(order))
    x = data.x.to_dense() if data.x.layout != torch.strided else data.x
    other = Data(x=x[order], y=data.y[order], edge_index=place[data.edge_index], num_classes=data.num_classes)
    for mask in ("train_mask", "val_mask", "test_mask"):
        other[mask] = data[mask][order]
    if ids:
        other.ids = [data.ids[int(node)] for node in order]
    return other


def fitted(data, method, promise):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return method.fit(data, promise, seed=1)


@pytest.fixture(scope="module")
def data():
    data = worst_case_graph(seed=7)[0]
    data.ids = [f"person {node}" for node in range(data.num_nodes)]
    return data


@pytest.fixture(scope="module")
def other(data):
    return permuted(data, np.random.default_rng(5).permutation(data.num_nodes))


def by_person(data, answers):
    return {name: answers[row] for row, name in enumerate(data.ids)}


def test_a_permuted_cora_gives_everybody_the_same_prediction(cora):
    cora.ids = torch.arange(cora.num_nodes)
    model = fitted(cora, gv.Ballot(assume="homophilous", steps=5, combiner_steps=5), RECORD)
    order = np.random.default_rng(0).permutation(cora.num_nodes)
    assert torch.equal(model.predict(permuted(cora, order)), model.predict(cora)[torch.as_tensor(order)])


@pytest.mark.filterwarnings("ignore::graphveil.errors.DataWarning")
@pytest.mark.parametrize("name", WITH_ROWS)
def test_people_in_another_order_keep_their_predictions(data, other, tmp_path, name):
    model = fitted(data, *WITH_ROWS[name])
    model.save(tmp_path / "run")
    for asked in (model, gv.load_model(tmp_path / "run")):
        before, after = by_person(data, asked.predict_proba(data)), by_person(other, asked.predict_proba(other))
        assert all(torch.allclose(before[name], after[name], atol=1e-6) for name in data.ids)
        assert asked.score(data) == asked.score(other)
    out_of_order = model.predict_proba(permuted(data, range(data.num_nodes - 1, -1, -1), ids=False))
    assert not torch.allclose(out_of_order.flip(0), model.predict_proba(data), atol=1e-6)


@pytest.mark.filterwarnings("ignore::graphveil.errors.DataWarning")
def test_noisy_predictions_for_anybody_are_aligned_too(data, other):
    model = fitted(data, *WITH_ROWS["ballot published votes"])
    before, after = model.predict_proba(data, "charge"), model.predict_proba(other, "charge")
    assert all(torch.equal(by_person(data, before)[name], by_person(other, after)[name]) for name in data.ids)


def told(model, data):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.predict(data)
    return [str(one.message) for one in caught if issubclass(one.category, DataWarning)]


@pytest.mark.parametrize("name", ["ballot", "gap", "lpgnn"])
def test_without_ids_it_is_said_that_rows_are_in_the_order_of_training(data, other, name):
    bare = data.clone()
    bare.ids = None
    for trained_on in (data, bare):
        model = fitted(trained_on, *WITH_ROWS[name])
        assert any("in the order of training" in line for line in told(model, bare))
    assert not any("order" in line for line in told(fitted(data, *WITH_ROWS[name]), other))


@pytest.mark.parametrize("name", OWN_FEATURES)
def test_predictions_from_own_features_need_no_order(data, name):
    bare = data.clone()
    bare.ids = None
    model = fitted(bare, *OWN_FEATURES[name])
    order = np.arange(data.num_nodes)[::-1].copy()
    backwards = permuted(data, order)
    assert torch.allclose(model.predict_proba(backwards).flip(0), model.predict_proba(bare), atol=1e-6)
    assert not any("order" in line for line in told(model, backwards))


def test_where_no_order_is_needed_no_ids_are_kept(data, tmp_path):
    fitted(data, *OWN_FEATURES["dp-mlp"]).save(tmp_path / "run")
    assert not (tmp_path / "run" / "curator").exists()


@pytest.mark.filterwarnings("ignore::graphveil.errors.DataWarning")
def test_what_cannot_be_aligned_is_refused(data, tmp_path):
    model, stranger, bare = fitted(data, *WITH_ROWS["gap"]), data.clone(), data.clone()
    stranger.ids = [*data.ids[:3], "somebody else", *data.ids[4:]]
    bare.ids = None
    with pytest.raises(InputError, match="id of row 3 is not in the training data"):
        model.predict(stranger)
    with pytest.raises(InputError, match="has none to align them with"):
        fitted(bare, *WITH_ROWS["gap"]).predict(data)
    model.save(tmp_path / "run")
    (tmp_path / "run" / "curator" / "ids.json").unlink()
    with pytest.raises(InputError, match="its folder 'curator' is not here"):
        gv.load_model(tmp_path / "run").predict(data)


def test_no_id_leaves_the_curator_and_none_is_kept_as_it_is(data, tmp_path):
    fitted(data, *WITH_ROWS["gap"]).save(tmp_path / "run")
    kept = json.loads((tmp_path / "run" / "curator" / "ids.json").read_text())
    assert len(kept["digests"]) == len(set(kept["digests"])) == data.num_nodes
    for path in (path for path in (tmp_path / "run").rglob("*") if path.is_file()):
        content = path.read_bytes()
        assert b"person " not in content
        assert path.parent.name == "curator" or not any(one.encode() in content for one in kept["digests"])
    fitted(data, *WITH_ROWS["gap"]).save(tmp_path / "again")
    again = json.loads((tmp_path / "again" / "curator" / "ids.json").read_text())
    assert not set(again["digests"]) & set(kept["digests"])


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (["a", "b"], "one id per node"),
        (["a"] * 200, "ids must differ"),
        (np.linspace(0, 1, 200), "whole numbers or text"),
    ],
    ids=["too few", "twice", "fractions"],
)
@pytest.mark.filterwarnings("ignore::graphveil.errors.DataWarning")
def test_bad_ids_are_one_clear_line(data, ids, said):
    bad = data.clone()
    bad.ids = ids[: data.num_nodes]
    with pytest.raises(InputError, match=said):
        validate(bad)


@pytest.mark.filterwarnings("ignore::graphveil.errors.DataWarning")
def test_ids_travel_with_data(data, tmp_path):
    from graphveil.graph.data.preparation import subgraph
    from graphveil.graph.formats.convert import from_networkx, to_networkx

    path = write_npz(data, tmp_path / "graph.npz")
    loaded = gv.load_dataset(path, seed=0)
    assert validate(loaded).ids.tolist() == data.ids
    keep = np.arange(data.num_nodes) % 2 == 1
    assert validate(subgraph(data, keep)).ids.tolist() == data.ids[1::2]
    assert from_networkx(to_networkx(data)).ids == data.ids
    named = networkx.Graph([("bob", "eve"), ("eve", "ann")])
    assert from_networkx(named).ids == ["bob", "eve", "ann"]


def test_ids_of_imported_tables_stay_with_the_graph(tmp_path, capsys):
    (tmp_path / "edges.csv").write_text("from,to\nann,bob\nbob,eve\n")
    with pytest.raises(SystemExit):
        main(["import", "--edges", str(tmp_path / "edges.csv"), "--out", str(tmp_path / "graph.npz")])
    assert sorted(gv.load_dataset(tmp_path / "graph.npz", seed=0).ids) == ["ann", "bob", "eve"]


def test_predict_prints_ids_and_how_rows_were_taken(data, other, tmp_path, capsys):
    fitted(data, *WITH_ROWS["gap"]).save(tmp_path / "run")
    first, second = write_npz(data, tmp_path / "first.npz"), write_npz(other, tmp_path / "second.npz")

    def predict(path, *flags):
        with pytest.raises(SystemExit) as stop:
            main(["predict", str(tmp_path / "run"), "--data", str(path), "--json", *flags])
        out, err = capsys.readouterr()
        assert not stop.value.code, err
        body = json.loads(out)
        return body["rows"], {row["node"]: row["prediction"] for row in body["predictions"]}, err

    assert predict(first)[1] == predict(second)[1] and set(predict(first)[1]) == set(data.ids)
    assert predict(second)[0] == "aligned by id"
    rows, _, err = predict(second, "--in-order")
    assert "in the order of training" in rows and "in the order of training" in err


def test_no_query_of_a_method_sees_ids(data):
    class Curious(gv.DpMlp):
        card = gv.Card(**{**gv.DpMlp.card.to_json(), "name": "curious"})

        def learn(self, curator, coins, progress):
            seen.append(curator.open_records().ids)
            return super().learn(curator, coins, progress)

    seen = []
    fitted(data, Curious(epochs=1), gv.EdgeLevel(4.0))
    assert seen == [None]
