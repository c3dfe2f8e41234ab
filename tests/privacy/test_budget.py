"""The budget book: composed exactly, never less than was released, one of two is refused, and edits show."""

import itertools
import json
import math
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace

import pytest

import graphveil as gv
from graphveil.audit.central.neighbours import worst_case_graph
from graphveil.errors import InputError, PrivacyError
from graphveil.privacy.accounting.loss import (
    Gdp,
    LaplaceLoss,
    Pure,
    SampledGaussian,
    Stated,
    Unbounded,
    Zcdp,
    epsilon_of,
    gaussian_epsilon,
    gaussian_mu,
)
from graphveil.privacy.budget import Account, BudgetBook, Charge, Notion
from graphveil.privacy.budget.book import _append
from graphveil.privacy.budget.charge import loss_from_json, loss_to_json
from graphveil.privacy.budget.statement import cautions, exported, history
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.plan import Gap, Plan, Slot
from graphveil.privacy.promise import Adjacency, EdgeLevel, KNeighborLevel, NodeLevel
from tests.privacy.budget_worker import plan

TOTAL = NodeLevel(4.0, 1e-5, adjacency="record")
KILLS = int(os.environ.get("GRAPHVEIL_KILLS", "3"))


@pytest.fixture
def book(tmp_path):
    with BudgetBook.create(tmp_path / "book.db", "accounts", TOTAL) as made:
        yield made


def spend(book, mu):
    one = plan(mu)
    reservation = book.reserve(one, method="x")
    reservation.settle(one.steps, certificate=f"certificate of {mu}")
    return reservation


# composition


def test_ten_gaussian_releases_compose_to_the_closed_form(book):
    for _ in range(10):
        spend(book, 0.2)
    (account,) = book.accounts()
    assert account.exact and abs(account.spent - gaussian_epsilon(0.2 * math.sqrt(10), 1e-5)) < 1e-6
    assert abs(account.left - gaussian_epsilon(math.sqrt(gaussian_mu(4.0, 1e-5) ** 2 - 0.4), 1e-5)) < 1e-6


def test_what_is_left_still_fits_and_a_little_more_does_not(book):
    spend(book, 0.5)
    left = book.accounts()[0].left
    mu = gaussian_mu(left, 1e-5)
    with pytest.raises(PrivacyError, match="refused"):
        book.reserve(plan(mu * 1.001), method="x")
    book.reserve(plan(mu * 0.999), method="x")


def test_losses_that_are_not_gaussian_compose_as_distributions_and_not_as_a_sum():
    charge = Charge({"train": (SampledGaussian(2.0, 0.1, 50), LaplaceLoss(0.3))})
    twice = Account(TOTAL, (charge, charge))
    assert twice.spent == epsilon_of([*charge.losses["train"]] * 2, 1e-5) < 2 * Account(TOTAL, (charge,)).spent
    assert not twice.exact and 0 < twice.left < 4 - twice.spent + 1.5


@pytest.mark.parametrize(
    "charges",
    [
        [{"train": (Gdp(1.0),), "query": (Gdp(0.4),)}, {"train": (Gdp(0.2),), "query": (Gdp(0.9),)}],
        [{"train": (Pure(0.3), Gdp(0.4)), "query": (Gdp(0.5),)}, {"train": (), "query": (Pure(0.7),)}],
        [{"train": (LaplaceLoss(0.4), LaplaceLoss(0.4)), "query": (LaplaceLoss(0.5),)}],
        [{"train": (Stated(0.5, 1e-7),), "query": (Gdp(0.3),)}, {"train": (Gdp(0.6),), "other": (Pure(0.1),)}],
    ],
)
def test_anybody_is_the_worst_over_all_histories_of_kinds(charges):
    account = Account(TOTAL, tuple(map(Charge, charges)))
    courses = itertools.product(*(charge.values() for charge in charges))
    assert account.spent == pytest.approx(
        max(epsilon_of(itertools.chain(*course), 1e-5) for course in courses), abs=1e-9
    )
    assert account.spent >= max(account.spent_by_kind.values()) - 1e-9


def test_too_many_histories_are_bounded_from_above():
    one = Charge({"train": (Pure(0.05),), "query": (LaplaceLoss(0.06),)})
    many = Account(TOTAL, (one,) * 12)
    assert many.spent >= epsilon_of([Pure(0.05)] * 6 + [LaplaceLoss(0.06)] * 6, 1e-5)


@pytest.mark.parametrize(
    "loss",
    [
        Gdp(0.3),
        Pure(1.0),
        LaplaceLoss(0.2),
        SampledGaussian(1.0, 0.1, 3, True, (2, 1)),
        Zcdp(0.1),
        Stated(1.0, 1e-6),
        Unbounded(),
    ],
)
def test_losses_survive_the_book(loss):
    assert loss_from_json(json.loads(json.dumps(loss_to_json(loss)))) == loss


# what a plan costs


def test_plans_are_charged_at_their_worst():
    facts = PublicFacts(100, 3, 2)
    slots = (Slot("a", {"train": 1.0}, 0.5, 3, "l"), Slot("b", {"query": 1.0}, 0.5, 3, "l"))
    adaptive = Plan(TOTAL, facts, slots)
    assert set(Charge.of_plan(adaptive, 1e-5).losses.values()) == {(Gdp(adaptive.mu),)}
    fixed = plan(0.3)
    assert Charge.of_plan(fixed, 1e-5).losses["train"][0].mu == pytest.approx(0.3)
    assert Charge.of_plan(fixed, 1e-5).losses["query"] == ()
    for hollow in (replace(fixed, gaps=(Gap("G1", "a hole", "check"),)), replace(fixed, provable=False)):
        assert set(Charge.of_plan(hollow, 1e-5).losses.values()) == {(Unbounded(),)}
    coin = Charge.of_plan(replace(fixed, sampled=0.1), 1e-5).losses["train"]
    assert isinstance(coin[0], Stated) and coin[0].delta == pytest.approx(1e-6) and coin[0].epsilon < 0.3 * 5


def test_runs_without_a_proof_are_refused(book):
    with pytest.raises(PrivacyError, match="asks for epsilon inf"):
        book.reserve(replace(plan(0.1), gaps=(Gap("G1", "a hole", "check"),)), method="gap", mode="published")
    assert len(book.entries()) == 1


def test_a_run_must_be_provable_under_every_account(book):
    with pytest.raises(PrivacyError, match="edge / edge-undirected / zero-out costs there"):
        book.reserve(plan(0.1, EdgeLevel(1.0, 1e-6)), method="x")
    replaced = NodeLevel(1.0, 1e-5, adjacency="record", relation="replace")
    book.reserve(plan(0.1, replaced), method="x")  # whoever may be exchanged may be exchanged for a blank
    assert len(book.accounts()[0].charges) == 1


def test_notions_cover_what_they_contain():
    notion = Notion.of
    five, two = notion(KNeighborLevel(5, 1.0, 1e-5)), notion(KNeighborLevel(2, 1.0, 1e-5))
    assert five.covers(two) and not two.covers(five) and not five.covers(notion(TOTAL))
    wide, narrow = (notion(NodeLevel(1.0, 1e-5, adjacency="bounded-degree", max_degree=d)) for d in (9, 3))
    assert wide.covers(narrow) and not narrow.covers(wide)
    replaced = notion(NodeLevel(1.0, 1e-5, adjacency="record", relation="replace"))
    assert replaced.covers(notion(TOTAL)) and not notion(TOTAL).covers(replaced)


def test_an_adaptive_run_is_free_of_its_rest_only_where_all_noise_is_gaussian():
    """The filter theorem is about Gaussians: beside other noise, a share that was chosen at run time is no bound."""
    adaptive = Charge({"train": (Gdp(0.9),)})
    settled = Account(TOTAL, (Charge({"train": (Gdp(0.2),)}),), (adaptive,))
    assert settled.spent == pytest.approx(gaussian_epsilon(0.2, 1e-5))
    other = Charge({"train": (LaplaceLoss(0.3),)})
    assert settled.with_charge(other).spent == Account(TOTAL, (adaptive, other)).spent
    nothing = Account(TOTAL, (Charge({"train": ()}),), (adaptive,))
    assert nothing.with_charge(other).spent == Account(TOTAL, (other,)).spent


def test_a_sampled_run_that_released_nothing_costs_no_delta_either(book):
    coin = replace(plan(0.3), sampled=0.1)
    for _ in range(12):
        book.reserve(coin, method="x").give_up([])
    assert book.accounts()[0].spent == 0.0


def test_the_book_says_for_what_its_total_does_not_stand(book):
    assert cautions(book.entries()) == []
    data, _ = worst_case_graph(seed=1)
    promise = NodeLevel(1.0, adjacency="record")
    gv.DpMlp(steps=2).fit(data, promise, budget=book)
    assert cautions(book.entries()) == [] and book.entries()[-2].body["promise"]["delta"] == 1e-5  # that of the book
    gv.DpMlp(steps=2).fit(data, promise, seed=0, budget=book)
    assert "1 runs drew their noise from a seed" in cautions(book.entries())[0]
    book.reserve(replace(plan(0.1), weaker={"query": Adjacency.RECORD}), method="x")
    assert "no more is covered for query nodes" in cautions(book.entries())[1]


# the file


def test_a_refusal_says_asked_spent_and_left_and_leaves_no_trace(book):
    spend(book, 0.7)
    before = book.path.read_bytes(), book.head
    with pytest.raises(PrivacyError) as refused:
        book.reserve(plan(0.9), method="ballot")
    spent, left = book.accounts()[0].spent, book.accounts()[0].left
    assert f"{spent:.4g} of 4 is spent" in str(refused.value) and f"up to epsilon {left:.4g}" in str(refused.value)
    assert f"asks for epsilon {gaussian_epsilon(plan(0.9).release('table').loss('train').mu, 1e-5):.4g}" in str(
        refused.value
    )
    assert (book.path.read_bytes(), book.head) == before


def test_a_killed_run_keeps_its_reservation_and_one_that_released_nothing_is_free(book):
    first = book.reserve(plan(0.6), method="x")
    assert book.accounts()[0].spent == pytest.approx(gaussian_epsilon(0.6, 1e-5), rel=1e-6)
    first.give_up([])
    assert book.accounts()[0].spent == 0.0
    second = book.reserve(plan(0.6), method="x")
    assert second.give_up(second.plan.steps) is None and book.accounts()[0].spent > 1
    assert first.settle([]) == first.settle([])  # once


def test_history_replays_to_the_figures_of_the_book(book, tmp_path):
    for mu in (0.3, 0.5):
        spend(book, mu)
    book.reserve(plan(0.2), method="y")
    told = history(book.entries())
    assert [entry["kind"] for entry in told] == ["open", "reserve", "settle", "reserve", "settle", "reserve"]
    after = told[-1]["after"]["node / record / zero-out"]
    assert (after["spent"], after["left"]) == (book.accounts()[0].spent, book.accounts()[0].left)
    for kind in ("json", "jsonl", "csv"):
        exported(book, tmp_path / f"out.{kind}")
    assert json.loads((tmp_path / "out.json").read_text())["head"] == book.head
    assert (
        len((tmp_path / "out.jsonl").read_text().splitlines())
        == 6
        == len((tmp_path / "out.csv").read_text().splitlines()) - 1
    )
    with pytest.raises(InputError, match=r"\.json, \.jsonl or \.csv"):
        exported(book, tmp_path / "out.xml")


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE entries SET body = replace(body, 'train', 'query') WHERE number = 2",
        "UPDATE entries SET time = '2020-01-01' WHERE number = 3",
        "DELETE FROM entries WHERE number = 3",
        "DELETE FROM entries WHERE number = (SELECT max(number) FROM entries)",
        "DELETE FROM entries WHERE number > 1",
        "UPDATE entries SET run = 'another' WHERE number = 3",
        "UPDATE book SET entries = 1",
        "UPDATE entries SET number = number + 10 WHERE number = 3",
    ],
)
def test_edits_and_deletions_are_found(book, edit):
    for mu in (0.5, 0.4):
        spend(book, mu)
    assert book.verify() == []
    with sqlite3.connect(book.path) as db:
        db.execute(edit)
    db.close()
    assert book.verify() != []


def test_what_is_appended_by_hand_shows_although_every_digest_agrees(book):
    """A second settlement would free what a run has cost; the chain is whole, and all heads noted elsewhere are in it."""
    paid = spend(book, 0.5)
    spent, nothing = book.accounts()[0].spent, {"node / record / zero-out": {"train": [], "query": []}}
    forged = {"certificate": None, "note": "finished", "charges": nothing}
    with book._writing() as db:
        _append(db, "settle", paid.run, forged)
    assert "none that a run could have written" in book.verify([paid.settled.digest])[0]
    assert book.accounts()[0].spent == spent > 0


def test_a_book_under_another_name_is_found(book):
    with sqlite3.connect(book.path) as db:
        db.execute("UPDATE book SET name = 'other people'")
    db.close()
    assert "was begun as 'accounts'" in book.verify()[0]
    with sqlite3.connect(book.path) as db:
        db.execute("DELETE FROM book")
    db.close()
    with pytest.raises(InputError, match="its head was changed"):
        book.verify()


def test_a_rewritten_book_is_told_by_a_head_noted_elsewhere(book, tmp_path):
    spend(book, 0.5)
    noted = book.head
    with BudgetBook.create(tmp_path / "new.db", "accounts", TOTAL) as forged:
        assert forged.verify() == [] and "rewritten" in forged.verify([noted])[0]
    assert book.verify([noted]) == []


def test_totals_are_promised_once_and_before_the_first_run(book, tmp_path):
    with pytest.raises(InputError, match="already exists"):
        BudgetBook.create(book.path, "again", TOTAL)
    with pytest.raises(InputError, match="never changed"):
        book.open_account(NodeLevel(9.0, 1e-5, adjacency="record"))
    replaced = NodeLevel(8.0, 1e-5, adjacency="record", relation="replace")
    book.open_account(replaced)
    assert [str(a.notion) for a in book.accounts()] == ["node / record / zero-out", "node / record / replace"]
    book.reserve(plan(0.1, replace(replaced, epsilon=1.0)), method="x")
    with pytest.raises(InputError, match="start a new book"):
        book.open_account(EdgeLevel(1.0, 1e-6))
    for wrong in (gv.NonPrivate(), NodeLevel(math.inf, 1e-5)):
        with pytest.raises(InputError, match="finite epsilon"):
            book.open_account(wrong)


def test_files_that_are_no_books_are_one_clear_line(tmp_path):
    with pytest.raises(InputError, match="there is no budget book"):
        BudgetBook(tmp_path / "none.db")
    (tmp_path / "text.db").write_text("no database at all, but long enough to look at" * 10)
    with BudgetBook(tmp_path / "text.db") as book, pytest.raises(InputError, match="not a usable budget book"):
        book.accounts()


def worker(*arguments):
    command = [sys.executable, "-m", "tests.privacy.budget_worker", *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_of_two_processes_that_would_overspend_together_one_is_refused(book):
    mu = 0.75 * gaussian_mu(4.0, 1e-5)
    both = [worker("once", book.path, mu) for _ in range(2)]
    for process in both:
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate(timeout=60)[0].strip() for process in both]
    assert sorted(line.startswith("admitted") for line in said) == [False, True] and any(
        "refused" in line for line in said
    )
    assert len(book.accounts()[0].charges) == 1 and book.verify() == []


def test_killed_at_random_moments_the_book_never_shows_less_than_was_released(tmp_path):
    moments = random.Random(5)
    for turn in range(KILLS):
        file, out = tmp_path / f"{turn}.db", tmp_path / f"{turn}.txt"
        BudgetBook.create(file, "x", NodeLevel(1e4, 1e-5, adjacency="record")).close()
        process = worker("spend", file, out, 0.05)
        while not (out.exists() and out.read_text()):
            time.sleep(0.01)
        time.sleep(moments.uniform(0, 0.3))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdin.close()
        process.stdout.close()
        released = len(out.read_text().splitlines())
        with BudgetBook(file) as book:
            (account,) = book.accounts()
            assert book.verify() == [] and released <= len(account.charges) <= released + 1
            assert account.spent >= gaussian_epsilon(0.05 * math.sqrt(released), 1e-5) - 1e-9
            book.reserve(plan(0.05), method="x")  # and it goes on


def test_entries_are_on_disk_before_they_pay(book):
    with book._writing() as db:
        assert db.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2
        assert db.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"


# runs


def test_a_fit_reserves_before_it_reads_and_settles_after(book, monkeypatch):
    data, _ = worst_case_graph(seed=1)
    method, promise = gv.DpMlp(steps=2), NodeLevel(1.0, 1e-5, adjacency="record")
    model = method.fit(data, promise, seed=0, budget=book)
    (account,) = book.accounts()
    assert book.entries()[-1].body["certificate"] == model.certificate.to_json()["digest"]
    assert account.spent == pytest.approx(model.certificate.epsilon, abs=1e-3) and account.spent > 0
    assert book.receipt(model.certificate.to_json()["digest"])["head"] == book.head

    def broken(*_):
        raise RuntimeError("before anything is released")

    monkeypatch.setattr(gv.DpMlp, "learn", broken)
    with pytest.raises(RuntimeError):
        method.fit(data, promise, seed=0, budget=book)
    assert book.accounts()[0].spent == account.spent and "broken off" in book.entries()[-1].body["note"]
    with pytest.raises(PrivacyError, match="refused"):  # and not RuntimeError: nothing private was read
        method.fit(data, NodeLevel(3.9, 1e-5, adjacency="record"), seed=0, budget=book)


def test_a_run_that_breaks_off_after_a_release_stays_spent(book, monkeypatch):
    data, _ = worst_case_graph(seed=1)
    learn = gv.DpMlp.learn

    def stopped(*arguments):
        learn(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(gv.DpMlp, "learn", stopped)
    with pytest.raises(KeyboardInterrupt):
        gv.DpMlp(steps=2).fit(data, NodeLevel(1.0, 1e-5, adjacency="record"), seed=0, budget=book)
    assert book.entries()[-1].kind == "reserve" and book.accounts()[0].spent > 0.9


def test_local_methods_are_paid_for_by_those_who_report(book):
    data, _ = worst_case_graph(seed=1)
    with pytest.raises(InputError, match="paid for by those who send"):
        gv.Lpgnn().fit(data, gv.Local(features=3.0, labels=1.0, edges="raw"), budget=book)
