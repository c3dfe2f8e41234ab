"""Time and peak memory of the central systems on a large generated graph, each in a process of its own.

    python benchmarks/scale.py [--nodes 200000 --edges 1000000] [--only gap dpar]

Node level, epsilon 8, 32 features, 5 classes, half of the nodes for training, one thread. Prints a Markdown table; exit code 1
if a method needs more than ``--most-gib`` (default 4).
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

import graphveil as gv

PEOPLE = gv.NodeLevel(8.0)
ANYBODY = gv.NodeLevel(8.0, adjacency="node")
METHODS = {
    "ballot": (gv.Ballot(), PEOPLE),
    "roster": (gv.Roster(), PEOPLE),
    "roster (edges not covered)": (gv.Roster(edge_cover=False), PEOPLE),
    "gap": (gv.Gap(), PEOPLE),
    "dpdgc (learned codes)": (gv.Dpdgc(), PEOPLE),
    "dpdgc (label codes)": (gv.Dpdgc(codes="labels"), PEOPLE),
    "dpar (ista)": (gv.Dpar(), ANYBODY),
    "dpar (push)": (gv.Dpar(pagerank="push"), ANYBODY),
    "nip-gnn": (gv.NipGnn(), PEOPLE),
    "dp-sage": (gv.DpSage(), PEOPLE),
}


def generated(nodes: int, edges: int) -> Data:
    """Random friendships; every node's features lean towards its class."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 5, nodes)
    features = rng.normal(size=(nodes, 32)).astype(np.float32)
    features[np.arange(nodes), labels] += 1
    ends = rng.integers(0, nodes, (2, edges))
    drawn = torch.from_numpy(rng.random(nodes))
    data = Data(
        x=torch.from_numpy(features),
        edge_index=torch.from_numpy(np.concatenate([ends, ends[::-1]], axis=1)),
        y=torch.from_numpy(labels),
        train_mask=drawn < 0.5,
        val_mask=(drawn >= 0.5) & (drawn < 0.6),
        test_mask=drawn >= 0.6,
    )
    data.num_classes, data.directed = 5, False
    return data


def measure(name: str, nodes: int, edges: int) -> dict[str, Any]:
    """Seconds and accuracy of one run, and the peak of this process."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    data = generated(nodes, edges)
    method, promise = METHODS[name]
    started = time.perf_counter()
    model = method.fit(data, promise, seed=0)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"method": name, "seconds": seconds, "peak_gib": peak, "accuracy": model.score(data)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--edges", type=int, default=1_000_000, help="undirected")
    parser.add_argument("--only", nargs="+", default=[], help="methods whose name contains one of these")
    parser.add_argument("--most-gib", type=float, default=4.0)
    parser.add_argument("--one", choices=METHODS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one, options.nodes, options.edges)))
        return 0
    print("| method | seconds | peak memory (GiB) | accuracy (%) |\n|---|---|---|---|", flush=True)
    worst = 0.0
    for name in (name for name in METHODS if not options.only or any(part in name for part in options.only)):
        size = ["--nodes", str(options.nodes), "--edges", str(options.edges)]
        done = subprocess.run([sys.executable, __file__, "--one", name, *size], stdout=subprocess.PIPE, check=True)
        row = json.loads(done.stdout)
        worst = max(worst, row["peak_gib"])
        accuracy = 100 * row["accuracy"]
        print(f"| {name} | {row['seconds']:.0f} | {row['peak_gib']:.2f} | {accuracy:.1f} |", flush=True)
    return 0 if worst <= options.most_gib else 1


if __name__ == "__main__":
    sys.exit(main())
