"""A paper's options by data set: one table on the card, read by the command line and by the reproduced tables."""

import pytest

import graphveil as gv
from graphveil.cli.flags import PromiseFlags
from graphveil.errors import InputError
from graphveil.experiments.papers import find
from graphveil.experiments.reproduce import reproduction
from graphveil.methods.registry import describe, method_names, modes_of, presets

APPENDIX_A = {
    "cora": (16, 2),
    "lastfm-asia": (16, 0),
    "pubmed": (16, 0),
    "facebook-pages": (4, 2),
    "amazon-photo": (4, 2),
}


@pytest.mark.parametrize("method", ["graph-privatizer", "lpgnn", "rr-edges"])
def test_steps_of_kprop_are_those_of_appendix_a(method):
    found = {data: (one["feature_steps"], one["label_steps"]) for data, one in presets(method).items()}
    assert found == APPENDIX_A == {d: tuple(o.values()) for d, o in describe(method)["presets"].items()}


def test_every_preset_is_taken_by_every_mode_of_its_method():
    for name in method_names():
        for data, options in presets(name).items():
            for mode in modes_of(name):
                chosen = PromiseFlags(mode=mode, preset=data).method(name).get_params()
                assert {key: chosen[key] for key in options} == options


def test_what_is_set_by_hand_goes_above_a_preset():
    flags = PromiseFlags(mode="published", preset="amazon-photo", settings=["label_steps=1"])
    chosen = flags.method("graph-privatizer")
    assert (chosen.feature_steps, chosen.label_steps, chosen.mode) == (4, 1, "published")
    assert gv.Lpgnn(**gv.preset("lpgnn", "pubmed")).label_steps == 0


def test_a_preset_that_is_not_there_is_refused_with_those_that_are(graphveil):
    with pytest.raises(InputError, match="has no preset 'karate'; it has: cora, lastfm-asia"):
        gv.preset("graph-privatizer", "karate")
    words = ("plan", "gap", "--preset", "cora", "--level", "edge", "--epsilon", 1)
    code, _, err = graphveil(*words, "--nodes", 100, "--features", 5, "--classes", 2)
    assert code == 2 and "gap has no preset 'cora'; it has: none" in " ".join(err.split())


def test_the_card_shows_presets(graphveil):
    code, out, _ = graphveil("methods", "graph-privatizer")
    assert code == 0 and "preset pubmed: feature_steps=16, label_steps=0" in out


def test_reproduced_tables_run_with_the_presets():
    paper, (entry,) = find("graph-privatizer/table6")
    runs = [run for run in reproduction(paper, entry, seeds=1).runs if run.mode == "published"]
    assert {run.data["name"] for run in runs} == {"cora", "pubmed", "facebook-pages", "amazon-photo"}
    for run in runs:
        assert (run.options["feature_steps"], run.options["label_steps"]) == APPENDIX_A[run.data["name"]]
