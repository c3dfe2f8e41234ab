"""Gaussian and Laplace noise beside NumPy's own draws: cost in one run, and the probability of single cells beside the ideal.

    python benchmarks/noise.py [--draws 10000000]

Cost is CPU time, the least of several rounds; the cell table is exact (recomputed from the sampler's tables, as the tests do).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from graphveil.privacy import samplers
from graphveil.privacy.noise import Noise

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.privacy.test_samplers import entry_masses, mp, proposed, weight

SCALE = 1.37
PLACES = (0.0, 3.0, 8.0, 12.0)
ROUNDS = 5


def cost(draw: Callable[[], object]) -> float:
    """CPU seconds of the quickest of several rounds."""
    seconds = []
    for _ in range(ROUNDS):
        start = time.process_time()
        draw()
        seconds.append(time.process_time() - start)
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=10_000_000)
    draws = parser.parse_args().draws
    noise, plain = Noise(1), np.random.Generator(Noise(2)._generator.bit_generator)
    print("| law | ns a draw | NumPy's draw, same stream | ratio | million a second |\n|---|---|---|---|---|")
    for law, reference in (("gaussian", plain.standard_normal), ("laplace", plain.laplace)):
        draw = getattr(noise, law)
        draw(SCALE, 1000)
        ours, theirs = cost(lambda: draw(SCALE, draws)), cost(lambda: reference(size=draws))  # noqa: B023
        each = 1e9 / draws
        print(f"| {law} | {ours * each:.1f} | {theirs * each:.1f} | {ours / theirs:.2f} | {draws / ours / 1e6:.0f} |")
    print("\n| law | scales from the centre | ideal probability of the cell | relative error |\n|---|---|---|---|")
    scale = SCALE * 2.0**40
    for law in ("gaussian", "laplace"):
        table = getattr(samplers, f"{law}_table")(scale)
        masses = entry_masses(table)
        ideal = lambda k: weight(law, k, mp.mpf(scale))  # noqa: B023
        whole = mp.sqrt(2 * mp.pi) * scale if law == "gaussian" else 2 * mp.mpf(scale)
        centre = proposed(law, table, masses, 0) / ideal(0)
        for place in PLACES:
            k = int(place * scale)
            error = proposed(law, table, masses, k) / ideal(k) / centre - 1
            print(f"| {law} | {place:g} | {mp.nstr(ideal(k) / whole, 4)} | {mp.nstr(error, 2)} |")


if __name__ == "__main__":
    main()
