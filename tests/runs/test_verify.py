"""What a forger who knows the format can change in a saved run, and what ``verify`` says to it."""

import json
import warnings

import pytest

import graphveil as gv
from graphveil.audit.central.neighbours import worst_case_graph
from graphveil.cli.app import main
from graphveil.files import write_json
from graphveil.methods import registry
from graphveil.methods.local import LocalRecipe
from graphveil.methods.model import file_digests
from graphveil.runs.verify import verify_run
from tests.runs.forging import forge, release

NODE, REPLACE = gv.NodeLevel(4.0), gv.NodeLevel(4.0, relation="replace")
LOCAL = gv.Local(features=1.0, labels=1.0, edges="raw")


@pytest.fixture(scope="module")
def data():
    return worst_case_graph(seed=7)[0]


@pytest.fixture
def saved(data, tmp_path):
    def save(method, promise, seed=1, data=data):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            method.fit(data, promise, seed=seed).save(tmp_path / "run")
        assert verify_run(tmp_path / "run")[0] == []
        return tmp_path / "run"

    return save


@pytest.fixture
def verify(capsys):
    """The command's exit code and what it says as JSON."""

    def run(folder, *flags):
        with pytest.raises(SystemExit) as stop:
            main(["verify", str(folder), "--json", *flags])
        return int(stop.value.code or 0), json.loads(capsys.readouterr().out)

    return run


def test_gradient_noise_of_a_millionth_behind_a_group_of_minus_one_row_does_not_verify(saved):
    def edit(body):
        release(body, "own")["mechanism"].update(sigma=1e-6, group=[1, -1])

    assert "group" in verify_run(forge(saved(gv.Ballot(), NODE), edit))[0][0]


def test_a_group_of_one_row_with_half_the_noise_does_not_verify_under_replace(saved):
    def edit(body):
        mechanism = release(body, "own")["mechanism"]
        mechanism.update(sigma=mechanism["sigma"] / 2, group=[1, 0])

    assert "mechanism.group" in verify_run(forge(saved(gv.Ballot(), REPLACE), edit))[0][0]


@pytest.mark.parametrize(("noise", "explained"), [(1 - 1e-8, True), (0.99, False)])
def test_noise_of_an_earlier_version_that_lacks_the_reserve_for_rounding_is_called_so(saved, verify, noise, explained):
    def edit(body):
        for entry in body["releases"]:
            entry["mechanism"]["sigma"] *= noise

    code, told = verify(forge(saved(gv.Gap(steps=2), NODE), edit))
    (line,) = [line for line in told["disagreements"] if line.startswith("'holds' is recorded as True")]
    assert code == 1 and ("an earlier version" in line and "Train again" in line) == explained
    assert not explained or ("epsilon 4.0000000" in line and "where 4 was promised" in line)


TINY = {
    "sound": (gv.Dpdgc(steps=2, code_steps=2, row_norm=1e-8, rows="listed-by"), NODE),
    "published": (gv.Dpdgc(mode="published", hidden=4, width=4, epochs=1), gv.KNeighborLevel(2, 4.0)),
}


@pytest.mark.parametrize("mode", TINY)
def test_noise_and_sensitivity_both_divided_by_ten_thousand_do_not_verify(saved, mode):
    """Numbers of 1e-8 are not all the same number: they are compared relatively."""

    def edit(body):
        table = release(body, "table")
        table["mechanism"]["sigma"] /= 1e4
        table["sensitivity"] = {kind: bound / 1e4 for kind, bound in table["sensitivity"].items()}

    found = verify_run(forge(saved(*TINY[mode]), edit))[0]
    assert any("'table': mechanism.sigma" in line for line in found)
    assert any("'table': sensitivity.train" in line for line in found)


SENTENCES = {
    "ballot": (gv.Ballot(), NODE),
    "edge": (gv.Gap(hidden=4, epochs=2), gv.EdgeLevel(4.0)),
    "bounded": (gv.Gap(steps=2), gv.NodeLevel(4.0, adjacency="bounded-degree", max_degree=12)),
    "local": (gv.Lpgnn(epochs=1), LOCAL),
}


@pytest.mark.parametrize("key", ["public", "assumptions"])
@pytest.mark.parametrize("name", SENTENCES)
def test_replaced_public_and_assumptions_sentences_do_not_verify(saved, name, key):
    run = forge(saved(*SENTENCES[name]), lambda body: body.update({key: ["everything is protected"]}))
    assert any(f"{key!r} is recorded as ['everything is protected']" in line for line in verify_run(run)[0])


def test_a_sentence_slipped_in_does_not_verify(saved):
    run = forge(saved(gv.Ballot(), NODE), lambda body: body["assumptions"].insert(0, "everything is protected"))
    assert any("'assumptions'" in line for line in verify_run(run)[0])


def test_an_erased_seed_is_said_to_be_unknowable(saved, verify):
    run = saved(gv.Ballot(), NODE)
    assert not any("seed" in line for line in verify(run)[1]["unknown"])
    code, told = verify(forge(run, lambda body: body.update(seed=None)))
    assert code == 0 and any("a seed that was erased" in line for line in told["unknown"])


def test_notes_of_the_operator_are_said_to_be_unknowable(saved, data, verify):
    noted = data.clone()
    noted.notes = ("classes come from a census",)
    told = verify(saved(gv.Gap(steps=2), NODE, data=noted))[1]
    assert told["consistent"] and any("classes come from a census" in line for line in told["unknown"])


def test_noise_moved_from_one_adaptive_release_to_another_does_not_verify(saved):
    """The sum stays within mu^2, but the share of the mass is not chosen at run time."""

    def edit(body):
        release(body, "mass")["mechanism"]["sigma"] /= 9
        release(body, "own")["mechanism"]["sigma"] *= 100

    (found,) = verify_run(forge(saved(gv.Ballot(), NODE), edit))[0]
    assert "'mass' has taken the share 0.81" in found


@pytest.mark.parametrize("change", [{"lemma": "it is so"}, {"own_row_excluded": True}], ids=lambda c: next(iter(c)))
def test_no_field_of_an_adaptive_release_can_be_edited(saved, change):
    run = forge(saved(gv.Ballot(), NODE), lambda body: release(body, "mass").update(change))
    assert any(f"release 'mass': {next(iter(change))}" in line for line in verify_run(run)[0])


def test_a_model_with_other_options_than_the_certificate_does_not_verify(saved):
    run = saved(gv.Gap(steps=2), NODE)
    model = json.loads((run / "model.json").read_text())
    model["parameters"]["clip"] *= 2
    write_json(run / "model.json", model)
    write_json(run / "manifest.json", file_digests(run))
    assert verify_run(run)[0] == ["model.json is of another run: its parameters is not that of the certificate"]


@pytest.fixture
def foreign(saved):
    """A run of a method that was registered when it was made, and is not any more."""

    class Elsewhere(gv.DpMlp):
        card = gv.Card(**{**gv.DpMlp.card.to_json(), "name": "elsewhere"})

    gv.register(Elsewhere)
    run = saved(Elsewhere(steps=2), NODE)
    registry._REGISTERED.pop("elsewhere")
    return run


def test_of_a_method_that_is_not_here_the_arithmetic_is_verified_and_no_more_is_said(foreign, verify):
    code, told = verify(foreign)
    assert code == 3 and told["consistent"] and not told["rebuilt"]
    assert any("unknown method 'elsewhere'" in line for line in told["unknown"])


@pytest.mark.parametrize(
    "edit",
    [
        lambda body: release(body, "own")["mechanism"].update(sigma=0.1),
        lambda body: release(body, "own")["mechanism"].update(sigma=1e-6, group=[1, -1]),
        lambda body: body.update(epsilon=0.5),
        lambda body: body["costs"].update(train=0.5),
    ],
    ids=["noise", "group", "epsilon", "costs"],
)
def test_the_arithmetic_of_a_method_that_is_not_here_cannot_be_wrong(foreign, verify, edit):
    code, told = verify(forge(foreign, edit))
    assert code == 1 and told["disagreements"]


LISTS_ONLY = gv.Local("raw", "raw", 4.0)


@pytest.mark.parametrize(
    ("edit", "word"),
    [
        (lambda body: body["promise"].update(relation="replace"), "mechanism.relation"),
        (lambda body: [entry["mechanism"].pop("relation") for entry in body["releases"]], "mechanism.relation"),
        (lambda body: body["costs"].update(edge=4.0), "'costs'"),
        (lambda body: body["parameters"].update(edge_unit="edge"), "mechanism.budget"),
        (lambda body: [entry["sensitivity"].update(edge=1.0) for entry in body["releases"]], "sensitivity.edge"),
    ],
    ids=["relation", "noise of the other relation", "costs", "unit of the budget", "an edge in one list"],
)
def test_contact_lists_alone_cost_what_their_relation_says(data, saved, edit, word):
    run = saved(LocalRecipe(epochs=1, folds=2, histogram_rounds=2), LISTS_ONLY)
    assert any(word in line for line in verify_run(forge(run, edit))[0])


def test_of_a_method_that_is_not_here_no_exchange_is_promised_for_the_price_of_an_entry(saved):
    """Noise for an entry that comes or goes, under a promise about one that is exchanged: that costs twice as much."""

    def edit(body):
        body["method"] = "elsewhere"
        body["promise"].update(relation="replace", features="withheld", labels="withheld")
        body["costs"]["vertex"] = 0.0

    run = saved(LocalRecipe(epochs=1, folds=2), LISTS_ONLY)
    model = json.loads((run / "model.json").read_text())
    write_json(run / "model.json", model | {"method": "elsewhere"})
    found, epsilon = verify_run(forge(run, edit))
    assert epsilon is None and "is for the relation zero-out, replace is promised" in found[0]
