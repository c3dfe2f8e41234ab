"""``privatize`` at three holders, then ``train --reports``: nothing is randomised twice, ids and costs are the reports' own."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from graphveil.exchange.broadcast import Broadcast
from graphveil.exchange.files import Files
from graphveil.exchange.in_process import InProcess
from graphveil.exchange.randomizers import Contacts, NeighbourMean
from graphveil.exchange.report import Report
from graphveil.exchange.round import Round
from graphveil.exchange.server import Server
from graphveil.graph import powerlaw_sbm, random_split
from graphveil.graph.layout import write_npz
from graphveil.methods.local_method import public_coins
from graphveil.methods.registry import build
from graphveil.privacy.local import Local, Part
from graphveil.privacy.noise import Noise

NODES, CLASSES = 150, 3
BUDGETS = {"lpgnn": (2, 3, "raw"), "local": (None, 3, 4), "graph-privatizer": (2, 3, 4)}
QUICK = ("--set", "epochs=15", "--seed", 0, "--json")


@pytest.fixture(scope="module")
def graph():
    data = random_split(powerlaw_sbm(3, nodes=NODES, features=5, classes=CLASSES, homophily=0.9), 0)
    data.x = (data.x - data.x.min()) / (data.x.max() - data.x.min())
    return data


@pytest.fixture(scope="module")
def truth(graph, tmp_path_factory):
    """The same graph as a file, for evaluation and for training in one process."""
    path = tmp_path_factory.mktemp("graph") / "graph.npz"
    write_npz(graph, path)
    return path


@pytest.fixture(scope="module")
def records(graph, tmp_path_factory):
    """Three holders' tables; test vertices have no label to report."""
    folder, labels = tmp_path_factory.mktemp("records"), graph.y.numpy()
    sender, receiver = graph.edge_index.numpy()
    friends = [" ".join(map(str, np.unique(receiver[sender == v]))) for v in range(NODES)]
    paths = []
    for number in range(3):
        ids = np.flatnonzero(np.arange(NODES) % 3 == number)
        table = {"id": ids} | {f"w{i}": graph.x[ids, i].numpy() for i in range(5)}
        table |= {
            "group": pa.array(labels[ids], mask=graph.test_mask[ids].numpy()),
            "friends": [friends[v] for v in ids],
        }
        paths.append(folder / f"holder{number}.parquet")
        pa.parquet.write_table(pa.table(table), paths[-1])
    return paths


def privatized(graphveil, records, folder, stage, *flags):
    files = []
    for number, path in enumerate(records):
        files.append(folder / f"{stage}-{number}.{'csv' if number else 'parquet'}")
        of = ("--holder", f"holder {number}", "--memory", folder / "memory")  # every test is another collection
        code, _, err = graphveil("privatize", path, "--out", files[-1], *flags, *of)
        assert code == 0, err
    return files


def first_round(graphveil, records, folder, method):
    features, labels, edges = BUDGETS[method]
    flags = ("--labels-epsilon", labels, "--label", "group", "--classes", CLASSES, "--contacts", "friends")
    flags += () if features is None else ("--features-epsilon", features, "--features", "w*")
    flags += ("--edges-epsilon", "raw") if edges == "raw" else ()
    return privatized(graphveil, records, folder, "first", *flags)


def trained(graphveil, method, files, *flags):
    edges = BUDGETS[method][2]
    asked = () if edges == "raw" else ("--edges-epsilon", edges)
    return graphveil("train", method, "--reports", *files, *asked, *QUICK, *flags)


def all_rounds(graphveil, records, folder, method, *flags):
    """Files of every round that the method asks for, and what the last training printed."""
    files = first_round(graphveil, records, folder, method)
    for number in range(3):
        heard = folder / f"broadcast-{number}.csv"
        code, out, err = trained(graphveil, method, files, "--broadcast", heard, *flags)
        if code != 3:
            assert code == 0, err
            return files, json.loads(out)
        body = json.loads(out)
        assert (
            body["broadcast"] == str(heard)
            and heard.exists()
            and body["waiting_for"] in ("histogram", "histogram-2", "edges")
        )
        edges = ("--edges-epsilon", BUDGETS[method][2], "--contacts", "friends", "--broadcast", heard)
        files += privatized(graphveil, records, folder, f"round{number}", *edges)
    raise AssertionError("it never stopped asking")


@pytest.mark.parametrize("method", BUDGETS)
def test_reports_train_the_method_and_cost_what_training_in_one_process_costs(
    graphveil, records, truth, tmp_path, method
):
    features, labels, edges = BUDGETS[method]
    run = tmp_path / "run"
    files, body = all_rounds(graphveil, records, tmp_path, method, "--data", truth, "--out", run)
    flags = () if features is None else ("--features-epsilon", features)
    flags += ("--labels-epsilon", labels, "--edges-epsilon", edges, "--holders", 3, *QUICK)
    inside = json.loads(graphveil("train", method, "--data", truth, "--level", "local", *flags)[1])
    assert body["epsilon"] == inside["epsilon"] and body["holds"] and inside["holds"]
    assert body["per_edge"] == inside["per_edge"] and set(body["per_holder"]) == {f"holder {n}" for n in range(3)}
    assert body["test_accuracy"] is not None and "reports once" in " ".join(body["assumptions"])
    assert graphveil("verify", run)[0] == 0
    certificate = json.loads((run / "certificate.json").read_text())
    assert certificate["method"] == method and len(certificate["releases"]) == len(
        {f["name"] for f in certificate["releases"]}
    )
    code, out, _ = graphveil("predict", run)
    assert code == 0 and [line.split(",")[0] for line in out.splitlines()[1:4]] == ["0", "1", "2"]
    again = json.loads(trained(graphveil, method, files)[1])
    assert again["epsilon"] == body["epsilon"], "training again spends nothing"
    assert again["test_accuracy"] is None and again["val_accuracy"] is None, "there is nothing clean to score against"


class SameReports(InProcess):
    """Clients in this process that happened to draw what the files say."""

    files: Files

    def answer(self, round, broadcast):
        told = {round.name: [report for _, report in self.files.reports() if report.round == round.name]}
        found = []
        for mine in super().answer(round, broadcast):
            (theirs,) = (one for one in told[round.name] if set(one.ids) == set(mine.ids))
            order = [theirs.ids.tolist().index(slot) for slot in mine.ids]
            values = (
                Contacts.of([theirs.values[at] for at in order])
                if isinstance(mine.values, Contacts)
                else theirs.values[order].astype(mine.values.dtype)
            )
            found.append(Report(round.name, mine.ids, values, mine.holder))
        return found


@pytest.mark.parametrize("method", BUDGETS)
def test_the_same_reports_give_the_same_model_from_files_and_in_one_process(
    graphveil, records, graph, truth, tmp_path, method
):
    paths, _ = all_rounds(graphveil, records, tmp_path, method, "--data", truth, "--mean-degree", 20)
    features, labels, edges = BUDGETS[method]
    promise, chosen = Local(features or "withheld", labels, edges), build(method, {"epochs": 15})
    clean = chosen.validated(graph, "raise")
    plan = chosen.plan(replace(chosen.facts_for(clean, promise), mean_degree=20.0), promise)  # local: two histograms
    holders = np.arange(NODES) % 3
    clients = SameReports(
        clean, map(Round.of, plan.steps), Noise(7), holders, lengths_public=chosen.told_lengths(promise)
    )
    clients.files = Files(paths)
    inside = chosen.fit_server(Server(plan, clean.masks, clients, public_coins(0)))
    outside = chosen.fit_reports(Files(paths), promise, masks=clean.masks, mean_degree=20.0, seed=0)
    assert np.array_equal(outside.predictor.scores, inside.predictor.scores)


def test_a_holder_that_leaves_after_the_first_round_is_counted(graphveil, records, tmp_path):
    files = first_round(graphveil, records, tmp_path, "local")
    heard = tmp_path / "heard.csv"
    assert trained(graphveil, "local", files, "--broadcast", heard)[0] == 3
    edges = ("--edges-epsilon", 4, "--contacts", "friends", "--broadcast", heard)
    files += privatized(graphveil, records[:2], tmp_path, "second", *edges)
    code, out, err = trained(graphveil, "local", files)
    assert code == 0, err
    assert "round 'histogram': 100 of 150 who were asked have answered" in json.loads(out)["assumptions"]


def test_ids_that_are_names_are_kept(graphveil, tmp_path):
    people = [f"p{n:02d}" for n in range(40)]
    source, reports = tmp_path / "r.csv", tmp_path / "reports.csv"
    rows = [f"{name},{n % 2},{people[(n + 2) % 40]} {people[n - 2]}" for n, name in enumerate(people)]
    source.write_text("id,group,friends\n" + "\n".join(reversed(rows)) + "\n")
    flags = (
        "--labels-epsilon",
        4,
        "--label",
        "group",
        "--classes",
        2,
        "--edges-epsilon",
        "raw",
        "--contacts",
        "friends",
    )
    assert graphveil("privatize", source, "--out", reports, *flags)[0] == 0
    code, _, err = graphveil("train", "local", "--reports", reports, "--set", "epochs=3", "--out", tmp_path / "run")
    assert code == 0, err
    out = graphveil("predict", tmp_path / "run")[1]
    assert [line.split(",")[0] for line in out.splitlines()[1:]] == people


def test_a_collected_graph_is_not_randomised_again(graphveil, records, tmp_path):
    files = first_round(graphveil, records, tmp_path, "lpgnn")
    assert graphveil("collect", *files, "--out", tmp_path / "noisy.npz")[0] == 0
    flags = ("--level", "local", "--features-epsilon", 1, "--labels-epsilon", 1, "--edges-epsilon", "raw")
    code, _, err = graphveil("train", "lpgnn", "--data", tmp_path / "noisy.npz", *flags)
    assert code == 2 and "--reports" in err and "noisy already" in err


@pytest.mark.parametrize(
    ("method", "flags", "word"),
    [
        ("gap", (), "trusts a curator"),
        ("lpgnn", ("--labels-epsilon", 1), "the flags say"),
        ("lpgnn", ("--set", "upper=2.0"), "--plan"),
        ("graph-privatizer", ("--mode", "published", "--edges-epsilon", 1), "published mode only"),
        ("local", (), "reads features only"),
    ],
)
def test_reports_that_do_not_fit_the_method_are_one_clear_line(graphveil, records, tmp_path, method, flags, word):
    files = first_round(graphveil, records, tmp_path, "lpgnn" if method != "graph-privatizer" else method)
    code, out, err = graphveil("train", method, "--reports", *files, *flags)
    assert code == 2 and out == "" and word in err and len(err.strip().splitlines()) == 1, err


def test_a_round_must_have_heard_the_broadcast_that_the_reports_give(graphveil, records, tmp_path):
    files = first_round(graphveil, records, tmp_path, "local")
    heard = tmp_path / "heard.csv"
    assert trained(graphveil, "local", files, "--broadcast", heard)[0] == 3
    lines = heard.read_text().splitlines()
    heard.write_text(
        "\n".join([lines[0], *(line[:-1] + ("1" if line[-1] == "0" else "0") for line in lines[1:])]) + "\n"
    )
    edges = ("--edges-epsilon", 4, "--contacts", "friends", "--broadcast", heard)
    files += privatized(graphveil, records, tmp_path, "second", *edges)
    code, _, err = trained(graphveil, "local", files)
    assert code == 2 and "another broadcast" in err


def test_a_client_refuses_a_round_that_costs_more_than_its_owner_allows(graphveil, records, tmp_path):
    files = first_round(graphveil, records, tmp_path, "local")
    heard = tmp_path / "heard.csv"
    assert trained(graphveil, "local", files, "--broadcast", heard)[0] == 3
    flags = ("--edges-epsilon", 1, "--contacts", "friends", "--broadcast", heard)
    code, _, err = graphveil("privatize", records[0], "--out", tmp_path / "x.csv", *flags)
    assert code == 2 and "cost epsilon 4" in err and not (tmp_path / "x.csv").exists()


def test_a_plan_tells_holders_which_randomizers_a_method_asks_for(graphveil, records, tmp_path):
    budgets = ("--features-epsilon", 2, "--labels-epsilon", 3, "--edges-epsilon", "raw")
    sizes = ("--level", "local", "--nodes", NODES, "--features", 5, "--classes", CLASSES)
    plan = tmp_path / "plan.json"
    plan.write_text(graphveil("plan", "lga-pgnn", *sizes, *budgets, "--json")[1])
    columns = ("--label", "group", "--classes", CLASSES, "--contacts", "friends", "--features", "w*")
    files = privatized(graphveil, records, tmp_path, "first", *budgets, *columns, "--plan", plan)
    code, out, err = graphveil("train", "lga-pgnn", "--reports", *files, *QUICK)
    assert code == 0, err
    assert json.loads(out)["epsilon"] == pytest.approx(5.0, abs=1e-6)


def test_what_was_sent_in_the_clear_cannot_be_talked_away(graphveil, records, tmp_path):
    files = first_round(graphveil, records, tmp_path, "lpgnn")  # raw edges
    heard = tmp_path / "heard.csv"
    code, _, err = graphveil(
        "train", "graph-privatizer", "--reports", *files, "--edges-epsilon", 4, "--broadcast", heard
    )
    assert code == 2 and "made with raw, the flags say epsilon 4" in err and not heard.exists()
    (tmp_path / "other").mkdir()
    files = first_round(graphveil, records, tmp_path / "other", "local")  # edges withheld
    code, _, err = graphveil("train", "local", "--reports", *files, "--edges-epsilon", "raw")
    assert code == 2 and "made with withheld, the flags say raw" in err


def test_a_round_that_the_method_does_not_ask_is_refused_because_its_cost_would_be_left_out(
    graphveil, records, tmp_path
):
    files = first_round(graphveil, records, tmp_path, "local")
    heard = tmp_path / "heard.csv"
    assert trained(graphveil, "local", files, "--broadcast", heard)[0] == 3
    plain = tmp_path / "plain.csv"
    assert graphveil("collect", *files, "--out", tmp_path / "noisy.npz", "--broadcast", plain)[0] == 0
    edges = ("--edges-epsilon", 8, "--contacts", "friends", "--broadcast", plain)
    files += privatized(graphveil, records, tmp_path, "second", *edges)
    code, out, err = trained(graphveil, "local", files)
    assert code == 2 and out == "" and "round 'edges'" in err


def test_labels_of_vertices_to_be_scored_are_not_read(graphveil, graph, truth, tmp_path):
    """Everybody reports a label, at an epsilon that hides nothing: reading test labels would score close to 100 %."""
    told, silent = tmp_path / "told.csv", tmp_path / "silent.csv"
    labels, test = graph.y.numpy(), graph.test_mask.numpy()
    for path, hidden in ((told, np.zeros(NODES, dtype=bool)), (silent, test)):
        rows = [f"{v},{'' if hidden[v] else labels[v]}," for v in range(NODES)]  # nobody has contacts
        path.write_text("id,group,friends\n" + "\n".join(rows) + "\n")
    scores = []
    for path in (told, silent):
        out = path.with_suffix(".parquet")
        flags = ("--labels-epsilon", 20, "--label", "group", "--classes", CLASSES, "--contacts", "friends")
        assert (
            graphveil(
                "privatize",
                path,
                "--out",
                out,
                *flags,
                "--edges-epsilon",
                "raw",
                "--seed",
                1,
                "--memory",
                path.with_suffix(""),
            )[0]
            == 0
        )
        scores.append(json.loads(graphveil("train", "local", "--reports", out, *QUICK, "--data", truth)[1]))
    assert scores[0]["test_accuracy"] == scores[1]["test_accuracy"] < 0.8
    assert scores[0]["epsilon"] == scores[1]["epsilon"]


def test_a_client_answers_a_round_with_a_delta_only_where_its_owner_allows_it(graphveil, records, graph, tmp_path):
    heard, out = tmp_path / "heard.csv", tmp_path / "reports.csv"
    asked = Round("means", Part.EDGES, NeighbourMean(2.0, 5, delta=1e-3))
    Broadcast.of([str(v) for v in range(NODES)], graph.x.numpy(), asked).write(heard)
    flags = ("privatize", records[0], "--out", out, "--edges-epsilon", 2, "--contacts", "friends", "--broadcast", heard)
    flags += ("--memory", tmp_path / "memory")
    code, _, err = graphveil(*flags)
    assert code == 2 and "cost delta 0.001, 0 is allowed" in err and not out.exists()
    code, said, err = graphveil(*flags, "--delta", 1e-3)
    assert code == 0, err
    assert "IN THE CLEAR: HOW MANY CONTACTS EVERYBODY HAS" in said
    assert json.loads(out.with_name("reports.csv.json").read_text())["lengths_in_the_clear"]


@pytest.mark.parametrize("name", ["-1", "007", "ann"])
def test_ids_that_are_no_node_numbers_are_not_scored(graphveil, truth, tmp_path, name):
    source, reports = tmp_path / "r.csv", tmp_path / "reports.csv"
    source.write_text("id,group,friends\n" + "".join(f"{v},{at % 3},\n" for at, v in enumerate([name, *range(20, 40)])))
    flags = ("--labels-epsilon", 4, "--label", "group", "--classes", CLASSES, "--edges-epsilon", "raw")
    assert graphveil("privatize", source, "--out", reports, *flags, "--contacts", "friends")[0] == 0
    code, _, err = graphveil("train", "local", "--reports", reports, "--data", truth, *QUICK)
    assert code == 2 and "ids are node numbers" in err


def test_a_public_mean_degree_chooses_the_rounds_as_in_one_process(graphveil, records, truth, tmp_path):
    """Epsilon 4 times 20 contacts pays for a second histogram; without the fact one round is asked."""
    flags = ("--mean-degree", 20, "--data", truth, "--out", tmp_path / "run")
    files = first_round(graphveil, records, tmp_path, "local")
    for number, name in enumerate(("histogram", "histogram-2")):
        heard = tmp_path / f"heard-{number}.csv"
        code, out, err = trained(graphveil, "local", files, *flags, "--broadcast", heard)
        assert code == 3 and json.loads(out)["waiting_for"] == name, err
        edges = ("--edges-epsilon", 2, "--contacts", "friends", "--broadcast", heard)
        files += privatized(graphveil, records, tmp_path, f"round{number}", *edges)
    code, out, err = trained(graphveil, "local", files, *flags)
    assert code == 0, err
    assert json.loads(out)["epsilon"] == pytest.approx(7.0, abs=1e-6) and graphveil("verify", tmp_path / "run")[0] == 0
    code, _, err = trained(graphveil, "local", files)
    assert code == 2 and "histogram" in err, "the plan without the fact asks other rounds"
