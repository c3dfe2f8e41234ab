"""A warm start against a cold one in the second of two months, at equal total epsilon for people who are in both.

    python benchmarks/months.py --out docs/results/months.jsonl [--seeds 500-504] [--data cora,citeseer]

Month two is a data set without one edge in ten; month one lacks one node in ten and another tenth of the edges. People keep
their ids and what they are asked for (train, calibration, query). The total is composed exactly; *cold* and *warm* give each
month half of mu^2, *all in month two* spends everything there, *month one kept* trains once, with everything, and never again.
Accuracies are of month two's query nodes. Rows are those of ``graphveil results``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import graphveil as gv
from graphveil.experiments.export import write_rows
from graphveil.graph.layout import features_tensor, scipy_features
from graphveil.privacy.accounting.loss import gaussian_epsilon, gaussian_mu

NEW, CHANGED = 0.1, 0.1
METHODS = {"dp-mlp": gv.DpMlp, "ballot": gv.Ballot, "roster": gv.Roster}
TOTALS = (2.0, 4.0, 8.0)
DATA = ("cora", "citeseer", "amazon-photo", "chameleon")
ARMS = ("warm", "cold", "all in month two", "month one kept")


def two_months(name: str, seed: int) -> tuple[Any, Any]:
    """The two exports; ids are node numbers of the data set."""
    whole = gv.load_dataset(name, seed=seed)
    rng = np.random.default_rng([seed, 18])
    n = int(whole.num_nodes)
    pairs = whole.edge_index.numpy()
    number = np.minimum(*pairs) * n + np.maximum(*pairs)  # both directions of an edge share their fate
    fate = dict(zip(np.unique(number).tolist(), rng.random(len(np.unique(number))).tolist(), strict=True))
    drawn = np.array([fate[edge] for edge in number.tolist()])
    whole.ids = [str(node) for node in range(n)]
    second, first = whole.clone(), whole.clone()
    second.edge_index = whole.edge_index[:, torch.from_numpy(drawn >= CHANGED)]
    there = np.sort(rng.permutation(n)[round(NEW * n) :])
    place = np.full(n, -1)
    place[there] = np.arange(len(there))
    kept = (drawn < 1 - CHANGED) & (place[pairs] >= 0).all(axis=0)
    rows = torch.from_numpy(there)
    first.x, first.y, first.num_nodes = features_tensor(scipy_features(whole)[there]), whole.y[rows], len(there)
    first.edge_index, first.ids = torch.from_numpy(place[pairs[:, kept]]), [str(node) for node in there]
    for mask in ("train_mask", "val_mask", "test_mask"):
        first[mask] = whole[mask][rows]
    return first, second


def accuracies(method: str, months: tuple[Any, Any], total: float, seed: int) -> Iterator[tuple[str, float, Any]]:
    """Per arm: its name, the accuracy on month two's query nodes, and the certificate of its last run."""
    first, second = months
    delta = 10.0 ** -math.ceil(math.log10(second.num_nodes))
    half = gaussian_epsilon(gaussian_mu(total, delta) / math.sqrt(2), delta)
    promise = gv.NodeLevel(half, delta, adjacency="record")
    everything = gv.NodeLevel(total, delta, adjacency="record")
    build = METHODS[method]
    october = build().fit(first, promise, seed=seed)
    warm = build().fit(second, promise, seed=seed + 10_000, previous=october)
    cold = build().fit(second, promise, seed=seed + 10_000)
    late = build().fit(second, everything, seed=seed + 10_000)
    once = build().fit(first, everything, seed=seed)
    for arm, model in zip(ARMS, (warm, cold, late, once), strict=True):
        yield arm, model.score(second), model.certificate


def identifier(method: str, name: str, seed: int, total: float, arm: str) -> str:
    """The name of a row: a hash of everything that decides it."""
    return hashlib.sha256(json.dumps([method, name, seed, total, arm]).encode()).hexdigest()[:20]


def row_of(
    method: str, name: str, seed: int, total: float, arm: str, accuracy: float, certificate: Any
) -> dict[str, Any]:
    """One arm as a row of ``graphveil results``; its epsilon is what people in both months paid."""
    spent = total if arm == "cold" else certificate.together or certificate.epsilon
    return {
        "id": identifier(method, name, seed, total, arm),
        "experiment": "months",
        "method": method,
        "label": f"{method}, {arm}",
        "dataset": name,
        "level": "node",
        "adjacency": "record",
        "relation": "zero-out",
        "epsilon_target": total,
        "delta": certificate.delta,
        "seed": seed,
        "epsilon": spent,
        "epsilon_claimed": spent,
        "holds": certificate.holds,
        "metrics": {"test_accuracy": accuracy},
        "details": {"epsilon_of_last_run": certificate.promise.epsilon},
        "version": gv.__version__,
    }


def rows_of(data: list[str], seeds: list[int]) -> Iterator[dict[str, Any]]:
    for name in data:
        for seed in seeds:
            months = two_months(name, seed)
            for method in METHODS:
                for total in TOTALS:
                    for arm, accuracy, certificate in accuracies(method, months, total, seed):
                        yield row_of(method, name, seed, total, arm, accuracy, certificate)
            print(f"{name}: seed {seed}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", default="500-504")
    parser.add_argument("--data", default=",".join(DATA))
    asked = parser.parse_args()
    first, _, last = asked.seeds.partition("-")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write_rows(list(rows_of(asked.data.split(","), list(range(int(first), int(last or first) + 1)))), asked.out)


if __name__ == "__main__":
    main()
