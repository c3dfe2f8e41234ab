"""The bank's walkthrough, small: tables, a charged run, predictions with ids, certificate page, budget book; and November."""

import csv
import runpy
from pathlib import Path

import pytest

from graphveil.privacy.budget import BudgetBook

BANK = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "bank.py"))


@pytest.fixture
def bank(tmp_path):
    truth = BANK["write_tables"](tmp_path, 800)
    BANK["read_tables"](tmp_path)
    return tmp_path, truth


def test_from_tables_to_predictions_certificate_and_book(bank, capsys):
    folder, truth = bank
    BANK["work"](folder, truth, 800)
    with (folder / "predictions.csv").open() as file:
        rows = list(csv.DictReader(file))
    with (folder / "accounts.csv").open() as file:
        unlabelled = {row["account"] for row in csv.DictReader(file) if not row["kind"]}
    assert {row["node"] for row in rows} == unlabelled and {row["class"] for row in rows} == {"fraud"}
    assert (
        "epsilon" in (folder / "certificate.html").read_text() and "promised 8" in (folder / "budget.svg").read_text()
    )
    with BudgetBook(folder / "book.db") as book:
        assert book.verify() == [] and 3.5 < book.accounts()[0].spent <= 3.61
    said = capsys.readouterr().out
    assert "who has a label decides" in said
    assert 0 <= BANK["reached"](folder / "predictions.csv", truth)[1] <= 100
    BANK["next_month"](folder, truth)
    said = capsys.readouterr().out
    assert "800 accounts known by id, 80 new" in said and "what it released is averaged in" in said
    with (folder / "predictions-november.csv").open() as file:
        later = {row["node"] for row in csv.DictReader(file)}
    assert later > unlabelled and len(later - unlabelled) <= 80
    with BudgetBook(folder / "book.db") as book:
        (account,) = book.accounts()
        assert book.verify() == [] and len(account.charges) == 2 and 5.3 < account.spent < 5.8
    assert f"epsilon {account.spent:.6g} together" in said
    assert "Together with the runs before" in (folder / "certificate-november.html").read_text()


def test_rings_pay_each_other(bank):
    folder, truth = bank
    with (folder / "payments.csv").open() as file:
        inside = [truth[row["payee"]] for row in csv.DictReader(file) if truth[row["payer"]] == "fraud"]
    assert sum(kind == "fraud" for kind in inside) > 0.6 * len(inside)
