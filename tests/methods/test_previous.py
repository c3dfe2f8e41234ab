"""Month after month: released numbers carry over, nothing else does, and the certificate says what all months cost together."""

import json
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

import graphveil as gv
from graphveil.audit.central.conformance import check_private_method
from graphveil.audit.central.neighbours import neighbours, worst_case_graph
from graphveil.audit.central.replay import Recorder, Recording
from graphveil.errors import DataWarning, InputError
from graphveil.methods.ballot import tally
from graphveil.methods.previous import met_again, weight_of
from graphveil.methods.run_folder import CURATOR, IDS
from graphveil.privacy.accounting.loss import gaussian_epsilon, gaussian_mu
from graphveil.runs.load import load_model
from graphveil.runs.verify import check_run

PROMISE = gv.NodeLevel(4.0, 1e-3, adjacency="record")
BOTH = gaussian_epsilon(math.sqrt(2) * gaussian_mu(4.0, 1e-3), 1e-3)
METHODS = {
    "dp-mlp": gv.DpMlp(steps=3),
    "ballot": gv.Ballot(assume="homophilous", steps=3, combiner_steps=3),
    "roster": gv.Roster(steps=4),
}
NAMED = pytest.mark.parametrize("name", METHODS)


def graph(seed=1):
    data, names = worst_case_graph(seed)
    data.ids = [f"AC{number:03d}" for number in range(data.num_nodes)]
    return data, names


DATA, AWKWARD = graph()


def renewed(gone=3, seed=0):
    """The next export: other order, the first ``gone`` people have left, as many are new."""
    order = torch.from_numpy(np.random.default_rng(seed).permutation(DATA.num_nodes))
    other = DATA.clone()
    other.x, other.y = DATA.x[order].clone(), DATA.y[order].clone()
    other.edge_index = torch.argsort(order)[DATA.edge_index]
    for mask in ("train_mask", "val_mask", "test_mask"):
        other[mask] = DATA[mask][order].clone()
    other.ids = [f"NEW{person}" if person < gone else f"AC{person:03d}" for person in order.tolist()]
    return other


def fitted(method, data=DATA, seed=1, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return method.fit(data, PROMISE, seed=seed, on_bad_rows="zero", **more)


@NAMED
def test_both_months_are_composed_exactly_and_said_everywhere(name, tmp_path):
    october = fitted(METHODS[name])
    model = fitted(METHODS[name], renewed(), seed=2, previous=october)
    certificate = model.certificate
    assert certificate.together == pytest.approx(BOTH, rel=1e-5) and certificate.epsilon <= 4.0
    assert certificate.earlier[0].certificate == october.certificate.to_json()["digest"]
    assert f"epsilon {certificate.together:.6g} at delta 0.001 for people who were in this run" in str(certificate)
    model.save(tmp_path / "run")
    assert check_run(tmp_path / "run").disagreements == ()
    assert load_model(tmp_path / "run").certificate == certificate
    third = fitted(METHODS[name], renewed(seed=3), seed=3, previous=load_model(tmp_path / "run"))
    thrice = gaussian_epsilon(math.sqrt(3) * gaussian_mu(4.0, 1e-3), 1e-3)
    assert len(third.certificate.earlier) == 2 and third.certificate.together == pytest.approx(thrice, rel=1e-5)


def test_a_certificate_that_understates_the_sum_or_drops_a_run_does_not_verify(tmp_path):
    method = METHODS["dp-mlp"]
    fitted(method, seed=2, previous=fitted(method)).save(tmp_path / "run")
    body = json.loads((tmp_path / "run" / "certificate.json").read_text())
    for forged in (body | {"together": 4.0}, {k: v for k, v in body.items() if k != "earlier"}):
        (tmp_path / "run" / "certificate.json").write_text(json.dumps(forged))
        assert any("together" in line for line in check_run(tmp_path / "run").disagreements)


def test_a_run_without_a_predecessor_says_nothing_about_one():
    body = fitted(METHODS["dp-mlp"]).certificate.to_json()
    assert not {"earlier", "together"} & set(body)


class Reader(gv.Roster):
    """Planted: it reads what the curator of the first month keeps."""

    folder = None

    def learn_on(self, previous, curator, coins, progress):
        private = json.loads((self.folder / CURATOR / IDS).read_text())
        noise = np.frombuffer(bytes.fromhex(private["key"]), dtype=np.uint8).astype(float)
        then = replace(previous.predictor, bias=previous.predictor.bias + noise.mean())
        return super().learn_on(replace(previous, predictor=then), curator, coins, progress)


def two_worlds(name, tmp_path):
    """Folders of the first month on neighbouring graphs with everything that was released frozen."""
    method, recorder = METHODS[name], Recorder()
    plan = method.plan(method.facts(DATA), PROMISE)
    recording = Recording(method, plan, DATA, 1, recorder)
    recording.run(DATA, recorder).save(tmp_path / "here")
    neighbour = next(one for one in neighbours(DATA, AWKWARD, PROMISE) if one.record is not None)
    recording.replay(neighbour)[0].save(tmp_path / "there")
    return tmp_path / "here", tmp_path / "there"


def second_months(method, folders):
    """The second month after either world, with the same seed."""
    for folder in folders:
        type(method).folder = folder
        yield fitted(method, renewed(), seed=2, previous=load_model(folder)).predictor.arrays()


def same(one, other):
    return all(np.array_equal(one[name], other[name]) for name in one)


@NAMED
def test_the_second_month_reads_nothing_of_the_first_but_what_was_released(name, tmp_path):
    assert same(*second_months(METHODS[name], two_worlds(name, tmp_path)))


def test_a_method_that_reads_what_the_first_curator_keeps_is_found(tmp_path):
    assert not same(*second_months(Reader(steps=4), two_worlds("roster", tmp_path)))


class Nosy(gv.DpMlp):
    """Planted: it looks at this month's records to decide how much of the last it takes."""

    def learn_on(self, previous, curator, coins, progress):
        peeked = float(curator._private.labels.sum())
        then = replace(previous.predictor, weights=previous.predictor.weights * (1 + peeked))
        return super().learn_on(replace(previous, predictor=then), curator, coins, progress)


def after(method):
    """The method, with a month before it."""
    before = fitted(METHODS[method.name])

    class Later(type(method)):
        def fit(self, data, promise, **more):
            data = data.clone()
            data.ids = DATA.ids if data.num_nodes == DATA.num_nodes else None
            return super().fit(data, promise, previous=before, **more)

    return Later(**method.get_params())


@NAMED
def test_the_second_month_keeps_the_sensitivities_of_its_plan(name):
    check_private_method(after(METHODS[name]), [PROMISE])


def test_a_second_month_that_peeks_is_found_by_the_same_suite():
    with pytest.raises(gv.GraphveilError, match="checks failed"):
        check_private_method(after(Nosy(steps=3)), [PROMISE])


def test_everybody_takes_over_the_code_that_is_theirs():
    method, other = METHODS["roster"], renewed(seed=1)
    october, cold = fitted(method), fitted(method, other).predictor.codes
    found = fitted(method, other, previous=october).predictor.codes
    for row, who in enumerate(other.ids):
        own = (cold[row] + october.predictor.codes[int(who[2:])]) / 2 if who.startswith("AC") else cold[row]
        np.testing.assert_allclose(found[row], own, atol=1e-9)


def test_everybody_takes_over_the_tallies_that_are_theirs(monkeypatch):
    method, other = METHODS["ballot"], renewed(gone=DATA.num_nodes // 2, seed=1)
    october, seen, merge = fitted(method), [], tally.merge
    monkeypatch.setattr(tally, "merge", lambda *given: seen.append(given[3]) or merge(*given))
    found = fitted(method, other, previous=october).predictor
    ((table, variance),) = seen
    then = dict(zip(october.predictor.receivers.tolist(), october.predictor.table, strict=True))
    new = [other.ids[row].startswith("NEW") for row in found.receivers]
    assert 0 < sum(new) < len(new) and np.isinf(variance[new]).all()
    for place, row in enumerate(found.receivers.tolist()):
        if not new[place]:
            np.testing.assert_array_equal(table[place], then[int(other.ids[row][2:])])
            assert 0 < variance[place] < math.inf


def test_each_month_counts_by_the_inverse_of_its_variance():
    assert weight_of(1.0, 1.0) == 0.5 and weight_of(1.0, 2.0) == 0.8 and weight_of(2.0, 1.0) == pytest.approx(0.2)
    assert weight_of(1.0, 0.0) == 0.0 == weight_of(math.inf, 1.0)


def test_a_method_that_cannot_take_over_starts_anew_and_still_counts():
    gap = gv.Gap(hops=1)
    model = fitted(gap, renewed(), previous=fitted(gap))
    assert not model.certificate.earlier[0].taken and model.certificate.together > 4.0
    mixed = fitted(METHODS["dp-mlp"], previous=fitted(gap))
    assert not mixed.certificate.earlier[0].taken
    np.testing.assert_array_equal(mixed.predictor.weights, fitted(METHODS["dp-mlp"]).predictor.weights)


@pytest.mark.parametrize(
    ("promise", "said"),
    [
        (gv.NodeLevel(4.0, 1e-3, adjacency="node"), "ask for the same level, adjacency and relation"),
        (gv.NodeLevel(4.0, 1e-3, adjacency="record", relation="replace"), "they do not compose"),
        (gv.EdgeLevel(4.0, 1e-3), "they do not compose"),
        (gv.NonPrivate(), "not at level local or none"),
    ],
)
def test_another_kind_of_promise_is_refused(promise, said):
    before = fitted(METHODS["dp-mlp"])
    with pytest.raises(InputError, match=said):
        METHODS["dp-mlp"].fit(DATA, promise, previous=before, on_bad_rows="zero")


def test_a_run_for_which_nothing_holds_is_refused():
    before = fitted(gv.DpMlp(mode="published", epochs=1))
    with pytest.raises(InputError, match="no promise holds for the run before"):
        fitted(METHODS["dp-mlp"], previous=before)


def test_people_who_cannot_be_told_are_refused():
    october, other = fitted(METHODS["roster"]), renewed()
    other.ids = [f"X{row}" for row in range(other.num_nodes)]
    with pytest.raises(InputError, match="none of these ids is in the run before"):
        fitted(METHODS["roster"], other, previous=october)
    fewer, _ = worst_case_graph(1, clique=9)
    with pytest.raises(InputError, match=r"and no ids: give data\.ids"):
        fitted(METHODS["roster"], fewer, previous=october)
    with pytest.warns(DataWarning, match="no ids"):
        bare = DATA.clone()
        del bare.ids
        METHODS["roster"].fit(bare, PROMISE, seed=2, previous=october, on_bad_rows="zero")


def test_how_many_are_new_is_counted():
    october, other = fitted(METHODS["roster"]), renewed(gone=4)
    people = met_again(october, np.array(other.ids))
    assert people == {"known": DATA.num_nodes - 4, "new": 4, "left": 4}
    assert met_again(october, None) is None
