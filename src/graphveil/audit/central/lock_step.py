"""Lock-step audit: both worlds on one history, every release sampled with real noise, log-likelihood ratios added up.

A recorded run fixes the history. On it, each release is a known mechanism around one clean value on the graph and another on
its neighbour, so the log-likelihood ratio of everything released is a sum over releases of known functions; the noise is drawn
by the same code that protects real runs. Poisson batches: the history is recorded with every row in every batch, each touched
row is measured alone, and its coin is tossed anew; the score is the likelihood ratio of the mixture (Lemma G's pair with the
measured sizes), projected on the direction in which the sums differ. A history in which every coin shows is one that the
accounting must cover (it holds for any history) but that real batches hardly ever produce: for Poisson batches the figure refutes
the accounting on this one history, not the law of the histories of real runs. Slots sampled for a whole run (DPAR) mix the two
worlds once. The adversary is told the coins of the others, as the accounting allows. Tests: ``tests/audit/test_lock_step.py``.
"""

from __future__ import annotations

import math

import numpy as np

from graphveil.privacy.laws import Law, Shift
from graphveil.privacy.noise import Array, Noise

CHUNK = 4_000_000  # numbers held at a time
BUDGET, LEAST, MOST = 20_000_000, 50_000, 2_000_000


def merged(laws: list[Law]) -> list[Law]:
    """Gaussian steps of one scale taken together: their scores have the law of one step of root-sum-square distance."""
    squares: dict[float, float] = {}
    rest: list[Law] = []
    for law in laws:
        if isinstance(law, Shift):
            squares[law.sigma] = squares.get(law.sigma, 0.0) + law.distance**2
        else:
            rest.append(law)
    return [*(Shift(sigma, math.sqrt(square)) for sigma, square in squares.items()), *rest]


def sample_scores(laws: list[Law], samples: int, noise: Noise, sampled: float = 1.0) -> tuple[Array, Array]:
    """Scores (log-likelihood ratios) of the whole transcript in either world; ``sampled``: the record's slot takes part in the
    first world with this probability and is blank otherwise."""
    here, there, mixed = np.zeros(samples), np.zeros(samples), np.zeros(samples)
    block = max(1000, CHUNK // 64)
    for law in merged(laws):
        for start in range(0, samples, block):
            chosen = slice(start, min(start + block, samples))
            size = chosen.stop - chosen.start
            here[chosen] += law.scores(True, size, noise)
            there[chosen] += law.scores(False, size, noise)
            if sampled < 1:
                mixed[chosen] += law.scores(False, size, noise)
    if sampled == 1:
        return here, there
    first = np.where(noise.coins(sampled, samples), here, mixed)
    first, second = (np.logaddexp(math.log1p(-sampled), math.log(sampled) + scores) for scores in (first, there))
    return first, second


def affordable_samples(laws: list[Law]) -> int:
    """As many draws as ``BUDGET`` random numbers allow, within reason."""
    cost = sum(law.cost for law in merged(laws))
    return int(min(max(BUDGET // max(cost, 1), LEAST), MOST))


def realised_mu(laws: list[Law]) -> float:
    """The Gaussian parameter that these laws are worth together."""
    return math.sqrt(sum(law.squared_mu for law in laws))
