"""Figures of alpha against threshold: gains over the base, by data set and metric, as tables and as a picture."""

import json

import numpy as np
import pytest

from graphveil.errors import InputError
from graphveil.experiments.export import plain, write_rows
from graphveil.experiments.heat import heat_maps, heat_runs, heat_tables
from graphveil.experiments.papers import find
from graphveil.experiments.reproduce import reproduction

from .test_reproduce import row_of


def figure(number=8):
    paper, (entry,) = find(f"graph-privatizer/figure{number}")
    return paper, entry


def row(run):
    """Accuracy grows by 10 points times alpha and falls with the seed, the attack by 2 times threshold."""
    found = row_of(run, 0.7 - 0.05 * run.seed + 0.1 * run.options["alpha"], holds=False)
    return found | {"metrics": {**found["metrics"], "link-teller.auc": 0.6 + 0.02 * run.options["threshold"]}}


@pytest.mark.parametrize("number", range(3, 16))
def test_every_figure_draws_runs_that_table_7_averages(number):
    paper, entry = figure(number)
    runs = {run.id: run for run in heat_runs(paper, entry, seeds=1, data=["cora"])["cora"]}
    assert len(runs) == 25
    strategy = next(iter(runs.values())).options["strategy"]
    assert f"GP-{strategy}" in entry.title
    paper, (table,) = find("graph-privatizer/table7")
    averaged = reproduction(paper, table, data=["cora"], seeds=1, methods=[f"graphprivatizer-{strategy}"])
    named = {run.id: run.label for run in averaged.runs}
    assert all(named.get(run.id) == run.label for run in runs.values())


def test_a_run_has_one_name_in_every_table_that_asks_for_it():
    """Rows carry the label under which they were asked for first; pages and tables go by it."""
    names = {}
    for table in ("table6attacks", "table7", "table8"):
        paper, (entry,) = find(f"graph-privatizer/{table}")
        for run in reproduction(paper, entry, data=["cora"], seeds=1, epsilons=["0.1"]).runs:
            names.setdefault(run.id, set()).add(run.label)
    assert max(map(len, names.values())) == 1


def test_gains_are_paired_with_the_base_of_the_same_seed():
    paper, entry = figure()
    runs = heat_runs(paper, entry, seeds=2, data=["cora"])
    rows = [row(run) for run in runs["cora"] if (run.seed, run.options["alpha"]) != (1, 0.75)]
    accuracy, auc = heat_maps(entry, runs, rows)
    assert np.allclose(accuracy.gains, 10 * np.array([0, 0.25, 0.5, 0.75, 1])[:, None], atol=1e-9)
    assert np.allclose(auc.gains, 2 * np.array([0, 0.1, 0.25, 0.5, 1])[None], atol=1e-9)
    assert accuracy.seeds[:, 0].tolist() == [2, 2, 2, 1, 2]
    assert auc.smaller_is_better and auc.desirable == 2 and not accuracy.smaller_is_better
    table, _ = heat_tables(paper, entry, [accuracy, auc])
    assert table.head == ("alpha \\ threshold", "0", "0.1", "0.25", "0.5", "1") and table.body[2][1] == "+5.0‡"
    assert any("seeds per cell: 1 or 2" in note for note in table.notes)


def test_without_the_base_nothing_is_claimed(tmp_path):
    from graphveil.report.heat import draw

    paper, entry = figure()
    runs = heat_runs(paper, entry, seeds=1, data=["cora"])
    rows = [row(run) for run in runs["cora"] if run.options["alpha"] > 0]
    maps = heat_maps(entry, runs, rows)
    assert not any(one.any for one in maps) and set(heat_tables(paper, entry, maps)[0].body[1][1:]) == {""}
    with pytest.raises(InputError, match="nothing to draw"):
        draw(maps, "", tmp_path / "no.svg")


def test_a_quick_look_has_the_base_and_the_corners():
    paper, entry = figure()
    quick = heat_runs(paper, entry, quick=True, data=["cora"])["cora"]
    assert [(run.options["alpha"], run.options["threshold"]) for run in quick] == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_the_command_shows_and_draws_stored_runs(graphveil, tmp_path):
    paper, entry = figure()
    runs = heat_runs(paper, entry, seeds=1, data=["cora", "pubmed"])
    for name, some in runs.items():  # rows of one table may lie in several files
        write_rows([plain(row(run)) for run in some], tmp_path / f"{name}.jsonl")
    words = (
        "reproduce",
        "graph-privatizer/figure8",
        "--datasets",
        "cora,pubmed",
        "--seeds",
        1,
        "--from",
        f"{tmp_path / 'cora.jsonl'},{tmp_path / 'pubmed.jsonl'}",
    )
    code, out, err = graphveil(*words, "--json", "--figure", tmp_path / "map.svg")
    assert code == 0, err
    maps = json.loads(out)
    assert [body["lines"][4]["1"] for body in maps] == ["+10.0‡", "+2.0‡"] * 2
    drawn = (tmp_path / "map.svg").read_text()
    assert "delta-attack-auc" in drawn and "+10.0" in drawn and "threshold" in drawn and "pubmed" in drawn
