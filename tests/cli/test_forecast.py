"""``graphveil forecast``: bands before any budget is spent."""

import json

import pytest

from graphveil.audit.central.neighbours import worst_case_graph
from graphveil.graph import write_npz

SIZES = ("--nodes", 80, "--features", 6, "--classes", 3)
FAST = ("--engine", "serial", "--scenarios", 2)


def test_sizes_alone_give_a_band_per_epsilon_and_say_what_it_rests_on(graphveil):
    code, out, err = graphveil(
        "forecast", "dp-mlp", *SIZES, *FAST, "--epsilons", "1,4,inf", "--homophily", "0.8", "--set", "steps=2"
    )
    assert code == 0 and "forecast (serial): 6 of 6" in err
    lines = [line.split() for line in out.splitlines()]
    assert [line[0] for line in lines[4:7]] == ["1", "4", "no"]
    assert "nothing private was read" in out and "homophily 0.8," in out and "a guess, not a bound" in out
    assert "is a range" not in out


def test_json_has_bands_facts_guesses_and_every_run(graphveil, graph_file):
    code, out, _ = graphveil(
        "forecast", "auto", "--data", graph_file, *FAST, "--epsilon", 4, "--mean-degree", "3-5", "--json"
    )
    body = json.loads(out)
    assert code == 0 and body["method"] == "roster" and body["level"] == "node" and body["adjacency"] == "record"
    assert body["guesses"]["mean_degree"] == [3, 5] and body["guesses"]["homophily"][1] == 0.9
    (band,) = body["bands"]
    assert 0 <= band["low"] <= band["median"] <= band["high"] <= 1 and band["epsilon"] == 4
    assert sorted(run["accuracy"] for run in body["runs"])[0] <= band["low"]
    assert all(run["options"]["nodes"] == body["facts"]["nodes"] for run in body["runs"])


def test_declared_classes_are_not_counted_in_the_labels(graphveil, tmp_path):
    data = worst_case_graph(seed=2)[0]
    del data.num_classes
    flags = ("--data", write_npz(data, tmp_path / "mine.npz"), *FAST, "--epsilon", 4, "--set", "steps=1", "--json")
    counted, declared = (
        json.loads(graphveil("forecast", "dp-mlp", *flags, *more)[1]) for more in ((), ("--classes", 9))
    )
    assert any("number of classes inferred" in note for note in counted["notes"])
    assert any("homophily is a range" in note for note in counted["notes"])
    assert declared["facts"]["classes"] == 9 and not any("inferred" in note for note in declared["notes"])


def test_a_public_data_set_stands_in_with_the_delta_of_my_sizes(graphveil):
    flags = ("--stand-in", "csbm", *FAST, "--epsilon", 4, "--set", "steps=1", "--json")
    body = json.loads(graphveil("forecast", "dp-mlp", "--nodes", 80, "--features", 6, "--classes", 3, *flags)[1])
    assert body["stand_in"] == "csbm" and body["delta"] == 0.01 and len(body["runs"]) == 2
    assert any("csbm as it is stands in" in note for note in body["notes"])


def test_levels_without_epsilon_have_one_line(graphveil):
    parts = ("--features-epsilon", 1, "--labels-epsilon", 2, "--edges-epsilon", "raw")
    code, out, err = graphveil(
        "forecast", "lpgnn", *SIZES, *FAST, "--level", "local", *parts, "--set", "epochs=1", "--json"
    )
    assert code == 0, err
    assert [band["budget"] for band in json.loads(out)["bands"]] == ["features 1, labels 2, edges raw"]
    code, out, _ = graphveil("forecast", "mlp", *SIZES, *FAST, "--level", "none", "--set", "epochs=1", "--json")
    assert code == 0 and [band["budget"] for band in json.loads(out)["bands"]] == ["not private"]


def test_a_stated_delta_and_a_promise_with_gaps_are_said(graphveil):
    flags = (*SIZES, *FAST, "--epsilon", 4, "--delta", 0.003, "--set", "steps=1")
    assert ", delta 0.003" in graphveil("forecast", "dp-mlp", *flags)[1]
    gaps = graphveil("forecast", "gap", *SIZES, *FAST, "--epsilon", 4, "--mode", "published", "--set", "epochs=1")[1]
    assert "promise would not hold" in gaps


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ((), "--nodes, --features and --classes"),
        (("--nodes", 80), "give all of"),
        ((*SIZES, "--epsilons", "1,1"), "each epsilon once"),
        ((*SIZES, "--epsilons", "x"), "not a number"),
        ((*SIZES, "--epsilons", "1", "--epsilon", 1), "not both"),
        ((*SIZES, "--epsilons", "-1"), "epsilon must be positive"),
        ((*SIZES, "--homophily", "2"), "--homophily 2"),
        ((*SIZES, "--mean-degree", "0"), "--mean-degree 0"),
        ((*SIZES, "--split", "stratified"), "reads labels"),
        ((*SIZES, "--adjacency", "node"), "node / node"),
        ((*SIZES, "--plot", "x.txt"), "--plot writes"),
        ((*SIZES, "--plot", "x.svg", "--level", "local", "--labels-epsilon", 1), "has none"),
        ((*SIZES, "--level", "none", "--epsilons", "1"), "takes no --epsilons"),
        (("--data", "csbm", "--stand-in", "csbm"), "another, public data set"),
        (("--data", "csbm", "--nodes", 5), "without --data"),
        (("--stand-in", "csbm", "--homophily", "0.5"), "--stand-in has its own"),
    ],
)
def test_what_cannot_be_forecast_is_refused_before_anything_runs(graphveil, flags, said):
    code, out, err = graphveil("forecast", "roster", *flags, *FAST)
    assert code == 2 and said in err.replace("\n", " ") and out == ""


def test_a_plot_has_the_median_and_both_ends_of_the_band(graphveil, tmp_path):
    picture = tmp_path / "bands.svg"
    flags = (*SIZES, *FAST, "--epsilons", "1,4,inf", "--set", "steps=1", "--plot", picture)
    code, out, _ = graphveil("forecast", "dp-mlp", *flags)
    text = picture.read_text()
    assert code == 0 and f"written to {picture}" in out
    assert all(word in text for word in ("median", "95 %", "5 %", "dp-mlp", "nothing private was read"))
