"""What GAP releases: a mean, two trained stages and K hops; the bounds of the hops are those of ``common/aggregation.py``."""

from __future__ import annotations

import math
from collections.abc import Mapping

from graphveil.methods.common.aggregation import hop_release
from graphveil.methods.common.own_predictor import GROWTH, mean_release
from graphveil.methods.common.private_training import full_batch_release
from graphveil.methods.gap.predictor import Shape
from graphveil.privacy.accounting.loss import gaussian_mu
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.plan import Release, split_mu
from graphveil.privacy.promise import Promise


def open_releases(facts: PublicFacts, promise: Promise, shape: Shape) -> tuple[Release, ...]:
    """The hops alone, where records are public."""
    total = gaussian_mu(promise.epsilon, promise.target_delta) if promise.private else math.inf
    return hop_releases(facts, promise, shape, total / math.sqrt(shape.hops) * (1 - 1e-14))


def hop_releases(facts: PublicFacts, promise: Promise, shape: Shape, mu: float) -> tuple[Release, ...]:
    """K noisy aggregations of mu each."""
    return tuple(hop_release(f"hop {hop}", hop, shape.width, mu, facts, promise) for hop in range(1, shape.hops + 1))


def stage_releases(
    facts: PublicFacts, promise: Promise, shape: Shape, shares: Mapping[str, float], *, steps: int, clip: float
) -> tuple[Release, ...]:
    """Mean, encoder, hops and classifier where records are private; the hops get what the shares of the others leave."""
    parts = {**shares, "hops": 1 - sum(shares.values())}
    mu = split_mu(promise, parts) if promise.private else dict.fromkeys(parts, math.inf)

    def trained(name: str, size: int, growth: float = 1.0) -> Release:
        n = facts.count("train")
        return full_batch_release(name, promise, n, size, steps=steps, clip=clip, mu=mu[name], growth=growth)

    return (
        *((mean_release(facts, promise, mu["mean"]),) if shares["mean"] else ()),
        trained("encoder", shape.encoder_size, GROWTH),
        *hop_releases(facts, promise, shape, mu["hops"] / math.sqrt(shape.hops)),
        trained("classifier", shape.classifier_size),
    )
