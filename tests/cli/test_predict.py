"""``graphveil predict``: ids and class names in every form, for those without a label or the likeliest of a class."""

import csv
import json

import pyarrow.parquet as pq
import pytest

PEOPLE = [(f"acc-{n:03d}", "fraud" if n % 7 == 0 else "fine", n % 3 > 0, n) for n in range(60)]


@pytest.fixture
def bank(graphveil, tmp_path):
    """Sixty accounts, two classes by name, a third of them without a label."""
    rows = [
        f"{name},{label if known else ''},{100 - n if label == 'fraud' else n / 2}" for name, label, known, n in PEOPLE
    ]
    (tmp_path / "people.csv").write_text("id,kind,age\n" + "\n".join(rows) + "\n")
    edges = [f"acc-{n:03d},acc-{(n + 7) % 60:03d}" for n in range(60)]
    (tmp_path / "edges.csv").write_text("source,target\n" + "\n".join(edges) + "\n")
    flags = ("--nodes", tmp_path / "people.csv", "--label", "kind=fine|fraud", "--features", "age=0..120")
    assert graphveil("import", "--edges", tmp_path / "edges.csv", *flags, "--out", tmp_path / "bank.npz")[0] == 0
    trained = graphveil("train", "dp-mlp", "--data", tmp_path / "bank.npz", "--epsilon", 8, "--out", tmp_path / "run")
    assert trained[0] == 0, trained[2]
    return tmp_path


def written(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_ids_class_names_and_probabilities_in_every_form(graphveil, bank):
    for ending in ("csv", "parquet", "json"):
        code, out, _ = graphveil("predict", bank / "run", "--data", bank / "bank.npz", "--out", bank / f"p.{ending}")
        assert code == 0 and out == ""
    rows = written(bank / "p.csv")
    assert [row["node"] for row in rows] == [name for name, *_ in PEOPLE]
    assert {row["class"] for row in rows} <= {"fine", "fraud"} and all(
        0.5 <= float(row["probability"]) <= 1 for row in rows
    )
    assert [("fine", "fraud")[int(row["prediction"])] for row in rows] == [row["class"] for row in rows]
    table = pq.read_table(bank / "p.parquet").to_pylist()
    body = json.loads((bank / "p.json").read_text())["predictions"]
    assert [tuple(map(str, row.values())) for row in table] == [tuple(row.values()) for row in rows]
    assert table == body


def test_only_those_without_a_label(graphveil, bank):
    code, out, _ = graphveil("predict", bank / "run", "--data", bank / "bank.npz", "--only", "unlabelled")
    assert code == 0
    assert [line.split(",")[0] for line in out.splitlines()[1:]] == [name for name, _, known, _ in PEOPLE if not known]


def test_the_likeliest_of_a_class_first(graphveil, bank):
    flags = ("--data", bank / "bank.npz", "--of-class", "fraud", "--top", 5, "--out", bank / "top.csv")
    code, _, err = graphveil("predict", bank / "run", *flags)
    assert code == 0 and "the list stays with the curator" in err
    rows = written(bank / "top.csv")
    chances = [float(row["probability"]) for row in rows]
    assert len(rows) == 5 and chances == sorted(chances, reverse=True) and {row["class"] for row in rows} == {"fraud"}
    graphveil("predict", bank / "run", "--data", bank / "bank.npz", "--of-class", "fine", "--out", bank / "fine.csv")
    fine = {row["node"]: float(row["probability"]) for row in written(bank / "fine.csv")}
    assert all(abs(fine[row["node"]] + float(row["probability"]) - 1) < 1e-5 for row in rows)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--only", "labelled"), "--only takes all or unlabelled"),
        (("--of-class", "theft"), "there is no class 'theft'; the classes are: fine, fraud"),
        (("--out", "p.xlsx"), "--out writes .csv, .parquet, .json"),
        (("--top", "0"), "--top"),
    ],
)
def test_wrong_input_is_one_line(graphveil, bank, flags, said):
    code, _, err = graphveil("predict", bank / "run", "--data", bank / "bank.npz", *flags)
    assert code == 2 and said in err and err.count("\n") == 1


def test_training_says_recall_by_class_name(graphveil, bank):
    flags = ("--data", bank / "bank.npz", "--epsilon", 8, "--split", "random")
    code, out, _ = graphveil("train", "dp-mlp", *flags)
    assert code == 0 and "recall by class: fine " in out
    body = json.loads(graphveil("train", "dp-mlp", *flags, "--json")[1])
    assert set(body["test_recall"]) <= {"fine", "fraud"} and all(
        0 <= share <= 1 for share in body["test_recall"].values()
    )


def test_unlabelled_people_are_asked_about_and_that_is_said(graphveil, bank):
    people = (bank / "people.csv").read_text().replace("fine", "").replace("age\n", "age\n", 1)
    (bank / "few.csv").write_text(people)
    flags = ("--nodes", bank / "few.csv", "--label", "kind=fine|fraud", "--features", "age=0..120")
    graphveil("import", "--edges", bank / "edges.csv", *flags, "--out", bank / "few.npz")
    code, _, err = graphveil("train", "dp-mlp", "--data", bank / "few.npz", "--epsilon", 8, "--out", bank / "few")
    assert code == 0 and "most nodes have no label: labelled ones teach" in err
    body = json.loads((bank / "few" / "certificate.json").read_text())
    labelled = sum(known and label == "fraud" for _, label, known, _ in PEOPLE)
    assert body["facts"]["kinds"]["query"] == 60 - labelled
    assert sum(body["facts"]["kinds"][kind] for kind in ("train", "calibration")) == labelled
    assert any("that somebody has one is public" in line for line in body["assumptions"])
    said = graphveil("train", "dp-mlp", "--data", bank / "few.npz", "--epsilon", 8, "--split", "random")[2]
    assert "labelled ones teach" not in said


def test_a_class_that_must_not_be_missed_weighs_more(graphveil, bank):
    data = ("--data", bank / "bank.npz")
    flags = (*data, "--epsilon", 8, "--split", "random", "--seed", 3)
    plain, weighed = (
        graphveil("train", "dp-mlp", *flags, *more, "--out", bank / name)[0]
        for name, more in (("plain", ()), ("weighed", ("--class-weights", "fraud=9")))
    )
    assert plain == weighed == 0
    chances = {}
    for name in ("plain", "weighed"):
        graphveil("predict", bank / name, *data, "--of-class", "fraud", "--out", bank / f"{name}.csv")
        chances[name] = {row["node"]: float(row["probability"]) for row in written(bank / f"{name}.csv")}
    for node, p in chances["plain"].items():
        assert chances["weighed"][node] == pytest.approx(9 * p / (9 * p + 1 - p), abs=1e-5)
    one, other = (json.loads((bank / name / "certificate.json").read_text()) for name in ("plain", "weighed"))
    assert one["epsilon"] == other["epsilon"] and one["releases"] == other["releases"]
    for wrong, said in (("theft=2", "there is no class 'theft'"), ("fraud=-1", "positive"), ("fraud", "name=weight")):
        code, _, err = graphveil("train", "dp-mlp", *flags, "--class-weights", wrong)
        assert code == 2 and said in err
