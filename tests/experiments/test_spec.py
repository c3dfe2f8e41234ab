"""Specifications: what they mean, and what is refused before anything runs."""

import pytest
import yaml

from graphveil.errors import InputError
from graphveil.experiments import expand, read_experiment
from graphveil.experiments.read import experiment_from


def runs_of(body):
    return expand(experiment_from(body, "s.yaml"), "s.yaml")


def refused(body, *words):
    with pytest.raises(InputError) as error:
        runs_of(body)
    assert all(word in str(error.value) for word in ("s.yaml", *words)), str(error.value)


def test_every_combination_becomes_one_run_with_its_own_id(body):
    runs = runs_of(body)
    assert len(runs) == len({run.id for run in runs}) == 2 * 2 * 2
    assert {(run.method, run.promise["epsilon"], run.seed) for run in runs} == {
        (method, epsilon, seed) for method in ("dp-mlp", "gap") for epsilon in (1, 4) for seed in (0, 1)
    }


def test_an_id_is_of_what_is_run_and_of_the_version_not_of_its_name(body, monkeypatch):
    before = [run.id for run in runs_of(body)]
    assert [run.id for run in runs_of(body | {"name": "another"})] == before
    labelled = body | {"methods": [{**entry, "label": f"m{n}"} for n, entry in enumerate(body["methods"])]}
    assert [run.id for run in runs_of(labelled)] == before
    assert not {run.id for run in runs_of(body | {"epsilons": [2]})} & set(before)
    from dataclasses import replace

    first = runs_of(body)[0]
    assert replace(first, version="0.0.0").id != first.id


def test_yaml_and_toml_say_the_same(body, tmp_path):
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(body))
    (tmp_path / "s.toml").write_text(
        'name = "small"\nepsilons = [1, 4]\nseeds = 2\n'
        '[[methods]]\nname = "dp-mlp"\noptions = {steps = 3}\n[[methods]]\nname = "gap"\noptions = {steps = 2, hidden = 4}\n'
        '[[data]]\nname = "powerlaw-sbm"\noptions = {nodes = 120, features = 6, classes = 3}\n'
        '[[promises]]\nlevel = "node"\n'
    )
    yaml_runs, toml_runs = (expand(read_experiment(tmp_path / name)) for name in ("s.yaml", "s.toml"))
    assert [run.id for run in yaml_runs] == [run.id for run in toml_runs]


def test_grids_take_what_they_leave_out_from_above_them(body):
    body["grids"] = [{"epsilons": [2]}, {"methods": ["mlp"], "promises": [{"level": "none"}], "repeats": 3}]
    runs = runs_of(body)
    assert [run.promise["epsilon"] for run in runs if run.method == "gap"] == [2, 2]
    assert [(run.seed, run.repeat) for run in runs if run.method == "mlp"] == [(None, 0), (None, 1), (None, 2)]


def test_seeds_are_a_number_a_list_or_a_range(body):
    for text, seeds in ((3, [0, 1, 2]), ([7, 5], [7, 5]), ("100-102", [100, 101, 102])):
        assert list(dict.fromkeys(run.seed for run in runs_of(body | {"seeds": text}))) == seeds


def test_the_relation_of_a_local_promise_is_that_of_the_file_not_a_default(body):
    lists = {"level": "local", "features": "raw", "labels": "raw", "edges": 2}
    relation = lambda **more: runs_of(body | {"methods": ["local"], "promises": [lists | more], "seeds": 1})[0].promise
    assert relation()["relation"] == relation(relation="zero-out")["relation"] == "zero-out"
    assert relation(relation="replace")["relation"] == "replace"
    refused(
        body
        | {"methods": ["local"], "promises": [lists | {"features": "withheld", "labels": 1, "relation": "zero-out"}]},
        "promises.0 with local",
        "contact lists alone",
    )


def test_parts_of_a_local_promise_may_have_several_budgets(body):
    local = {"level": "local", "features": "withheld", "labels": [1, 3], "edges": "raw"}
    runs = runs_of(body | {"methods": ["lpgnn"], "promises": [local | {"features": 3}], "seeds": 1})
    assert [run.promise["labels"] for run in runs] == [1.0, 3.0]


def without(body, field):
    return {key: value for key, value in body.items() if key != field}


def test_wrong_values_are_refused_with_file_field_and_fix(body):
    refused(body | {"methods": ["balot"]}, "methods.0", "ballot")
    refused(body | {"methods": [{"name": "gap", "options": {"hopps": 1}}]}, "methods.0", "hops")
    refused(body | {"methods": [{"name": "gap", "mode": "paper"}]}, "methods.0.mode", "published")
    refused(body | {"methods": [{"name": "ballot", "mode": "published"}]}, "methods.0", "no mode")
    refused(body | {"epsilons": [1, -2]}, "epsilons", "positive", "-2")
    refused(body | {"epsilons": [float("nan")]}, "epsilons", "positive")
    refused(body | {"promises": [{"level": "node", "epsilons": [0]}]}, "promises.0.epsilons", "positive")
    refused(body | {"promises": [{"level": "k-neighbor"}]}, "promises.0", "k-neighbor level needs k")
    refused(body | {"promises": [{"level": "nodes"}]}, "promises.0.level", "edge")
    refused(body | {"data": ["corra"]}, "data.0", "did you mean cora")
    refused(body | {"data": ["nowhere.npz"]}, "data.0", "does not exist")
    refused(body | {"data": [{"name": "cora", "prepare": "dpar"}]}, "data.0", "papers that do")
    refused(body | {"data": [{"name": "cora", "prepare": "top-clases:3"}]}, "data.0", "top-classes")
    refused(body | {"data": [{"name": "cora", "split": "thirds"}]}, "data.0", "random")
    refused(body | {"data": [{"name": "csbm", "options": {"size": 5}}]}, "data.0", "nodes")
    refused(body | {"seeds": "a-b"}, "seeds", "100-104")
    refused(body | {"seeds": [1, 1]}, "seeds", "twice")
    refused(body | {"seeds": -1}, "seeds", "empty")
    refused(body | {"epsilon": [1]}, "epsilon", "not known", "misspelled")
    refused(body | {"attacks": ["link-tell"]}, "attacks.0.name", "link-teller")
    refused(body | {"repeats": 2}, "seeds and repeats")


@pytest.mark.parametrize("field", ["methods", "data", "promises", "seeds", "epsilons"])
def test_an_empty_grid_is_refused(body, field):
    refused(body | {field: []}, field, "empty")
    refused(without(body, field), field.removesuffix("s"))


def test_two_things_of_one_name_are_refused(body):
    refused(body | {"methods": ["gap", "gap"]}, "methods", "'gap'", "label")
    refused(body | {"methods": [{"name": "gap", "label": "x"}, {"name": "dp-mlp", "label": "x"}]}, "methods", "'x'")
    refused(body | {"data": [*body["data"], *body["data"]]}, "data", "twice")
    named = {"methods": [{"name": "gap", "label": "mine"}]}
    other = {"methods": [{"name": "gap", "label": "mine", "options": {"hops": 1}}]}
    refused(body | {"grids": [named, other]}, "grids.1", "'mine'", "two variants")


def test_a_guarantee_that_a_method_does_not_have_is_refused(body):
    refused(body | {"methods": ["edge-rand"]}, "promises.0 with edge-rand", "does not cover", "proves")
    refused(body | {"methods": ["sage"]}, "promises.0 with sage", "not private")
    refused(body | {"methods": ["local"]}, "promises.0 with local", "level local")
    refused(body | {"promises": [{"level": "local", "labels": 1}]}, "promises.0 with dp-mlp", "does not cover")


def test_what_a_selection_costs_must_be_said(body):
    entry = {"name": "dp-mlp", "candidates": [{"steps": 2}, {"steps": 5}]}
    refused(body | {"methods": [entry]}, "methods.0.candidates", "selection", "charged")
    edge = {"selection": "charged", "promises": [{"level": "edge"}]}
    refused(body | {"methods": [entry], **edge}, "adjacency record only")
    roster = {"name": "roster", "candidates": [{}, {"mode": "sound"}]}
    refused(body | {"methods": [roster], "selection": "not covered"}, "learns from validation nodes")


def test_files_that_are_none_are_one_line(tmp_path):
    for name, text, word in (
        ("a.yaml", "name: [", "not YAML"),
        ("a.toml", "name = ", "not TOML"),
        ("a.yml", "- 1", "table of fields"),
        ("a.txt", "", ".yaml"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match=word):
            read_experiment(tmp_path / name)
    with pytest.raises(InputError, match="does not exist"):
        read_experiment(tmp_path / "none.yaml")
