"""Papers: every table and figure has an entry; tables stand printed, published, sound and our own side by side."""

import json
from dataclasses import replace

import pytest

from graphveil.errors import InputError
from graphveil.experiments.drawn import drawn_runs, drawn_tables
from graphveil.experiments.papers import COLUMNS, Cell, find, papers
from graphveil.experiments.reproduce import Line, compared, reproduction, verdict
from graphveil.experiments.summary import Estimate

TABLES = ("dpdgc/table2", "graph-privatizer/table6", "lga-pgnn/tableV")
PRINTED = {"dpar": 61, "dpdgc": 147, "graph-privatizer": 2180, "lga-pgnn": 358, "nip-gnn": 76}


def test_every_printed_number_is_there_and_every_entry_runs_or_says_why():
    found = papers()
    assert {key: sum(len(entry.printed) for entry in paper.entries) for key, paper in found.items()} == PRINTED
    for paper in found.values():
        names = [entry.id for entry in paper.entries]
        assert len(set(names)) == len(names)
        for entry in paper.entries:
            told = entry.settings or entry.varied or entry.embeddings or entry.gap or entry.gain or entry.heat
            assert entry.runs == bool(told) and "\n" not in entry.why, entry.id
            keys = [(c.dataset, c.method, c.backbone, c.level, c.epsilon, c.metric) for c in paper.cells(entry)]
            assert len(set(keys)) == len(keys)
            assert {cell.dataset for cell in paper.cells(entry)} <= {*entry.data, *entry.missing} or not entry.runs


def test_attack_columns_of_graph_privatizer_attack_what_the_accuracy_columns_train():
    paper, entries = find("graph-privatizer")
    tables = {entry.id: entry for entry in entries}
    attacked = reproduction(paper, tables["table6attacks"], data=["cora"], seeds=1)
    trained = reproduction(paper, tables["table6"], data=["cora"], seeds=1, columns=["published"])
    assert {run.id for run in trained.runs} == {replace(run, attacks=()).id for run in attacked.runs}
    for line in attacked.lines:
        expected = "lsa2" if line.cell.backbone == "sage" else "link-teller"
        assert line.cell.metric == "attack-auc" and line.metrics == {"published": f"{expected}.auc"}
        assert [attack["name"] for run in line.runs["published"] for attack in run.attacks] == [expected]


def test_garbled_and_doubtful_cells_are_marked():
    paper, (entry,) = find("lga-pgnn/table5")
    marked = [cell for cell in paper.cells(entry) if cell.suspicious]
    assert len(marked) == 40 and {cell.method for cell in marked} == {"ldp-gnn"}  # the block whose label is lost


@pytest.mark.parametrize("target", [*TABLES, "nip-gnn/table1", "nip-gnn/table2", "nip-gnn/table3", "dpar/table1"])
def test_every_run_of_a_table_is_possible_and_every_line_is_run_or_says_why(target):
    paper, (entry,) = find(target)
    asked = reproduction(paper, entry, seeds=1)
    assert asked.lines and all(bool(line.runs) != bool(line.why) for line in asked.lines)
    published = [line.runs["published"][0] for line in asked.lines if "published" in line.runs]
    assert all(run.mode == "published" for run in published) and published
    sound = [run for line in asked.lines for name in ("sound", "own") for run in line.runs.get(name, [])]
    assert {run.mode for run in sound} == {"sound"}


def test_a_quick_look_is_a_part_of_the_whole():
    paper, (entry,) = find("dpdgc/table2")
    whole, quick = reproduction(paper, entry, seeds=3), reproduction(paper, entry, quick=True)
    left = [line for line in quick.lines if line.cell.level == "k-neighbor:5" and line.cell.method == "dpdgc"]
    assert left and {verdict(line, None) for line in left} == {
        "published mode left out (the printed number is doubtful)"
    }
    assert {run.id for run in quick.runs} < {run.id for run in whole.runs} and len(quick.runs) * 5 < len(whole.runs)


def test_settings_of_a_paper_reach_the_runs():
    paper, (entry,) = find("dpdgc/table2")
    runs = {run.data["name"]: run for run in reproduction(paper, entry, seeds=1).runs if run.mode == "published"}
    assert runs["pubmed"].options["batch_size"] == 256 and "batch_size" not in runs["cora"].options
    assert runs["cora"].data["prepare"] == "dpdgc" and runs["cora"].data["split"] == "paper"
    paper, (entry,) = find("dpar/table1")
    asked = [
        line.runs["published"][0] for line in reproduction(paper, entry, seeds=1).lines if "published" in line.runs
    ]
    private = [run for run in asked if run.promise["level"] == "node"]
    assert {run.promise["delta"] for run in private if run.data["name"] == "cora-ml"} == {2e-3}
    assert "ms-academic" not in {run.data["name"] for run in asked}  # it is coauthor-cs, and run once


def test_figures_without_printed_numbers_are_measured_and_shown_with_what_the_text_says():
    paper, (entry,) = find("dpar/figure4")
    runs = drawn_runs(paper, entry, seeds=2)["public_graph_accuracy"]
    assert len(runs) == 5 * 3 * 2 * 2 and {run.data["name"] for run in runs} == {"coauthor-cs"}
    assert {run.promise["delta"] for run in runs} == {8e-4}
    assert {run.id for run in runs} == {run.id for run in _runs_of("dpar/figure3")}
    few = drawn_runs(paper, entry, quick=True)
    assert {run.options["pagerank_share"] for run in few["public_graph_accuracy"]} == {0.1, 0.9}
    rows = [
        row_of(run, 0.5) | {"metrics": {"public_graph_accuracy": 0.5 + run.options["pagerank_share"] / 10}}
        for run in few["public_graph_accuracy"]
    ]
    (table,) = drawn_tables(paper, entry, few, rows)
    assert "Figure 4" in table.title and any("as Figure 3" in note for note in table.notes)
    assert len(table.body) == 6 and "51.0" in table.body[0][2] and "59.0" in table.body[1][2]
    paper, (entry,) = find("dpar/figure1")
    pairs = {
        (r.promise["epsilon"], r.options["pagerank_share"]) for r in drawn_runs(paper, entry, seeds=1).popitem()[1]
    }
    assert pairs == {(4.0 + e, round(e / (4 + e), 6)) for e in (1, 2, 4, 8)}


def _runs_of(target):
    paper, (entry,) = find(target)
    return drawn_runs(paper, entry, seeds=2)["public_graph_accuracy"]


def row_of(run, accuracy, holds=True):
    from graphveil.experiments.execute import failed

    return failed(run, "") | {"status": "done", "holds": holds, "metrics": {"test_accuracy": accuracy}}


def test_the_table_has_every_column_and_names_every_promise():
    paper, (entry,) = find("dpdgc/table2")
    asked = reproduction(paper, entry, data=["cora", "facebook-uiuc"], seeds=2)
    rows = [row_of(run, 0.77 + 0.01 * run.seed, run.mode == "sound") for run in asked.runs]
    table = compared(asked, rows)
    lines = {(line[0], line[1]): line for line in table.body}
    edge = lines["cora", "dpdgc edge epsilon 1"]
    assert edge[2:] == (
        "77.7 ± 0.9",
        "77.5 [77.0, 78.0]‡",
        "-0.2",
        "77.5 [77.0, 78.0]",
        "ballot 77.5 [77.0, 78.0]",
        "agrees",
    )
    assert lines["cora", "gap node epsilon 16"][-1] == "above print"
    assert lines["cora", "sage none"][-1] == "no published mode"
    assert lines["facebook-uiuc", "dpdgc node epsilon 16"][-1].startswith("not run: no file")
    notes = " ".join(table.notes)
    assert "node, published mode: level node, adjacency node, relation replace" in notes
    assert "node, our own (roster): level node, adjacency record" in notes and "95 % confidence interval" in notes


def test_rows_of_an_earlier_version_stand_in_the_table_and_the_present_one_goes_first():
    paper, (entry,) = find("nip-gnn/table3")
    asked = reproduction(paper, entry, data=["cora"], seeds=1, methods=["nip-gnn"])
    assert [line.cell.method for line in asked.lines] == ["nip-gnn"]
    early = [row_of(replace(run, version="0.0.9"), 0.2) for run in asked.runs]
    assert compared(asked, early).body[0][3] == "20.0" and compared(asked, []).body[0][3] == ""
    both = [*early, *(row_of(run, 0.3) for run in asked.runs)]
    assert compared(asked, both).body[0][3] == compared(asked, both[::-1]).body[0][3] == "30.0"
    with pytest.raises(InputError, match="prints no method"):
        reproduction(paper, entry, methods=["gap2"])


def test_a_mean_agrees_within_three_points_or_within_the_interval_of_print():
    cell = Cell("cora", "gap", "", "node", "16", "accuracy", 60.0, 1.0, "")
    line, wide = (Line(replace(cell, spread=spread), runs={"published": []}) for spread in (1.0, 5.0))
    said = lambda line, mean, half=0.0: verdict(line, Estimate(mean, mean - half, mean + half, 3))
    assert [said(line, mean) for mean in (0.629, 0.631, 0.569)] == ["agrees", "above print", "below print"]
    assert said(line, 0.569, half=0.1) == "below print"  # few or scattered seeds are no agreement
    assert [said(wide, mean) for mean in (0.649, 0.549)] == ["agrees", "below print"]
    assert verdict(line, Estimate(0.6, None, None, 1)) == "agrees (one run)"
    assert verdict(line, None) == "not run" and "doubtful" in verdict(
        Line(Cell(*cell_fields(cell), "doubtful: x"), runs={}), None
    )


def cell_fields(cell):
    return (cell.dataset, cell.method, cell.backbone, cell.level, cell.epsilon, cell.metric, cell.value, cell.spread)


def test_what_is_not_there_is_one_line():
    for target, word in (("dpdcg", "dpdgc"), ("gcn", "known are"), ("dpdgc/table9", "table2")):
        with pytest.raises(InputError, match=word):
            find(target)
    paper, (entry,) = find("dpdgc/table2")
    with pytest.raises(InputError, match="amazon-photo"):
        reproduction(paper, entry, data=["citeseer"])


def test_the_command_lists_and_shows_stored_runs(graphveil, tmp_path):
    from graphveil.experiments.export import plain, write_rows

    assert "dpdgc" in graphveil("reproduce")[1]
    listed = json.loads(graphveil("reproduce", "graph-privatizer", "--list", "--json")[1])
    assert len(listed) == 30 and all(entry["runs"] or entry["why"] for entry in listed)
    paper, (entry,) = find("graph-privatizer/table6")
    asked = reproduction(paper, entry, data=["cora"], seeds=1)
    write_rows([plain(row_of(run, 0.8)) for run in asked.runs], tmp_path / "rows.jsonl")
    words = (
        "reproduce",
        "graph-privatizer/table6",
        "--datasets",
        "cora",
        "--from",
        tmp_path / "rows.jsonl",
        "--seeds",
        1,
    )
    code, said, err = graphveil(*words, "--markdown", tmp_path / "t.md")
    assert code == 0 and "lpgnn gcn ldp-features-labels" in said and "local" in said, err
    assert (tmp_path / "t.md").read_text().startswith("### GraphPrivatizer")
    code, said, err = graphveil("reproduce", "dpdgc/figure1")
    assert code == 0 and "an illustration" in err
    assert graphveil(*words, "--columns", "none")[0] == 2 and COLUMNS == ("published", "sound", "own")
    code, _, said = graphveil(*words, "--backbones", " ,")
    assert code == 2 and "--backbones names nothing" in said
