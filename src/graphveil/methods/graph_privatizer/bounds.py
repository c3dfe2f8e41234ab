"""What sound GraphPrivatizer asks about edges: at most the promised epsilon for one edge, in one round or two."""

from __future__ import annotations

from graphveil.errors import InputError
from graphveil.exchange.randomizers import BucketResponse, NeighbourMean
from graphveil.exchange.round import Round
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import Part

NAMES = ("edges", "edges-2")
HEARD = ("the released labels", "the classes inferred from earlier rounds")


def edge_rounds(mechanism: str, number: int, facts: PublicFacts, epsilon: float, delta: float) -> tuple[Round, ...]:
    """The rounds on edges: ``number`` of them share the budget; the first may hear one more bucket, 'no label'."""
    share, owned = epsilon / number, not facts.directed
    if mechanism == "krr":
        return (Round("edges", Part.EDGES, BucketResponse(share, facts.nodes, owned=owned), "the public slots"),)
    if mechanism == "mean" and not delta > 0:
        raise InputError("mechanism mean adds Gaussian noise and needs a delta: say --delta 1e-6")
    unlabelled = facts.nodes > facts.count("train") + facts.count("calibration")
    buckets = (facts.classes + (1 if unlabelled else 0), facts.classes)[:number]
    randomizers = [
        NeighbourMean(share, bins, delta / number) if mechanism == "mean" else BucketResponse(share, bins, owned=owned)
        for bins in buckets
    ]
    return tuple(
        Round(name, Part.EDGES, randomizer, heard)
        for name, randomizer, heard in zip(NAMES, randomizers, HEARD, strict=False)
    )
