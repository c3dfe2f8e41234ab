"""A bank's first two months: from two tables to a defensible model, predictions with ids, a certificate and a budget book.

    python examples/bank.py [--accounts 50000] [--folder DIR]

Payments are generated: fraud rings of about 150 accounts that pay each other, among accounts whose own columns say little. Two
accounts of five are labelled, the others are asked about. Nothing leaves this machine.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import sys
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np

RING, FRAUD, LABELLED, RENEWED = 150, 0.06, 0.4, 0.1
FEATURES = "age=18..100,balance=0..50000,payments=0..100,abroad=0..1,years=0..40"
PROMISE = ("--adjacency", "record")
EPSILONS = (1.0, 2.0, 4.0, 8.0)


def graphveil(*words: object) -> str:
    """A command, in this process; what it prints."""
    from graphveil.cli.app import main

    said, noted = io.StringIO(), io.StringIO()
    with redirect_stdout(said), redirect_stderr(noted):
        try:
            main([str(word) for word in words])
            code: object = 0
        except SystemExit as stop:
            code = stop.code
    if code:
        sys.exit(f"graphveil {' '.join(map(str, words))}: {noted.getvalue().strip()}")
    return said.getvalue()


def write_tables(folder: Path, accounts: int, seed: int = 0) -> dict[str, str]:
    """``accounts.csv`` and ``payments.csv`` of October, and both of November, when one account in ten is new and one payment in
    ten another; returns the true kind of every account, which the bank does not know."""
    rng = np.random.default_rng(seed)
    people = accounts + round(RENEWED * accounts)
    rings = max(1, round(people * FRAUD / RING))
    ring = min(RING, people // 4)
    members = rng.permutation(people)[: rings * ring].reshape(rings, ring)
    bad = np.zeros(people, dtype=bool)
    bad[members] = True
    shops = rng.choice(people, max(2, people // 200), replace=False)
    popular = shops[(3 * rng.pareto(1.2, 2 * people)).astype(np.int64) % len(shops)]
    payments = [
        rng.integers(people, size=(2, 3 * people)),
        np.stack([rng.integers(people, size=2 * people), popular]),
        np.stack([np.repeat(members, 20, axis=1).ravel(), rng.permuted(np.tile(members, 20), axis=1).ravel()]),
    ]
    source, target = np.concatenate(payments, axis=1)
    columns = {
        "age": np.clip(rng.normal(45, 15, people), 18, 100).round(),
        "balance": np.clip(rng.lognormal(7, 1, people) * (1 + 0.2 * bad), 0, 50_000).round(2),
        "payments": np.clip(rng.poisson(12 + 3 * bad), 0, 100),
        "abroad": np.clip(rng.beta(2, 8, people) + 0.02 * bad, 0, 1).round(3),
        "years": np.clip(rng.exponential(4, people) / (1 + 0.35 * bad), 0, 40).round(1),
    }
    names = np.array([f"AC{number:06d}" for number in rng.permutation(people)])
    kinds = np.where(bad, "fraud", "fine")
    told = np.where(rng.random(people) < LABELLED, kinds, "")
    drawn = rng.random(source.size)
    first = (drawn >= RENEWED) & (source < accounts) & (target < accounts)  # the last accounts are opened in November
    for month, there, paid in (("", accounts, first), ("november-", people, drawn < 1 - RENEWED)):
        rows = [("account", "kind", *columns)]
        rows += zip(names[:there], told[:there], *(values[:there].tolist() for values in columns.values()), strict=True)
        pairs = [("payer", "payee"), *zip(names[source[paid]], names[target[paid]], strict=True)]
        for name, lines in ((f"{month}accounts.csv", rows), (f"{month}payments.csv", pairs)):
            with (folder / name).open("w", newline="") as file:
                csv.writer(file).writerows(lines)
    return dict(zip(names.tolist(), kinds.tolist(), strict=True))


def read_tables(folder: Path, month: str = "") -> Path:
    """The graph of a month, made of its two tables."""
    out = folder / f"{month}bank.npz"
    tables = ("--edges", folder / f"{month}payments.csv", "--nodes", folder / f"{month}accounts.csv", "--id", "account")
    columns = ("--label", "kind=fine|fraud", "--features", FEATURES)
    print(graphveil("import", *tables, *columns, "--out", out).strip())
    return out


def reached(predictions: Path, truth: dict[str, str]) -> tuple[float, float]:
    """Accuracy, and how much of the fraud is among as many accounts as there are frauds: the most suspicious ones."""
    with predictions.open() as file:
        rows = list(csv.DictReader(file))
    fraud = [truth[row["node"]] == "fraud" for row in rows]
    right = [(float(row["probability"]) > 0.5) == bad for row, bad in zip(rows, fraud, strict=True)]
    return 100 * sum(right) / len(right), 100 * sum(fraud[: sum(fraud)]) / max(1, sum(fraud))


def compare(folder: Path, truth: dict[str, str]) -> None:
    """What each method reaches on the accounts nobody has labelled, by epsilon; without noise: its ceiling."""
    print(
        "\non unlabelled accounts: accuracy, and the fraud found among the most suspicious (as many as there are frauds)"
    )
    print(f"{'epsilon':>8} {'DP-MLP':>16} {'Ballot':>16} {'Roster':>16}")
    for epsilon in (*EPSILONS, math.inf):
        cells = []
        for method in ("dp-mlp", "ballot", "roster"):
            run = folder / "trials" / f"{method}-{epsilon:g}"
            graphveil(
                "train",
                method,
                "--data",
                folder / "bank.npz",
                "--epsilon",
                epsilon,
                *PROMISE,
                "--seed",
                0,
                "--out",
                run,
            )
            out = folder / "trial.csv"
            graphveil(
                "predict",
                run,
                "--data",
                folder / "bank.npz",
                "--only",
                "unlabelled",
                "--of-class",
                "fraud",
                "--out",
                out,
            )
            accuracy, found = reached(out, truth)
            cells.append(f"{accuracy:6.1f} % {found:5.1f} %")
        print(
            f"{'no noise' if math.isinf(epsilon) else format(epsilon, 'g'):>8} "
            + " ".join(f"{cell:>16}" for cell in cells)
        )
    print("trials on generated data with a seed: for looking, not for release")


def work(folder: Path, truth: dict[str, str], accounts: int) -> None:
    """The real thing: a total for the year, a run charged to it, predictions, and the page for the privacy officer."""
    book, run = folder / "book.db", folder / "october"
    print(
        "\n"
        + graphveil(
            "advise", "--protect", "person", "--mutual", "--public-predictions", "no", "--people", accounts, "--runs", 4
        )
    )
    graphveil("budget", "init", book, "--name", "accounts", "--epsilon", 8, "--nodes", accounts, *PROMISE)
    trained = graphveil("train", "auto", "--data", folder / "bank.npz", "--epsilon", 3.6, *PROMISE, "--budget", book,
                        "--class-weights", "fraud=3", "--out", run)  # fmt: skip
    print(trained.strip())
    found = folder / "predictions.csv"
    graphveil(
        "predict", run, "--data", folder / "bank.npz", "--only", "unlabelled", "--of-class", "fraud", "--out", found
    )
    print(f"\nthe most suspicious of {found.name}:")
    print("".join(found.read_text().splitlines(keepends=True)[:6]).strip())
    print(f"fraud among them, as many as there are frauds: {reached(found, truth)[1]:.1f} %")
    graphveil("certificate", run, "--html", folder / "certificate.html")
    print("\n" + graphveil("budget", "show", book, "--plot", folder / "budget.svg").strip())


def next_month(folder: Path, truth: dict[str, str]) -> None:
    """November: new accounts are scored at once by October's model; a second run takes over what October released."""
    data, october, november = read_tables(folder, "november-"), folder / "october", folder / "november"
    asked = ("--data", data, "--only", "unlabelled", "--of-class", "fraud")
    at_once = json.loads(graphveil("predict", october, *asked, "--json"))
    graphveil("predict", october, *asked, "--out", folder / "trial.csv")
    people = at_once["people"]
    print(
        f"October's model on November's export: {people['known']} accounts known by id, {people['new']} new", end="; "
    )
    print(f"fraud found without retraining: {reached(folder / 'trial.csv', truth)[1]:.1f} %")
    trained = graphveil("train", "auto", "--data", data, "--previous", october, "--budget", folder / "book.db",
                        "--class-weights", "fraud=3", "--no-evaluate", "--out", november)  # fmt: skip
    print("\n".join(line for line in trained.splitlines() if line.startswith(("after ", "people ", "  Together"))))
    found = folder / "predictions-november.csv"
    graphveil("predict", november, *asked, "--out", found)
    print(f"fraud found with November's run: {reached(found, truth)[1]:.1f} %")
    graphveil("certificate", november, "--html", folder / "certificate-november.html")
    print("\n" + graphveil("budget", "show", folder / "book.db", "--plot", folder / "budget.svg").strip())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--accounts", type=int, default=50_000)
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    if asked.accounts < 400:
        parser.error("--accounts: at least 400, or there is no ring to find")
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="bank-"))
    folder.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    truth = write_tables(folder, asked.accounts)
    read_tables(folder)
    compare(folder, truth)
    work(folder, truth, asked.accounts)
    print("\nNovember")
    next_month(folder, truth)
    print(
        f"\nin {folder}: bank.npz, october/, predictions.csv, certificate.html, the same of november, book.db, budget.svg"
    )
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
