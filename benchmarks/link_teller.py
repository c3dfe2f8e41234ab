"""LinkTeller on Cora: CPU time of the incremental form against one forward pass per node, and growth with the number of probes.

    python benchmarks/link_teller.py

Prints one JSON object; exit code 1 if all pairs of 500 nodes take more than 2 s, or the ratio is below 20.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import graphveil as gv
from graphveil.attacks import Perturbation, as_graph, influence, sample_pairs

SECONDS, RATIO = 2.0, 20.0
PROBES = (250, 500, 1000, 2000)


def cpu(work: Callable[[], Any], repeats: int = 3) -> float:
    """The least CPU time of some runs."""
    times = []
    for _ in range(repeats):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


def main() -> int:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    data = gv.load_dataset("cora", seed=0)
    graph, model = as_graph(data), gv.Gcn().fit(data, gv.NonPrivate(), seed=0)
    pairs = sample_pairs(graph, "density", 500, 0)
    fast = cpu(lambda: influence(model, graph, pairs.first, pairs.second, Perturbation()))
    few = np.isin(pairs.second, np.unique(pairs.second)[:25])
    slow = cpu(lambda: influence(model, graph, pairs.first[few], pairs.second[few], form="queries")) / 26
    by_probes = {}
    coins = np.random.default_rng(0)
    for probes in PROBES:
        senders = np.repeat(coins.choice(graph.nodes, probes, replace=False), 100)
        receivers = coins.integers(0, graph.nodes, len(senders))
        by_probes[str(probes)] = round(cpu(lambda r=receivers, s=senders: influence(model, graph, r, s)), 4)
    ratio = 499 * slow / fast
    found = {"pairs": len(pairs), "incremental_seconds": round(fast, 4), "forward_pass_seconds": round(slow, 5)}
    print(json.dumps(found | {"ratio": round(ratio, 1), "seconds_by_probes": by_probes}, indent=2))
    return 0 if fast <= SECONDS and ratio >= RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
