"""Advice follows from answers alone, as the table in the docs says, and its commands are commands."""

import math
import re
import shlex
from pathlib import Path

import pytest

from graphveil.cli.app import COMMANDS, main
from graphveil.errors import InputError
from graphveil.methods.advice import Answers, advise
from graphveil.privacy.accounting.loss import gaussian_epsilon, gaussian_mu

PAGE = Path(__file__).parents[2] / "docs" / "choosing.md"
ROWS = [
    [cell.strip() for cell in line.strip("|\n").split("|")]
    for line in PAGE.read_text().splitlines()
    if re.match(r"\| (person|traces|contact|reports)", line)
]


def answers_of(row):
    k = re.search(r"--k (\d+)", row[0])
    return Answers(row[0].split()[0], row[1] == "mutual", row[2] == "yes", **({"k": int(k[1])} if k else {}))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: " ".join(row[:3]))
def test_the_table_of_the_docs(row):
    found = advise(answers_of(row))
    assert (found.promise, found.method) == (row[3], row[4])
    assert len(found.consequences) >= 1 and len(found.commands) == 3


def test_the_table_has_every_answer():
    assert len(ROWS) >= 6 and {row[0].split()[0] for row in ROWS} == {
        "person",
        "traces",
        "contacts",
        "contact",
        "reports",
    }


@pytest.mark.parametrize("row", ROWS, ids=lambda row: " ".join(row[:3]))
def test_advised_commands_are_understood(row, capsys):
    for command in advise(answers_of(row)).commands:
        program, name, *rest = shlex.split(command)
        assert program == "graphveil" and name in COMMANDS
        with pytest.raises(SystemExit):
            main([name, *rest])  # the files are not here; every flag must be known
        error = capsys.readouterr().err
        assert "No such option" not in error and "unexpected" not in error and "does not cover" not in error, error
    Path("book.db").unlink(missing_ok=True)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_budgets_are_gaussian_shares_and_the_best_guess():
    found = advise(Answers(runs=12, people=10_000))
    for budget in found.budgets:
        mu = gaussian_mu(budget.total, 1e-4)
        assert budget.each == pytest.approx(gaussian_epsilon(mu / math.sqrt(12), 1e-4))
        assert 0.5 < budget.guess < 1 and budget.each > budget.total / 12
    assert [round(100 * budget.guess) for budget in found.budgets] == [56, 61, 70, 82]
    local = advise(Answers("reports", runs=12)).budgets[0]
    assert local.each == local.total == 1 and local.guess == pytest.approx(math.e / (1 + math.e))


@pytest.mark.parametrize("runs", range(1, 13))
def test_as_many_runs_as_advised_fit_into_the_total(runs):
    found = advise(Answers(runs=runs))
    each = float(re.search(r"--epsilon (\S+)", found.commands[2])[1])
    assert gaussian_epsilon(gaussian_mu(each, found.delta) * math.sqrt(runs), found.delta) <= 4.0


def test_what_is_advised_to_be_sent_raw_is_not_said_to_be_protected():
    found = advise(Answers("reports"))
    assert "--edges-epsilon raw" in found.commands[1]
    assert "contact lists are sent in the clear and not protected" in found.protected


@pytest.mark.parametrize("wrong", [{"protect": "everybody"}, {"runs": 0}, {"k": 0}, {"people": 0}])
def test_wrong_answers_are_refused(wrong):
    with pytest.raises(InputError):
        Answers(**wrong)
