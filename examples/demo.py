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
from graphveil.report.plots import Curve, privacy_accuracy_plot

EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0)
SEEDS = (0, 1, 2)
PRIVATE = {"Ballot": gv.Ballot, "DP-MLP (features only)": gv.DpMlp, "GAP (sound)": gv.Gap}
OPEN = {"MLP, not private": gv.Mlp, "GAP, not private": gv.Gap}
OUTPUT = Path("demo-output")


def load(seed: int) -> tuple[str, object]:
    """Cora if it can be had here, else a generated graph."""
    try:
        return "Cora", gv.load_dataset("cora", seed=seed)
    except gv.GraphveilError as error:
        print(f"Cora is not available ({error}); using a generated graph", file=sys.stderr)
        return "cSBM", gv.load_dataset("csbm", seed=seed)


def main() -> None:
    warnings.simplefilter("ignore")
    name = load(0)[0]
    graphs = {seed: load(seed)[1] for seed in SEEDS}
    curves = {label: {epsilon: [] for epsilon in EPSILONS} for label in PRIVATE}
    references: dict[str, list[float]] = {label: [] for label in OPEN}
    runs = len(SEEDS) * (len(OPEN) + len(PRIVATE) * len(EPSILONS))
    with Progress(console=Console(file=sys.stderr)) as bar:
        task = bar.add_task(f"training {runs} models on {name}", total=runs)
        for seed, data in graphs.items():
            for label, method in OPEN.items():
                references[label].append(method().fit(data, gv.NonPrivate(), seed=seed).score(data))
                bar.advance(task)
            for epsilon in EPSILONS:
                for label, method in PRIVATE.items():
                    model = method().fit(data, gv.NodeLevel(epsilon=epsilon), seed=seed)
                    curves[label][epsilon].append(model.score(data))
                    bar.advance(task)

    table = Table(title=f"{name}, node level (record, zero-out): test accuracy in %, mean of {len(SEEDS)} seeds")
    table.add_column("method")
    for epsilon in EPSILONS:
        table.add_column(f"eps {epsilon:g}", justify="right")
    for label, results in curves.items():
        table.add_row(label, *[f"{100 * np.mean(results[epsilon]):.1f}" for epsilon in EPSILONS])
    for label, results in references.items():
        table.add_row(label, *[""] * (len(EPSILONS) - 1), f"{100 * np.mean(results):.1f}")
    Console().print(table)

    # The model to keep: no seed, so its noise comes from the operating system and nobody can subtract it.
    released = gv.Ballot().fit(graphs[0], gv.NodeLevel(epsilon=8))
    print(released.certificate)

    OUTPUT.mkdir(exist_ok=True)
    picture = OUTPUT / "privacy-accuracy.png"
    privacy_accuracy_plot(
        [Curve(label, results) for label, results in curves.items()],
        {label: float(np.mean(results)) for label, results in references.items()},
        f"Privacy and accuracy on {name}",
        "node level, record, zero-out",
        picture,
    )
    print(f"\nplot: {picture}")


if __name__ == "__main__":
    main()
