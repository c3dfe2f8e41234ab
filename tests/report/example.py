"""Rows as the store exports them, made up: two notions of privacy, two data sets, a baseline, marks and a failure."""

from __future__ import annotations

from typing import Any

LEVELS = {"ballot": (0.60, 0.85), "gap": (0.48, 0.75), "dp-mlp": (0.57, 0.73)}
EPSILONS = (1.0, 4.0, 16.0)


def row(method: str, epsilon: float | None, seed: int, /, **more: Any) -> dict[str, Any]:
    """One run; accuracy grows with epsilon and differs a little between seeds."""
    low, high = LEVELS.get(method, (0.7, 0.7))
    part = 1.1 if epsilon is None else EPSILONS.index(epsilon) / 2
    accuracy = low + (high - low) * part + 0.004 * seed
    shares = [{"name": "votes", "noise": 1.5, "dimension": 70, "share": 0.6}]
    shares += [{"name": "own <b>", "noise": 2.5, "dimension": 900, "share": 0.4}]
    private = epsilon is not None
    found = {
        "id": f"{method}-{epsilon}-{seed}",
        "experiment": "example",
        "method": method,
        "mode": "sound",
        "options": {},
        "label": method,
        "dataset": "cora",
        "preparation": "",
        "split": "random",
        "level": "node" if private else "none",
        "adjacency": "record" if private else "none",
        "relation": "zero-out",
        "k": None,
        "max_degree": None,
        "epsilon_target": epsilon,
        "parts": None,
        "delta": 1e-4 if private else None,
        "seed": seed,
        "status": "done",
        "error": None,
        "epsilon": epsilon,
        "epsilon_claimed": epsilon,
        "holds": private,
        "gaps": [],
        "releases": shares if private else [],
        "metrics": {"test_accuracy": accuracy, "link-teller.auc": 0.5 + 0.1 * part},
        "seconds": 1.0 + seed,
        "cpu_seconds": 0.9 + seed,
        "selection": "none",
        "version": "0.1.0",
        "finished": "2026-01-01T00:00:00",
    }
    return found | more


def rows(seeds: int = 3) -> list[dict[str, Any]]:
    found = [row(method, epsilon, seed) for method in LEVELS for epsilon in (*EPSILONS, None) for seed in range(seeds)]
    found += [row("mlp", None, seed) for seed in range(seeds)]
    found += [row("ballot", epsilon, seed, dataset="pubmed") for epsilon in EPSILONS for seed in range(seeds)]
    edge = {
        "level": "edge",
        "adjacency": "edge-undirected",
        "delta": 1e-5,
        "label": "gap (published)",
        "mode": "published",
    }
    edge |= {"holds": False, "gaps": ["A1"], "epsilon": None, "selection": "not covered"}
    found += [row("gap", epsilon, seed, **edge) for epsilon in EPSILONS for seed in range(seeds)]
    broken = {"status": "failed", "error": "InputError: <no> such file", "metrics": {}, "epsilon": None, "releases": []}
    return [*found, row("dpdgc", 4.0, 0, **broken)]


def local_rows() -> list[dict[str, Any]]:
    base = {"level": "local", "adjacency": "local", "relation": "replace", "delta": 0.0}
    return [
        row("local", 4.0, seed, **base, parts={"features": "withheld", "labels": labels, "edges": edges})
        for seed in range(2)
        for labels, edges in ((1.0, 2.0), (2.0, 2.0), (4.0, 2.0), (4.0, "raw"), (4.0, 8.0))
    ]
