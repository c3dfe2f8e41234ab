"""``graphveil budget`` and ``train --budget``: runs are charged, refused, shown and checked."""

import json
from dataclasses import replace

import pytest

from graphveil.errors import InputError
from graphveil.experiments.run import Run
from graphveil.privacy.budget import BudgetBook

RUN = ("train", "dp-mlp", "--adjacency", "record", "--on-bad-rows", "zero", "--set", "steps=2", "--no-evaluate")


@pytest.fixture
def book(graphveil, tmp_path):
    path = tmp_path / "book.db"
    code, out, _ = graphveil(
        "budget", "init", path, "--epsilon", 4, "--delta", 1e-4, "--adjacency", "record", "--name", "bank"
    )
    assert code == 0 and "0 of epsilon 4 spent in 0 runs" in out
    return path


def test_runs_are_charged_until_one_is_refused(graphveil, graph_file, book, tmp_path):
    charged = ("--data", graph_file, "--budget", book)
    for number in range(2):
        code, _, err = graphveil(*RUN, *charged, "--epsilon", 2, "--out", tmp_path / f"run{number}")
        assert code == 0, err
    code, _, err = graphveil(*RUN, *charged, "--epsilon", 3, "--out", tmp_path / "run2")
    assert code == 2 and "dp-mlp was refused: it asks for epsilon 3" in err and "still fits" in err
    assert not (tmp_path / "run2" / "certificate.json").exists()
    code, out, _ = graphveil("budget", "show", book, "--json", "--plot", tmp_path / "book.svg")
    body = json.loads(out)
    (account,) = body["accounts"]
    assert 2 < account["spent"] < 4 and account["runs"] == 2 and body["reserved"] == 0 and account["exact"]
    assert "promised 4" in (tmp_path / "book.svg").read_text()
    code, out, _ = graphveil("budget", "show", book)
    assert code == 0 and "budget of bank" in out and "train, if always of this kind" in out and body["head"] in out


def test_a_run_keeps_a_receipt_and_the_book_is_checked_by_it(graphveil, graph_file, book, tmp_path):
    graphveil(*RUN, "--data", graph_file, "--budget", book, "--epsilon", 2, "--out", tmp_path / "run")
    code, out, _ = graphveil("budget", "verify", book, "--run", tmp_path / "run")
    assert code == 0 and "the chain is whole" in out
    assert graphveil("verify", tmp_path / "run")[0] == 0
    code, out, _ = graphveil("budget", "verify", book, "--head", "0" * 64)
    assert code == 1 and "NOT WHOLE" in out
    code, out, _ = graphveil("budget", "history", book)
    assert [line.split()[2] for line in out.splitlines()] == ["open", "reserve", "settle"] and "2 of 4 spent" in out
    code, out, _ = graphveil("budget", "history", book, "--json")
    assert json.loads(out)[-1]["kind"] == "settle"
    assert graphveil("budget", "export", book, "--out", tmp_path / "book.csv")[0] == 0


def test_who_stops_a_run_is_told_what_it_cost(graphveil, graph_file, book, monkeypatch):
    from graphveil import DpMlp

    learn = DpMlp.learn

    def stopped(*arguments):
        learn(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(DpMlp, "learn", stopped)
    code, _, err = graphveil(*RUN, "--data", graph_file, "--budget", book, "--epsilon", 2)
    assert code == 130 and "stays spent" in err and "graphveil budget show" in err
    with BudgetBook(book) as known:
        assert known.accounts()[0].spent > 1.9
    code, out, _ = graphveil("budget", "show", book)
    assert "1 of these runs have not been settled" in out
    assert "nothing was written" in graphveil(*RUN, "--data", graph_file, "--epsilon", 2)[2]


def test_a_book_counts_what_a_curator_spends(graphveil, graph_file, book):
    local = ("--level", "local", "--features-epsilon", 3, "--labels-epsilon", 1, "--edges-epsilon", "raw")
    code, _, err = graphveil("train", "lpgnn", "--data", graph_file, *local, "--budget", book)
    assert code == 2 and "counts what a curator spends" in err
    code, _, err = graphveil("train", "mlp", "--data", graph_file, "--level", "none", "--budget", book)
    assert code == 2 and "counts what a curator spends" in err
    code, _, err = graphveil("train", "gap", "--data", graph_file, "--level", "edge", "--epsilon", 1, "--budget", book)
    assert code == 2 and "the book promises a total for node / record / zero-out" in err


def test_every_run_of_a_comparison_is_charged_and_what_is_refused_has_failed(graphveil, graph_file, book, tmp_path):
    flags = (
        "--methods",
        "dp-mlp",
        "--data",
        graph_file,
        "--epsilons",
        "1,3",
        "--seeds",
        2,
        "--adjacency",
        "record",
    )
    engine = ("--engine", "serial", "--out", tmp_path / "r.sqlite", "--delta", 1e-4, "--json")
    code, out, err = graphveil("compare", *flags, *engine, "--budget", book)
    assert code == 0, err
    rows = json.loads(out)
    refused = [row for row in rows if row["status"] == "failed"]
    with BudgetBook(book) as known:
        (account,) = known.accounts()
    assert len(account.charges) == len(rows) - len(refused) and account.kept and refused
    assert all("was refused" in row["error"] for row in refused)
    again = json.loads(graphveil("compare", *flags, *engine, "--budget", book)[1])
    assert len(again) == len(rows)
    with BudgetBook(book) as known:  # finished runs are not repeated, and not paid for twice
        assert len(known.accounts()[0].charges) == len(account.charges)


def test_books_are_asked_for_before_anything_runs(graphveil, graph_file, tmp_path):
    flags = ("--methods", "dp-mlp", "--data", graph_file, "--epsilons", "1", "--seeds", 1)
    code, _, err = graphveil("compare", *flags, "--budget", tmp_path / "none.db", "--out", tmp_path / "r.sqlite")
    assert code == 2 and "there is no budget book" in err and not (tmp_path / "r.sqlite").exists()


@pytest.mark.parametrize("attack", ["membership", "lsa2"])
def test_models_that_an_attack_fits_are_not_charged_so_they_are_refused(attack, book):
    promise = {"level": "node", "adjacency": "record", "relation": "zero-out", "epsilon": 1.0}
    run = Run("dp-mlp", "sound", {}, {"name": "cora"}, None, promise, 0, attacks=({"name": attack},))
    with pytest.raises(InputError, match=f"attack {attack} fits further models on the same people"):
        run.charged_to(str(book))
    watched = replace(run, attacks=({"name": "link-teller"},))
    assert watched.charged_to(str(book)).budget == str(book)
