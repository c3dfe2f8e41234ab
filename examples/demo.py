"""A private graph model in a minute: train at several epsilons, read the certificate, look at the trade-off.

Runs on Cora (from an installed wheel or $GRAPHVEIL_DATA), or on a generated graph if neither is there. Writes
``demo-output/privacy-accuracy.png``.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import graphveil as gv
from graphveil.report.curves import draw

EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0)
SEEDS = (0, 1, 2)
METHODS = {"Roster": gv.Roster, "Ballot": gv.Ballot, "DP-MLP (features only)": gv.DpMlp, "GAP (sound)": gv.Gap}
OUTPUT = Path("demo-output")


def load(seed: int) -> tuple[str, object]:
    """Cora if it can be had here, else a generated graph."""
    try:
        return "Cora", gv.load_dataset("cora", seed=seed)
    except gv.GraphveilError as error:
        print(f"Cora is not available ({error}); using a generated graph", file=sys.stderr)
        return "cSBM", gv.load_dataset("csbm", seed=seed)


def row(label: str, dataset: str, epsilon: float | None, seed: int, model: gv.Model, data: object) -> dict[str, object]:
    """One run in the form that pictures and reports are made from; no epsilon: the same method without noise."""
    promise = model.certificate.promise
    named = {"method": model.certificate.method, "label": label, "dataset": dataset, "seed": seed}
    asked = {
        "level": promise.level,
        "adjacency": promise.adjacency,
        "relation": promise.relation,
        "delta": promise.delta,
    }
    return {**named, **asked, "epsilon_target": epsilon, "metrics": {"test_accuracy": model.score(data)}}


def main() -> None:
    warnings.simplefilter("ignore")
    name = load(0)[0]
    graphs = {seed: load(seed)[1] for seed in SEEDS}
    rows = []
    runs = len(SEEDS) * len(METHODS) * (1 + len(EPSILONS))
    with Progress(console=Console(file=sys.stderr)) as bar:
        task = bar.add_task(f"training {runs} models on {name}", total=runs)
        for seed, data in graphs.items():
            for label, method in METHODS.items():
                for epsilon in (*EPSILONS, None):
                    promise = gv.NonPrivate() if epsilon is None else gv.NodeLevel(epsilon=epsilon)
                    rows.append(row(label, name, epsilon, seed, method().fit(data, promise, seed=seed), data))
                    bar.advance(task)

    table = Table(title=f"{name}, node level (record, zero-out): test accuracy in %, mean of {len(SEEDS)} seeds")
    table.add_column("method")
    for epsilon in (*EPSILONS, None):
        table.add_column("no noise" if epsilon is None else f"eps {epsilon:g}", justify="right")
    for label in METHODS:
        mine = [found for found in rows if found["label"] == label]
        cells = [[f["metrics"]["test_accuracy"] for f in mine if f["epsilon_target"] == e] for e in (*EPSILONS, None)]
        table.add_row(label, *[f"{100 * np.mean(cell):.1f}" for cell in cells])
    Console().print(table)

    # The model to keep: no seed, so its noise comes from the operating system and nobody can subtract it.
    choice = gv.Auto().choose(gv.NodeLevel(epsilon=8))
    print(choice)
    print(choice.method.fit(graphs[0], gv.NodeLevel(epsilon=8)).certificate)

    OUTPUT.mkdir(exist_ok=True)
    picture = OUTPUT / "privacy-accuracy.png"
    draw(rows, picture)
    print(f"\nplot: {picture}")


if __name__ == "__main__":
    main()
