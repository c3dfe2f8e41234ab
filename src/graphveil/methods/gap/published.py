"""GAP as published: one noise multiplier z for encoder, hops and classifier, and what its bounds leave out.

Zero-out (GAP's own paper): clipped rows move a sum by C, hops by sqrt D. Replace (the baseline of DPDGC's Table 2): twice
that. z is what the papers' own accounting gives for the claim (``privacy/accounting/paper.py``). At edge level the true
sensitivity is known and declared, so the certificate prints claim and truth side by side; elsewhere the lists cut by the code
leave no bound.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from graphveil.methods.common.private_training import SELECTION, paper_batches, poisson_release
from graphveil.privacy.accounting.paper import claimed_noise
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import Exact, Gaussian
from graphveil.privacy.plan import Gap, Plan, Release, calibrate_scale
from graphveil.privacy.promise import Adjacency, Level, Promise, Relation

if TYPE_CHECKING:
    from graphveil.methods.gap import Gap as GapMethod

AS_STATED = "as the paper states it"
DIRECTED = Gap(
    "A1",
    "the noise covers one directed entry; a friendship is stored in both lists, so two rows move and sqrt 2 is needed",
    check="promise",
)
CAP = Gap(
    "D3",
    "lists are cut to D entries by the code: when a person leaves or changes, their contacts' lists take in others, "
    "so far more than D rows move and the stated bound (sqrt D, for replacement 2 sqrt D) is none",
    check="sensitivity",
    release="hop",
)
GAPS = (DIRECTED, CAP, SELECTION)


def published_plan(method: GapMethod, facts: PublicFacts, promise: Promise) -> Plan:
    """The paper's noise for its claim; what is declared is what is claimed, except at edge level."""
    if promise.level is Level.EDGE:
        return _edge_plan(method, facts, promise)
    sides = 2 if promise.relation is Relation.REPLACE else 1
    batches = paper_batches(facts, method.epochs, method.batch_size)
    scale = claimed_noise(promise, stages=2, gaussians=method.hops, **batches)
    shape = method.shape(facts, promise)
    stage: dict[str, Any] = {
        "epochs": method.epochs,
        "batch_size": method.batch_size,
        "clip": method.paper_clip,
        "noise_multiplier": sides * scale,
    }
    everybody = [kind for kind, n in facts.kinds.items() if n]
    claimed = sides * math.sqrt(method.max_degree)
    releases = (
        poisson_release("encoder", promise, facts, shape.encoder_size, **stage),
        *_hops(method, facts, promise, scale * claimed, dict.fromkeys(everybody, claimed)),
        poisson_release("classifier", promise, facts, shape.classifier_size, **stage),
    )
    return Plan(promise, facts, releases, claim=promise.epsilon, gaps=(CAP, SELECTION), provable=False)


def _edge_plan(method: GapMethod, facts: PublicFacts, promise: Promise) -> Plan:
    """K Gaussians of claimed sensitivity 1, composed exactly, as the paper does at edge level."""
    scale = 1.0
    if promise.private:
        at = lambda z: Plan(promise, facts, _hops(method, facts, promise, z, {"edge": 1.0})).epsilon()
        scale = calibrate_scale(at, promise.epsilon)
    undirected = promise.adjacency is Adjacency.EDGE_UNDIRECTED
    releases = _hops(method, facts, promise, scale, {"edge": math.sqrt(2) if undirected else 1.0})
    return Plan(promise, facts, releases, claim=promise.epsilon, gaps=(DIRECTED,) if undirected else ())


def _hops(
    method: GapMethod, facts: PublicFacts, promise: Promise, sigma: float, bound: dict[str, float]
) -> tuple[Release, ...]:
    noise = Gaussian(sigma, facts.nodes * method.shape(facts, promise).width) if promise.private else Exact()
    excluded = promise.level is not Level.EDGE
    return tuple(Release(f"hop {hop}", noise, bound, AS_STATED, excluded) for hop in range(1, method.hops + 1))
