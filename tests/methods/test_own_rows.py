"""Rows that a table's noise does not cover before others: one rule for predictions, saved runs and certificates."""

import shutil
import warnings

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

import graphveil as gv
from graphveil.audit.central.neighbours import worst_case_graph
from graphveil.audit.central.replay import Recorder
from graphveil.errors import InputError, PrivacyError
from graphveil.runs.verify import verify_run

BOUNDED = gv.NodeLevel(4.0, adjacency="bounded-degree", max_degree=12)
K = gv.KNeighborLevel(5, 4.0)
ONE_ROW_EACH = {
    "dpdgc k-neighbor": (gv.Dpdgc(steps=2, code_steps=2), K, {"table"}),
    "dpdgc own lists": (gv.Dpdgc(steps=2, code_steps=2), gv.NodeLevel(4.0), {"table"}),
    "dpdgc published": (gv.Dpdgc(mode="published", hidden=4, width=4, epochs=1), K, {"table"}),
    "gap bounded-degree": (gv.Gap(steps=2), BOUNDED, {"hop1", "hop2"}),
    "gap published": (gv.Gap(mode="published", hidden=4, epochs=1), K, {"hop1", "hop2"}),
    "dp-sage bounded-degree": (gv.DpSage(steps=2), BOUNDED, {"table"}),
}
COVERED = {
    "dpdgc record": (gv.Dpdgc(steps=2, code_steps=2, rows="listed-by"), gv.NodeLevel(4.0)),
    "gap k-neighbor": (gv.Gap(steps=2), K),
    "dp-sage record": (gv.DpSage(steps=2), gv.NodeLevel(4.0)),
}


@pytest.fixture(scope="module")
def data():
    return worst_case_graph(seed=7)[0]


def fitted(data, method, promise, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return method.fit(data, promise, seed=1, **how)


@pytest.fixture(scope="module", params=ONE_ROW_EACH)
def case(request, data, tmp_path_factory):
    """A model, the folder it was saved to, and the tables that must not be published."""
    method, promise, tables = ONE_ROW_EACH[request.param]
    model, folder = fitted(data, method, promise), tmp_path_factory.mktemp("runs") / "run"
    model.save(folder)
    return model, folder, tables


def table_of(data, arcs):
    """The clean table of random codes of one number each (1 or -1) along these arcs, and the model."""
    data, recorder = data.clone(), Recorder()
    data.edge_index = torch.as_tensor(arcs)
    model = fitted(data, gv.Dpdgc(steps=2, codes="random", width=1, rows="listed-by"), K, tape=recorder)
    return next(event.clean for event in recorder.events if event.name == "table"), model


def test_row_r_moves_by_5_where_the_root_of_5_is_declared(data):
    """Why the rule is there: without its five edges to people of one code, row r loses 5 and the other rows sqrt 5."""
    nodes = np.arange(data.num_nodes)
    codes, _ = table_of(data, np.stack([nodes, np.roll(nodes, -1)]))  # everybody hears the one before
    alike = np.flatnonzero(np.roll(codes[:, 0], -1) > 0)
    r, near = alike[0], alike[1:6]
    star = np.stack([np.append(near, np.full(5, r)), np.append(np.full(5, r), near)])
    (with_edges, model), (without, _) = table_of(data, star), table_of(data, np.zeros((2, 0), dtype=np.int64))
    moved = np.abs(with_edges - without)[:, 0]
    declared = next(made for made in model.certificate.releases if made.name == "table").sensitivity["train"]
    assert moved[r] == pytest.approx(5.0, rel=1e-6)
    assert np.linalg.norm(np.delete(moved, r)) <= declared == pytest.approx(5**0.5, rel=1e-6)
    assert model.certificate.own_rows == ("table",)


@pytest.mark.parametrize("access", ["public-graph", "charge"])
def test_rows_that_the_noise_does_not_cover_are_not_given_to_everybody(case, data, access):
    model = case[0]
    with pytest.raises(PrivacyError, match="for node r alone"):
        model.predict(data, access=access)
    with pytest.raises(PrivacyError, match="for node r alone"):
        model.predict()
    assert len(model.predict(data)) == data.num_nodes


@pytest.mark.parametrize("name", COVERED)
def test_where_the_noise_covers_every_row_predictions_may_be_public(data, name):
    model = fitted(data, *COVERED[name])
    assert len(model.predict(data, access="public-graph")) == data.num_nodes


def test_what_may_be_published_holds_no_row_for_one_node_alone(case, data, tmp_path):
    model, folder, tables = case
    assert not tables & set(load_file(folder / "model.safetensors"))
    assert set(load_file(folder / "curator" / "own_rows.safetensors")) == tables
    assert (folder / "curator").stat().st_mode & 0o077 == 0
    assert torch.equal(gv.load_model(folder).predict_proba(data), model.predict_proba(data))
    shutil.copytree(folder, tmp_path / "published", ignore=shutil.ignore_patterns("curator"))
    assert verify_run(tmp_path / "published")[0] == []
    with pytest.raises(InputError, match="stays with the curator"):
        gv.load_model(tmp_path / "published")


def test_the_certificate_says_so_in_one_sentence(case):
    from graphveil.methods.base import OWN_ROWS

    certificate = case[0].certificate
    assert OWN_ROWS.format(", ".join(certificate.own_rows)) in certificate.assumptions
    assert "own row excluded" in str(certificate)


def test_a_model_file_with_everybodys_rows_does_not_verify(case, tmp_path):
    """As an earlier version wrote it, or somebody who put the rows back."""
    from safetensors.numpy import save_file

    from graphveil.files import write_json
    from graphveil.methods.run_folder import file_digests

    shutil.copytree(case[1], tmp_path / "run")
    run = tmp_path / "run"
    save_file(
        load_file(run / "model.safetensors") | load_file(run / "curator" / "own_rows.safetensors"),
        run / "model.safetensors",
    )
    write_json(run / "manifest.json", file_digests(run))
    assert any("must not be published" in line for line in verify_run(run)[0])


def test_exchanged_rows_of_the_curator_are_noticed(case, tmp_path):
    shutil.copytree(case[1], tmp_path / "run")
    path = tmp_path / "run" / "curator" / "own_rows.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\x00")
    assert verify_run(tmp_path / "run")[0] == ["the files in curator are not those that were saved"]


def test_a_predictor_that_does_not_say_which_arrays_are_rows_publishes_none(data, tmp_path):
    class Silent:
        def __init__(self, made):
            self.logits, self.config, self.arrays = made.logits, made.config, made.arrays

    model = fitted(data, *ONE_ROW_EACH["gap bounded-degree"][:2])
    model.predictor = Silent(model.predictor)
    model.save(tmp_path / "run")
    assert load_file(tmp_path / "run" / "model.safetensors") == {}


def test_the_command_says_that_a_prediction_is_for_its_node_alone(case, data, tmp_path, capsys):
    from graphveil.cli.app import main
    from graphveil.graph import write_npz

    path = write_npz(data, tmp_path / "graph.npz")
    for flags, code, said in (
        ((), 0, "that node and nobody else"),
        (("--access", "public-graph"), 2, "for node r alone"),
    ):
        with pytest.raises(SystemExit) as stop:
            main(["predict", str(case[1]), "--data", str(path), *flags])
        assert (stop.value.code or 0) == code and said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("method", "promise", "access", "words"),
    [
        (gv.DpMlp(steps=2), gv.NodeLevel(4.0), "own-row", "own features: show it to that node"),
        (gv.DpMlp(steps=2), gv.NodeLevel(4.0), "public-graph", "anybody may see"),
        (gv.DpMlp(steps=2), gv.EdgeLevel(4.0), "own-row", "anybody may see"),
        (gv.Roster(steps=2), gv.NodeLevel(4.0), "own-row", "contact list, and may reveal both"),
        (gv.Roster(steps=2), gv.NodeLevel(4.0), "charge", "anybody may see"),
        (gv.Gap(steps=2), BOUNDED, "own-row", "that node and nobody else"),
    ],
)
def test_a_model_says_who_may_see_its_predictions(data, method, promise, access, words):
    assert words in fitted(data, method, promise).audience(access)


def test_no_sentence_allows_what_predict_refuses(data):
    model = fitted(data, gv.Roster(steps=2), gv.NodeLevel(4.0))
    with pytest.raises(PrivacyError, match="contact list"):
        model.audience("public-graph")


@pytest.mark.parametrize("access", ["own-row", "public-graph"])
@pytest.mark.parametrize(
    ("method", "promise"),
    [(gv.DpMlp(steps=2), gv.NonPrivate()), (gv.Gap(mode="published", epochs=1), gv.EdgeLevel(4.0))],
    ids=["not private", "a claim with gaps"],
)
def test_where_no_promise_holds_nobody_is_named_who_may_see_predictions(data, method, promise, access):
    said = fitted(data, method, promise).audience(access)
    assert "no promise holds" in said and "anybody may" not in said


def test_predictions_of_a_seeded_run_are_not_for_anybody(data):
    method, promise = gv.DpMlp(steps=2), gv.EdgeLevel(4.0)
    assert "seeded: not for release" in fitted(data, method, promise).audience()
    assert "seeded" not in method.fit(data, promise, on_bad_rows="zero").audience()
