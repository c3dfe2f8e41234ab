"""DPAR as published: its composition, its amplification, its sampling rate, and what they leave out.

Claim: q'(eps_pr + eps_sgd). eps_pr is divided over M rows by ``eps_row = eps_pr / (2 sqrt(M ln(e + eps_pr/delta_pr)))``; gm adds
the classic Gaussian noise ``sqrt(2 ln(1.25/delta_row)) C1/eps_row``; em solves ``eps_row = 2 min(K e, K e (e^{2e}-1)/(e^{2e}+1) +
e sqrt(2K ln(1/delta_row)))`` for the Gumbel scale C2/e. eps_sgd is that of one row at rate B/N, noise tau C. ``corrected``: the
same noise with the true amplification, rate B/M and sqrt 2 C1, still as if a person were in one row only.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from scipy.optimize import brentq

from graphveil.privacy.accounting.loss import SampledGaussian, epsilon_of
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import DpGradient, Exact, Gaussian, GumbelTop, Laplace
from graphveil.privacy.plan import Gap, Plan, Release, calibrate_scale
from graphveil.privacy.promise import Promise

if TYPE_CHECKING:
    from graphveil.methods.dpar import Dpar

AS_STATED = "as the paper states it"
EPOCHS, BATCH = 200, 60
LINEAR = Gap(
    "P1",
    "sampling slots at rate q' is said to cost q' eps; it costs log(1 + q'(e^eps - 1)): claimed 1 is 8.70, claimed 8 is 86.5",
    check="promise",
)
COLUMNS = Gap(
    "P2",
    "the column norm tau of Pi is taken for the sensitivity of clipped gradients; clipping is not linear, so every row that "
    "mentions a person may turn round, and the own label moves the own row",
    check="sensitivity",
    release="gradient",
)
BATCHES = Gap("P5", "batches come from the M rows, rate B/M; the rate counted is B/N", check="promise")
ROOT_TWO = Gap("P6", "rows of norm C1 can be sqrt 2 C1 apart; the noise covers C1", check="promise")
GAPS = (LINEAR, COLUMNS, BATCHES, ROOT_TWO)


def published_plan(method: Dpar, facts: PublicFacts, promise: Promise) -> Plan:
    """The paper's noise for its claim; no proof is left, so the corrected figure stands beside it."""
    gaps = tuple(gap for gap in GAPS if gap is not ROOT_TWO or method.select == "gm")
    m, n = method.source_count(facts), max(1, facts.count("train"))
    wanted = method.batch_size or BATCH
    steps = EPOCHS * max(1, math.ceil(m / wanted))
    clip, size = method.clipping, method.shape(facts).size
    everybody = [kind for kind, count in facts.kinds.items() if count]
    if not promise.private:
        names = ("pagerank", "weights") if method.select == "em1" else ("pagerank",)
        exact = tuple(Release(name, Exact(), dict.fromkeys(everybody, 1.0), AS_STATED) for name in names)
        last = Release("gradient", Exact(steps), dict.fromkeys(everybody, clip), AS_STATED)
        rows = exact if method.rows == "private" else ()
        return Plan(promise, facts, (*rows, last), gaps=gaps, provable=False)

    inner, delta = promise.epsilon / method.rate, promise.target_delta / method.rate / 2
    private = method.rows == "private"
    budget = inner * method.pagerank_share if private else 0.0
    rows = _rows(method, facts, budget, min(delta, 0.4), m, everybody) if private else ()
    batch, counted = min(1.0, wanted / m), min(1.0, wanted / n)
    at = lambda z: epsilon_of([SampledGaussian(z, counted, steps, False)], min(delta, 0.4))
    noise = calibrate_scale(at, inner - budget)
    sigma = noise * method.column_norm * clip
    descent = DpGradient(sigma, clip, steps, size, rate=batch)
    stated = Release("gradient", descent, dict.fromkeys(everybody, method.column_norm * clip), AS_STATED)
    plan = Plan(promise, facts, (*rows, stated), promise.epsilon, gaps, provable=False, sampled=method.rate)
    own_row = replace(stated, sensitivity={"train": clip})
    return replace(plan, corrected=replace(plan, steps=(*rows, own_row)).epsilon())


def _rows(
    method: Dpar, facts: PublicFacts, budget: float, delta: float, m: int, everybody: list[str]
) -> tuple[Release, ...]:
    """The PageRank releases for ``budget``; the true sensitivities are declared."""
    per_row = budget / (2 * math.sqrt(m * math.log(math.e + budget / delta)))
    row_delta = delta / (2 * m)
    if method.select == "gm":
        sigma = math.sqrt(2 * math.log(1.25 / row_delta)) * method.row_clip / per_row
        bound = dict.fromkeys(everybody, math.sqrt(2 * m) * method.row_clip)
        return (Release("pagerank", Gaussian(sigma, m * method.candidates(facts)), bound, AS_STATED),)
    k = method.picks_of(facts)
    parts = 2 if method.select == "em1" else 1

    def cost(e: float) -> float:
        return 2 * min(k * e, k * e * math.tanh(e) + e * math.sqrt(2 * k * math.log(1 / row_delta)))

    e = float(brentq(lambda x: cost(x) - per_row / parts, 1e-12, 1e6))
    choice = GumbelTop(method.entry_clip / e, k, m, method.candidates(facts))
    picks = Release("pagerank", choice, dict.fromkeys(everybody, method.entry_clip), AS_STATED)
    if method.select == "em0":
        return (picks,)
    scale = k * method.entry_clip / (per_row / parts)
    bound = dict.fromkeys(everybody, m * k * method.entry_clip)
    return picks, Release("weights", Laplace(scale, m * k), bound, AS_STATED)
