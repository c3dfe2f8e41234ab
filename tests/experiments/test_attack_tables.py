"""Attacks on reports and on models as tables of a paper: LGA-PGNN's Tables I, III, IV and VI, NIP-GNN's Table 4."""

import pytest

from graphveil.errors import InputError
from graphveil.experiments.drawn import drawn_runs
from graphveil.experiments.heat import heat_runs
from graphveil.experiments.papers import Entry, Varied, find
from graphveil.experiments.reproduce import compared, reproduction

from .test_reproduce import row_of


def asked(target, **how):
    paper, (entry,) = find(target)
    return reproduction(paper, entry, **{"seeds": 1} | how)


@pytest.mark.parametrize(
    "target", ["lga-pgnn/table1", "lga-pgnn/table3", "lga-pgnn/table4", "lga-pgnn/table6", "nip-gnn/table4"]
)
def test_every_line_of_an_attack_table_runs_or_says_why(target):
    found = asked(target)
    assert found.lines and all(bool(line.runs) != bool(line.why) for line in found.lines)
    assert {line.cell.dataset for line in found.lines if line.why} <= {"deezer-hr", "lastfm-asia"}


def test_one_run_stands_beside_every_printed_metric():
    found = asked("lga-pgnn/table1", data=["deezer-hu"], epsilons=["5"], columns=["published"])
    (run,) = found.runs
    assert len(found.lines) == 4 and run.kind == "reports" and run.method == "piecewise-algorithm"
    assert run.promise["features"] == 5.0 and run.attacks[0]["attribute"] == "Alternative"
    figures = {"accuracy": 0.82, "precision": 0.81, "recall": 0.70, "f1": 0.75}
    metrics = {f"attribute-inference.{name}": value for name, value in figures.items()}
    table = compared(found, [row_of(run, 0.0, holds=False) | {"metrics": metrics}])
    assert [line[1].rpartition(", ")[2] for line in table.body] == ["attack-accuracy", "precision", "recall", "f1"]
    assert [line[3] for line in table.body] == ["82.0‡", "81.0‡", "70.0‡", "75.0‡"]


def test_clean_rows_promise_nothing_and_are_not_marked_as_a_broken_promise():
    found = asked("lga-pgnn/table3", data=["cora"], epsilons=["inf"])
    (run,) = found.runs
    table = compared(found, [row_of(run, 0.0, holds=False) | {"metrics": {"link-stealing.f1": 0.9}}])
    assert [line[3] for line in table.body] == ["failed"] * 3 + ["90.0"]


def test_the_paper_s_own_attack_is_one_run_in_both_tables():
    three, six = asked("lga-pgnn/table3", epsilons=["inf"]), asked("lga-pgnn/table6", methods=["dnn-lsa"])
    assert {run.id for run in three.runs} == {run.id for run in six.runs} and len(six.runs) == 3
    assert all(run.attacks[0]["both_orders"] for run in six.runs)
    other = asked("lga-pgnn/table6", data=["cora"], methods=["lsa2", "lsa2-euclidean", "lsa2-cosine"])
    (model,) = other.runs
    assert model.method == "gcn" and model.promise["level"] == "none" and model.attacks[0]["count"] == "most"
    assert len({line.metrics["published"] for line in other.lines}) == 6


def test_figures_of_an_attack_vary_what_is_reported():
    paper, (entry,) = find("lga-pgnn/figure5")
    runs = drawn_runs(paper, entry, seeds=1)["link-stealing.f1"]
    assert {run.options["sampled"] for run in runs} == {1, 100, 500, 1433, 3703} and {run.kind for run in runs} == {
        "reports"
    }
    assert {run.method for run in runs} == {"piecewise-raw", "piecewise-zero"}


def test_membership_is_asked_of_what_table_1_trains():
    from dataclasses import replace

    attacked = asked("nip-gnn/table4", data=["cora"], methods=["nip-gnn", "gap"], columns=["published"])
    trained = asked("nip-gnn/table1", data=["cora"], methods=["nip-gnn", "gap"], columns=["published"])
    assert {replace(run, attacks=()).id for run in attacked.runs} == {run.id for run in trained.runs}


def test_generated_graphs_of_a_figure_have_their_own_options():
    paper, (entry,) = find("dpdgc/figure3")
    runs = drawn_runs(paper, entry, seeds=1)["test_accuracy"]
    generated = [run for run in runs if run.data["name"] == "csbm"]
    assert {run.data["options"]["phi"] for run in generated} == {-1.0, -0.5, 0.0, 0.5, 1.0}
    assert {run.method for run in generated} == {"dpdgc", "dp-mlp"} and len(generated) == 10
    assert {run.promise.get("k") for run in runs if run.data["name"] == "amazon-computers"} == {0, 1, 5, 25, None}


def test_a_picture_has_a_panel_per_metric():
    from graphveil.report.reproduced import panels_of

    found = asked("lga-pgnn/table1", data=["deezer-hu"], epsilons=["5", "10"], columns=["published"])
    figures = {"accuracy": 0.8, "precision": 0.7, "recall": 0.6, "f1": 0.5}
    metrics = {f"attribute-inference.{name}": value for name, value in figures.items()}
    panels = panels_of(found, [row_of(run, 0.0, holds=False) | {"metrics": metrics} for run in found.runs])
    assert [panel.ylabel for panel in panels] == ["attack-accuracy, %", "precision, %", "recall, %", "f1, %"]
    assert [list(panel.series[0].means.values()) for panel in panels] == [[value] * 2 for value in figures.values()]
    assert all(len(panel.printed) == 2 for panel in panels)


def test_baselines_of_dpdgc_run_at_the_level_where_print_copies_another():
    found = asked("dpdgc/table2neighbors", data=["cora"])
    levels = {
        (line.cell.method, line.cell.level, run.promise["k"]) for line in found.lines for run in line.runs["published"]
    }
    assert levels == {(name, f"k-neighbor:{k}", k) for name in ("gap", "dp-mlp") for k in (1, 5, 25)}


def test_curves_take_the_options_that_a_data_set_gives():
    """Figure 7 of LGA-PGNN: fewer epochs on larger graphs for every method, fewer columns for the one that has them."""
    paper, (entry,) = find("lga-pgnn/figure7")
    runs = drawn_runs(paper, entry, seeds=1, data=["cora", "coauthor-cs"])["test_f1"]
    given = {(run.data["name"], run.method): dict(run.options) for run in runs}
    assert given["cora", "lga-pgnn"] == given["cora", "lap-gnn"] == {}
    assert given["coauthor-cs", "lga-pgnn"] == {"width": 512, "epochs": 50}
    assert given["coauthor-cs", "lap-gnn"] == given["coauthor-cs", "lpgnn"] == {"epochs": 50}


def test_a_figure_runs_only_the_networks_methods_and_epsilons_that_are_asked_for():
    paper, (entry,) = find("lga-pgnn/figure6")
    few = drawn_runs(paper, entry, seeds=1, data=["cora"], backbones=["gat", "sgc"], epsilons=["0.01", "10"])
    points = {(run.options["backbone"], run.promise["features"]) for run in few["test_accuracy"]}
    assert points == {(name, epsilon) for name in ("gat", "sgc") for epsilon in (0.01, 10.0)}
    paper, (entry,) = find("lga-pgnn/figure7")
    (runs,) = drawn_runs(paper, entry, seeds=1, data=["cora"], methods=["lpgnn"], epsilons=None).values()
    assert {run.method for run in runs} == {"lpgnn"} and len(runs) == 5
    with pytest.raises(InputError, match=r"lga-pgnn/figure7 draws none of the epsilons '2'; it has: 0.01, 0.1, 1"):
        drawn_runs(paper, entry, epsilons=["2"])
    with pytest.raises(InputError, match="draws none of the backbones 'gat'; it has: none"):
        drawn_runs(paper, entry, backbones=["gat"])
    with pytest.raises(InputError, match="has no data set 'karate'"):
        drawn_runs(paper, entry, data=["karate"])


def test_a_map_refuses_another_network_than_its_own():
    paper, (entry,) = find("graph-privatizer/figure3")
    assert len(heat_runs(paper, entry, seeds=1, data=["cora"], backbones=["gat"])["cora"]) == 25
    with pytest.raises(InputError, match="draws none of the backbones 'gcn'; it has: gat"):
        heat_runs(paper, entry, backbones=["gcn"])


def test_paired_points_are_chosen_by_their_epsilon():
    paper, (entry,) = find("dpar/figure1")
    runs = drawn_runs(paper, entry, seeds=1, epsilons=["6"]).popitem()[1]
    assert {(run.promise["epsilon"], run.options["pagerank_share"]) for run in runs} == {(6.0, round(2 / 6, 6))}


def test_an_option_that_no_data_set_gives_is_refused():
    drawn = {"method": "lga-pgnn", "variants": [{}], "epsilons": [1], "promise": {"level": "local"}, "takes": ["epoch"]}
    body = {
        "id": "f",
        "name": "F",
        "title": "t",
        "data": ["cora"],
        "per_data": {"cora": {"epochs": 5}},
        "varied": [drawn],
    }
    with pytest.raises(ValueError, match="takes 'epoch'"):
        Entry.model_validate(body)


def test_pairs_of_value_and_epsilon_are_complete():
    body = {
        "method": "dpar",
        "option": "pagerank_share",
        "variants": [{}],
        "promise": {"level": "node"},
        "paired": True,
    }
    Varied.model_validate(body | {"values": [0.1, 0.2], "epsilons": [1, 2]})
    with pytest.raises(ValueError, match="differ in number"):
        Varied.model_validate(body | {"values": [0.1, 0.2, 0.3], "epsilons": [1, 2]})
