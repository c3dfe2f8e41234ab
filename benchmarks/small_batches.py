"""What one step on a small batch costs at the sizes of Photo (7,650 people, 745 attributes): published DPDGC takes 18,000.

A step of the codes (clipped sum of 64 rows of A, noise on all 490,000 numbers, Adam) with one thread and with two, and a step of
the classifier with batch normalisation. Milliseconds by the clock, medians; the lines alternate.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
import torch

from graphveil import learn
from graphveil.graph import SparseRows
from graphveil.learn.batch_norm import batch_gradient
from graphveil.learn.linkx import Linkx
from graphveil.methods.dpdgc.codes import CodeNetwork
from graphveil.privacy.noise import Noise

NODES, WIDTH, CLASSES, HIDDEN, BATCH, DEGREE = 7_650, 745, 8, 64, 64, 31
ROUNDS, STEPS = 9, 40
Step = Callable[[np.ndarray], None]


def codes(threads: int, coins: np.random.Generator) -> Step:
    """A private step of the codes, with noise and Adam in so many threads."""
    rows = SparseRows(sp.random(NODES, NODES, DEGREE / NODES, format="csr", random_state=0))
    network = CodeNetwork(NODES, HIDDEN, CLASSES, coins, None)
    labels = torch.from_numpy(coins.integers(0, CLASSES, NODES))
    total, noise, optimizer = torch.empty_like(network.parameters), Noise(threads=threads), learn.Adam(1e-3)

    def step(batch: np.ndarray) -> None:
        torch.set_num_threads(threads)
        targets = labels[torch.from_numpy(batch)]
        learn.clipped_gradient_sum(network, learn.take(rows, batch), targets, 1.0, out=total)
        released = torch.from_numpy(noise.add_gaussian(total.numpy(), 1.0))
        optimizer.step(network.parameters, released, BATCH)

    return step


def classifier(coins: np.random.Generator) -> Step:
    """An ordinary step of LINKX on features and a table, normalised over the batch."""
    blocks = tuple(torch.from_numpy(coins.normal(size=(NODES, width))) for width in (WIDTH, HIDDEN))
    labels, optimizer = torch.from_numpy(coins.integers(0, CLASSES, NODES)), learn.Adam(1e-3)
    network = Linkx(WIDTH, HIDDEN, HIDDEN, CLASSES, embeds=False, batch_norm=True).initialise(coins)

    def step(batch: np.ndarray) -> None:
        targets = labels[torch.from_numpy(batch)]
        optimizer.step(
            network.parameters, batch_gradient(network, learn.take(blocks, batch), targets, 0.5, coins), BATCH
        )

    return step


def main() -> None:
    coins, before = np.random.default_rng(0), torch.get_num_threads()
    steps = {f"codes, {threads} thread{'s' * (threads > 1)}": codes(threads, coins) for threads in (1, 2)}
    steps["classifier"] = classifier(coins)
    taken: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(ROUNDS + 1):
        for name, step in steps.items():
            batches = [np.sort(coins.choice(NODES, BATCH, replace=False)) for _ in range(STEPS)]
            started = time.perf_counter()
            for batch in batches:
                step(batch)
            if turn:  # the first round compiles and fills caches
                taken[name].append(1e3 * (time.perf_counter() - started) / STEPS)
    torch.set_num_threads(before)
    for name, found in taken.items():
        print(f"{name:<18}{statistics.median(found):6.2f} ms a step ({min(found):.2f} to {max(found):.2f})")


if __name__ == "__main__":
    main()
