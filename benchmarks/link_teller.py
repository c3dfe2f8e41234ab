"""LinkTeller on Cora: CPU time of the incremental forms against one forward pass per node, and growth with the number of probes.

    python benchmarks/link_teller.py

Prints one JSON object; exit code 1 if all pairs of 500 nodes take more than 2 s, or a ratio is below 20. ``published``: the
networks that published local methods train, single precision, 500 edges and 500 non-edges, against a forward pass per probe.
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
from torch_geometric.data import Data

import graphveil as gv
from graphveil.attacks import Perturbation, as_graph, influence, sample_pairs
from graphveil.attacks.published_api import PUBLISHED_STEP, OwnPrecision
from graphveil.learn.backbones import as_lpgnn_builds

SECONDS, RATIO = 2.0, 20.0
NETWORKS = ("gcn", "gat", "gatv2", "transformer", "graphconv")
PROBES = (250, 500, 1000, 2000)


def cpu(work: Callable[[], Any], repeats: int = 3) -> float:
    """The least CPU time of some runs."""
    times = []
    for _ in range(repeats):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


def published(name: str, data: Any, graph: Any) -> float:
    """How many times less a network on arcs takes than a forward pass per probe."""
    x = data.x.to_dense() if data.x.layout != torch.strided else data.x
    asked = Data(x=x, edge_index=data.edge_index, num_nodes=graph.nodes, num_classes=7, directed=True)
    target = OwnPrecision(as_lpgnn_builds(name, graph.features, 16, 7, 0.5, 0), 2)
    pairs = sample_pairs(graph, "balanced", 500, 0)
    fast = cpu(lambda: influence(target, asked, pairs.first, pairs.second, PUBLISHED_STEP, compare="probabilities"))
    probes = np.unique(pairs.second)
    few = np.isin(pairs.second, probes[:25])
    options = {"form": "queries", "compare": "probabilities"}
    slow = cpu(lambda: influence(target, asked, pairs.first[few], pairs.second[few], PUBLISHED_STEP, **options)) / 26
    return round((len(probes) + 1) * slow / fast, 1)


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
    ratios = {name: published(name, data, graph) for name in NETWORKS}
    found = {"pairs": len(pairs), "incremental_seconds": round(fast, 4), "forward_pass_seconds": round(slow, 5)}
    print(json.dumps(found | {"ratio": round(ratio, 1), "seconds_by_probes": by_probes, "published": ratios}, indent=2))
    return 0 if fast <= SECONDS and min(ratio, *ratios.values()) >= RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
