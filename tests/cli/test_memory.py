"""A record is drawn once per round, whatever files are called; a seed stays where it was typed."""

import json
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

from graphveil.errors import PrivacyError
from graphveil.exchange import privatizer
from graphveil.exchange.memory import FOLDER, Memory
from graphveil.exchange.randomizers import LabelResponse
from graphveil.exchange.round import Round
from graphveil.privacy.local import Part

from .test_privatize import refused

SEED = 7654321
FEATURES = ("--features-epsilon", 1, "--features", "w*")
LABELS = ("--labels-epsilon", 1, "--label", "group", "--classes", 3)
BEFORE = "records have been randomised already"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "home" / "records.csv"
    path.parent.mkdir()
    rows = [f"person{n},0.5,{n / 8},{n % 3},person{(n + 1) % 8}" for n in range(8)]
    path.write_text("id,w0,w1,group,friends\n" + "\n".join(rows) + "\n")
    return path


def test_a_seed_is_not_written_beside_the_reports(graphveil, table):
    """Whoever has the seed draws the same coins again and reads every true label off the reports."""
    out = table.with_name("reports.csv")
    code, said, _ = graphveil("privatize", table, "--out", out, *FEATURES, *LABELS, "--seed", SEED)
    assert code == 0 and "seeded: not for release" in said
    written = [path for path in table.parent.rglob("*") if path.is_file() and path != table]
    assert len(written) >= 4 and not any(str(SEED).encode() in path.read_bytes() for path in written)
    body = json.loads(out.with_name("reports.csv.json").read_text())
    assert body["seeded"] is True and "seed" not in body


def test_a_certificate_made_from_seeded_reports_never_holds(graphveil, table, tmp_path):
    out, edges = table.with_name("reports.csv"), ("--edges-epsilon", "raw", "--contacts", "friends")
    assert graphveil("privatize", table, "--out", out, *FEATURES, *LABELS, *edges, "--seed", SEED)[0] == 0
    body = json.loads(graphveil("collect", out, "--out", tmp_path / "noisy.npz", "--json")[1])
    assert body["holds"] is False and body["epsilon"] == pytest.approx(2.0, abs=1e-6)
    certificate = json.loads((tmp_path / "noisy.json").read_text())
    assert certificate["seed"] is None and any("made with a seed" in line for line in certificate["assumptions"])
    run = tmp_path / "run"
    flags = ("train", "lpgnn", "--reports", out, "--set", "epochs=2", "--out", run, "--json")
    body = json.loads(graphveil(*flags)[1])
    assert body["holds"] is False and body["seeded"] is True and body["seed"] is None
    assert graphveil("verify", run)[0] == 0
    said = graphveil("certificate", run)[1]
    assert "DOES NOT HOLD" in said and "seeded: not for release" in said and str(SEED) not in said


def test_without_any_epsilon_nothing_is_written_and_the_corrected_command_works(graphveil, table):
    out = table.with_name("reports.csv")
    refused(graphveil("privatize", table, "--out", out), "everything is withheld", "--labels-epsilon")
    assert not out.exists()
    assert graphveil("privatize", table, "--out", out, *LABELS)[0] == 0


@pytest.mark.parametrize(
    "flags",
    [
        FEATURES,
        ("--features-epsilon", 2, "--features", "w0", "--mechanism", "laplace"),
        (*FEATURES, "--holder", "else"),
    ],
    ids=["the same", "another mechanism", "another holder"],
)
def test_a_second_output_name_does_not_draw_again(graphveil, table, flags):
    one, two = table.with_name("one.csv"), table.with_name("two.csv")
    assert graphveil("privatize", table, "--out", one, *FEATURES)[0] == 0
    refused(graphveil("privatize", table, "--out", two, *flags), f"8 of 8 {BEFORE} (features, in ", "one.csv")
    assert not list(table.parent.glob("*two.csv*"))
    one.unlink()
    refused(graphveil("privatize", table, "--out", one, *flags), BEFORE)  # what was sent cannot be called back


def test_the_memory_knows_the_record_and_not_the_name_of_its_table(graphveil, table):
    assert graphveil("privatize", table, "--out", table.with_name("one.csv"), *FEATURES)[0] == 0
    other = table.with_name("copy.parquet")
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(table).slice(5), other)
    refused(graphveil("privatize", other, "--out", table.with_name("two.csv"), *FEATURES), f"3 of 3 {BEFORE}")
    new = table.with_name("new.csv")
    new.write_text("id,w0,w1\nperson8,0,1\n")
    assert graphveil("privatize", new, "--out", table.with_name("three.csv"), *FEATURES)[0] == 0
    new.write_text("id,w0,w1\nperson9,0,1\nperson8,0,1\n")
    refused(graphveil("privatize", new, "--out", table.with_name("four.csv"), *FEATURES), f"1 of 2 {BEFORE}")


def test_other_parts_and_other_rounds_are_other_draws(graphveil, table, tmp_path):
    assert graphveil("privatize", table, "--out", table.with_name("one.csv"), *FEATURES)[0] == 0
    assert graphveil("privatize", table, "--out", table.with_name("two.csv"), *LABELS)[0] == 0
    refused(graphveil("privatize", table, "--out", table.with_name("x.csv"), *LABELS), "(labels, in ", "two.csv")
    heard, other = tmp_path / "heard.csv", tmp_path / "other.csv"
    for path, shift in ((heard, 0), (other, 1)):
        path.write_text("id,bin\n" + "".join(f"person{n},{(n + shift) % 2}\n" for n in range(8)))
    edges = ("--edges-epsilon", 1, "--contacts", "friends")
    flags = (*edges, "--broadcast", heard)
    assert graphveil("privatize", table, "--out", table.with_name("three.csv"), *flags)[0] == 0
    for flags in ((*edges, "--broadcast", other), (*edges, "--broadcast", heard, "--edge-mechanism", "bucket")):
        refused(
            graphveil("privatize", table, "--out", table.with_name("x.csv"), *flags), "(edges-edges, in ", "three.csv"
        )


def test_a_folder_may_be_given_and_says_nothing_without_its_key(graphveil, table, tmp_path):
    memory = tmp_path / "elsewhere" / "memory"
    flags = (*FEATURES, "--memory", memory)
    assert graphveil("privatize", table, "--out", table.with_name("one.csv"), *flags)[0] == 0
    assert not (table.parent / FOLDER).exists()
    refused(graphveil("privatize", table, "--out", table.with_name("two.csv"), *flags), BEFORE)
    assert stat.S_IMODE((memory / "key").stat().st_mode) == 0o600
    assert not any(b"person" in path.read_bytes() for path in memory.iterdir())
    moved = tmp_path / "another"
    shutil.copytree(memory, moved)
    (moved / "key").write_bytes(bytes(32))
    ids = [f"person{n}" for n in range(8)]
    assert not np.isin(Memory(moved).digests(ids), Memory(memory).digests(ids)).any()
    (moved / "key").write_bytes(b"short")
    refused(graphveil("privatize", table, "--out", table.with_name("x.csv"), *FEATURES, "--memory", moved), "damaged")


def test_a_memory_that_cannot_be_written_is_one_line_and_nothing_is_drawn(graphveil, table):
    out = table.with_name("one.csv")
    refused(graphveil("privatize", table, "--out", out, *FEATURES, "--memory", table), "give --memory FOLDER")
    assert not out.exists()


def test_a_command_that_fails_before_it_draws_everything_leaves_nothing_behind(graphveil, table):
    good = table.read_text()
    table.write_text(good + "person9,nan,0,0,\n")
    refused(graphveil("privatize", table, "--out", table.with_name("one.csv"), *FEATURES), "non-finite")
    table.write_text(good)
    assert graphveil("privatize", table, "--out", table.with_name("one.csv"), *FEATURES)[0] == 0


def test_a_killed_command_can_only_over_count(graphveil, table, monkeypatch):
    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(privatizer, "write_json", killed)  # after the memory, before the file has its name
        assert graphveil("privatize", table, "--out", table.with_name("one.csv"), *FEATURES)[0] != 0
    assert not table.with_name("one.csv").exists()
    refused(graphveil("privatize", table, "--out", table.with_name("one.csv"), *FEATURES), BEFORE)


def test_of_two_draws_at_the_same_time_one_is_refused(tmp_path):
    round, ids = Round("labels", Part.LABELS, LabelResponse(1.0, 2)), [str(n) for n in range(1000)]

    def draw(number):
        memory = Memory(tmp_path / "memory")
        try:
            memory.keep([round], memory.digests(ids), Path(f"{number}.csv"))
        except PrivacyError:
            return 0
        return 1

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(draw, range(8))) == 1


def test_raw_features_beside_a_label_epsilon_are_said_in_text_and_json(graphveil, table):
    flags = ("--features-epsilon", "raw", "--features", "w*", *LABELS)
    code, out, _ = graphveil(
        "privatize", table, "--out", table.with_name("one.csv"), *flags, "--memory", table.parent / "1"
    )
    first = out.splitlines()[0]
    assert code == 0 and "IN THE CLEAR: FEATURES" in first and "NO FINITE EPSILON (labels epsilon 1)" in first
    assert "each" not in first
    flags += ("--memory", table.parent / "2", "--json")
    body = json.loads(graphveil("privatize", table, "--out", table.with_name("two.csv"), *flags)[1])
    assert body["epsilon"] is None and body["in_the_clear"] == ["features"]
    assert body["epsilons"] == {"labels": pytest.approx(1.0)}


def test_raw_labels_need_the_public_number_of_classes(graphveil, table):
    flags = ("--labels-epsilon", "raw", "--label", "group")
    refused(graphveil("privatize", table, "--out", table.with_name("one.csv"), *flags), "--classes")
