"""What a first layer costs on propagated reports, as rows and as factors: one forward and backward product, side by side.

Sizes are those of Facebook pages (22,470 people, 4,714 attributes, 342,000 arcs) and Cora, one reported attribute each, drawn at
random. Prints seconds of CPU (medians, the two alternate) and their ratio; the products must agree.
"""

from __future__ import annotations

import time

import numpy as np
import scipy.sparse as sp
import torch

from graphveil.learn.arcs import Inputs
from graphveil.learn.propagated import PropagatedRows
from graphveil.methods.common.denoise import kprop
from graphveil.methods.common.published_network import along_arcs

SIZES = {"facebook-pages": (22_470, 4_714, 342_004, 4), "cora": (2_708, 1_433, 10_556, 16)}
ROUNDS, SCALE, SHIFT = 7, 5_000.0, 0.5


def seconds(x: Inputs, weights: torch.Tensor) -> float:
    started = time.process_time()
    torch.autograd.backward((x @ weights).square().sum())
    return time.process_time() - started


def main() -> None:
    torch.set_num_threads(1)
    coins = np.random.default_rng(0)
    print(f"{'sizes of':<16}{'width':>6}{'rows, ms':>10}{'factors, ms':>13}{'rows / factors':>16}")
    for name, (nodes, width, arcs, steps) in SIZES.items():
        matrix = along_arcs(coins.integers(0, nodes, (2, arcs)), nodes)
        places = np.arange(nodes), coins.integers(0, width, nodes)
        reports = sp.csr_matrix((coins.choice([-1, 1], nodes).astype(np.int8), places), (nodes, width))
        factors = PropagatedRows(matrix, reports, steps, SCALE, SHIFT)
        rows = torch.from_numpy(kprop(matrix, (SCALE * reports.toarray() + SHIFT).astype(np.float32), steps))
        for hidden in (16, 64):
            weights = torch.randn(width, hidden, requires_grad=True)
            with torch.no_grad():
                torch.testing.assert_close(rows @ weights, factors @ weights, rtol=1e-3, atol=1.0)
            taken = [[seconds(x, weights) for x in (rows, factors)] for _ in range(ROUNDS)]
            dense, quick = np.median(taken, axis=0)
            print(f"{name:<16}{hidden:>6}{1e3 * dense:>10.1f}{1e3 * quick:>13.1f}{dense / quick:>16.1f}")


if __name__ == "__main__":
    main()
