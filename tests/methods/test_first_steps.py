"""What a newcomer does wrong is answered in one clear line; what they look at in a notebook is a table."""

import warnings

import numpy as np
import pytest

import graphveil as gv
from graphveil.audit.central.neighbours import worst_case_graph
from graphveil.errors import DataWarning, InputError
from graphveil.graph.data.measures import statistics
from graphveil.privacy.plan import Slot

FACTS = gv.PublicFacts(100, 3, 2)


@pytest.fixture
def data():
    return worst_case_graph(seed=1)[0]


@pytest.mark.parametrize("wrong", [8, "node", None, {"epsilon": 8}])
def test_what_is_no_promise_is_said(data, wrong):
    with pytest.raises(InputError, match=r"a promise is something like graphveil\.NodeLevel\(epsilon=8\)"):
        gv.DpMlp().fit(data, wrong)


@pytest.mark.parametrize(
    ("field", "value"), [("epsilon", "8"), ("epsilon", None), ("epsilon", True), ("delta", "1e-5")]
)
def test_numbers_are_numbers(field, value):
    with pytest.raises(InputError, match=rf"{field} must be a (number|positive)"):
        gv.NodeLevel(**{"epsilon": 8.0, field: value})


def test_modes_are_refused_when_they_are_given():
    with pytest.raises(InputError, match="gap has no mode 'publish'; it has: sound, published"):
        gv.Gap(mode="publish")


def test_data_without_labels_are_not_learnt_from(data):
    del data.y
    with pytest.raises(InputError, match=r"data\.y is missing: dp-mlp learns from labels"):
        gv.DpMlp().fit(data, gv.NodeLevel(8.0, 1e-3))


def test_the_split_that_errors_name_is_there(data):
    del data.train_mask
    with pytest.raises(InputError, match=r"graphveil\.random_split\(data, seed=0\)"):
        gv.DpMlp().fit(data, gv.NodeLevel(8.0, 1e-3))
    assert gv.random_split(data, seed=0).train_mask.any()


def doubts(promise, nodes=100):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        gv.DpMlp().plan(gv.PublicFacts(nodes, 3, 2), promise)
    return [str(warning.message) for warning in said if issubclass(warning.category, DataWarning)]


@pytest.mark.parametrize("nodes", [2, 9, 10, 99, 100, 1000, 1001, 10**4, 10**6])
def test_the_default_delta_never_warns_about_itself(nodes):
    assert doubts(gv.NodeLevel(1.0), nodes) == [] == doubts(gv.EdgeLevel(1.0), nodes)
    assert "exposed outright" in doubts(gv.NodeLevel(1.0, min(2 / nodes, 0.99)), nodes)[0] if nodes > 2 else True


def test_budgets_that_protect_nobody_are_said_to():
    assert "e^1000 times" in doubts(gv.NodeLevel(1000.0))[0]
    assert "nobody is protected" in doubts(gv.NodeLevel(np.inf))[0]
    assert doubts(gv.NodeLevel(16.0)) == []


def test_adaptive_slots_show_the_noise_they_can_have():
    plan = gv.Ballot().plan(FACTS, gv.NodeLevel(4.0))
    slots = {step.name: step for step in plan.steps if isinstance(step, Slot)}
    for slot in slots.values():
        least, most = plan.noise_range(slot)
        assert least == slot.release(plan.mu * np.sqrt(slot.max_share)).mechanism.sigma
        assert (most is None) == (slot.min_share == 0) and (most is None or most >= least)
    told = {step.get("slot"): step.get("noise") for step in plan.to_json()["releases"]}
    assert told["test"][0] == told["test"][1] > 0 and told["own"][1] is None
    assert gv.Ballot().plan(FACTS, gv.NodeLevel(np.inf)).noise_range(slots["test"]) == (None, None)


def test_ballot_says_that_it_did_not_use_the_graph_and_why(data, tmp_path):
    model = gv.Ballot(assume="features").fit(data, gv.NodeLevel(4.0, 1e-3), seed=0)
    assert model.predictor.note == "the graph was not used: it was declared to say nothing (assume=features)"
    quiet = gv.Ballot().fit(data, gv.NodeLevel(0.05, 1e-3), seed=0)
    assert "too few contacts to be heard through the noise" in quiet.predictor.note
    model.save(tmp_path / "run")
    assert gv.load_model(tmp_path / "run").predictor.note == model.predictor.note
    assert gv.Ballot(assume="homophilous").fit(data, gv.NodeLevel(4.0, 1e-3), seed=0).predictor.note == ""


def test_notebooks_show_tables(data):
    promise = gv.NodeLevel(4.0, 1e-3)
    model = gv.Ballot(assume="features").fit(data, promise, seed=0)
    facts, plan = gv.DpMlp().facts(data), gv.Ballot().plan(FACTS, promise)
    for shown, said in (
        (facts, "public facts"),
        (plan, "adaptive Gaussian noise"),
        (model, "the graph was not used"),
        (model.certificate, "PRIVACY CERTIFICATE"),
        (statistics(data), "homophily"),
    ):
        html = shown._repr_html_()
        assert said in html and html.count("<table>") == html.count("</table>") >= 1
    evil = gv.Plan(promise, FACTS, (gv.Release.gaussian("<script>", 1.0, {"train": 1.0}, 2, "l"),))
    assert "<script>" not in evil._repr_html_()
