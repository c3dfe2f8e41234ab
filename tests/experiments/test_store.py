"""The store: each run once, in whatever order and however often it comes back; exports say the same."""

import csv
import json
import sqlite3

import pytest

from graphveil.errors import InputError
from graphveil.experiments import Store, expand
from graphveil.experiments.execute import failed
from graphveil.experiments.export import FIELDS, plain, read_rows, write_rows


def done(run, accuracy=0.5):
    return failed(run, "") | {"status": "done", "error": None, "metrics": {"test_accuracy": accuracy}}


@pytest.fixture
def runs(experiment):
    return expand(experiment)


@pytest.fixture
def store(tmp_path, runs):
    with Store(tmp_path / "r.sqlite") as opened:
        opened.ask("small", runs)
        yield opened


def test_the_first_outcome_of_a_run_stays(store, runs):
    assert [store.begin(runs[0]), store.begin(runs[0])] == [1, 2]
    assert store.finish(done(runs[0], 0.7)) and not store.finish(done(runs[0], 0.9))
    assert [row["metrics"]["test_accuracy"] for row in store.rows()] == [0.7]
    assert store.check() == [] and store.attempts() == {runs[0].id: 2}


def test_rows_are_in_the_order_asked_for_with_the_latest_labels(store, runs):
    from dataclasses import replace

    for run in reversed(runs):
        store.begin(run)
        store.finish(done(run))
    store.ask("small", [replace(run, label=run.label.upper()) for run in runs])
    assert [row["id"] for row in store.rows()] == [run.id for run in runs]
    assert {row["label"] for row in store.rows()} == {run.label.upper() for run in runs}
    assert store.check() == []


def test_a_run_that_two_experiments_ask_for_is_kept_once(store, runs):
    store.ask("other", runs[:2])
    store.begin(runs[0])
    store.finish(done(runs[0]))
    assert [row["experiment"] for row in store.rows()] == ["other", "small"] and store.missing("other") == 1


def test_the_integrity_check_finds_what_was_changed(store, runs, tmp_path):
    for run in runs:
        store.begin(run)
        store.finish(done(run))
    with sqlite3.connect(store.path) as db:
        changed = json.dumps(done(runs[0], 1.0), sort_keys=True)
        db.execute("UPDATE results SET row = ? WHERE id = ?", (changed, runs[0].id))
        db.execute("UPDATE runs SET spec = replace(spec, '\"seed\": 0', '\"seed\": 5') WHERE id = ?", (runs[1].id,))
        db.execute("DELETE FROM attempts WHERE id = ?", (runs[2].id,))
    found = store.check()
    assert [line.split(":")[0] for line in found] == [f"run {run.id}" for run in (runs[0], runs[2], runs[1])] or len(
        found
    ) == 3
    assert any("changed" in line for line in found) and any("another hash" in line for line in found)
    assert any("never started" in line for line in found)


def test_two_drivers_do_not_write_at_once(store):
    with (
        store.driving(),
        Store(store.path) as second,
        pytest.raises(InputError, match="another sweep"),
        second.driving(),
    ):
        pass
    with store.driving():
        pass


def test_exports_hold_the_rows_and_are_read_back(store, runs, tmp_path):
    for number, run in enumerate(runs[:-1]):
        store.begin(run)
        store.finish(done(run, number / 10))
    store.begin(runs[-1])
    store.finish(failed(runs[-1], "out of memory"))  # which has measured nothing
    rows = [plain(row) for row in store.rows()]
    assert list(rows[0]) == list(FIELDS)
    for ending in ("jsonl", "json", "csv", "parquet"):
        write_rows(rows, tmp_path / f"out.{ending}")
    assert read_rows(tmp_path / "out.jsonl") == read_rows(tmp_path / "out.json") == read_rows(store.path) == rows
    lines = list(csv.DictReader((tmp_path / "out.csv").open()))
    found = [float(line["metrics.test_accuracy"]) for line in lines[:-1]]
    assert found == [row["metrics"]["test_accuracy"] for row in rows[:-1]]
    import pyarrow.parquet as pq

    assert pq.read_table(tmp_path / "out.parquet")["id"].to_pylist() == [run.id for run in runs]
    with pytest.raises(InputError, match="written as"):
        write_rows(rows, tmp_path / "out.xls")


def test_files_that_are_no_store_are_one_line(tmp_path):
    (tmp_path / "bad.sqlite").write_text("not a database, but long enough to be looked at " * 30)
    for path, word in ((tmp_path / "bad.sqlite", "cannot be used"), (tmp_path / "none.sqlite", "does not exist")):
        with pytest.raises(InputError, match=word):
            Store(path, must_exist=True)
    (tmp_path / "bad.jsonl").write_text('{"a": 1}\n')
    with pytest.raises(InputError, match="line 1: no method"):
        read_rows(tmp_path / "bad.jsonl")


def test_a_report_reads_the_store_itself(store, runs, tmp_path):
    from graphveil.report.rows import read_rows as of_report

    for run in runs:
        store.begin(run)
        store.finish(done(run))
    write_rows(store.rows(), tmp_path / "r.jsonl")
    assert of_report(tmp_path / "r.sqlite") == of_report(tmp_path / "r.jsonl")
    with pytest.raises(InputError, match="does not exist"):
        of_report(tmp_path / "other.sqlite")
