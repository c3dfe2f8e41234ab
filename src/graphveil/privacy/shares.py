"""Which part of the budget each release takes, for every kind of record or for the one that pays most.

Gaussian parameters add up as squares, so there a share is ``mu_i^2 / mu^2`` exactly, and what an adaptive plan left over is
unspent. Other losses have no such sum: a share is then what the release would cost alone, over the sum of these costs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from graphveil.privacy.plan import total_mu
from graphveil.privacy.promise import Level

if TYPE_CHECKING:
    from graphveil.privacy.certificate import Certificate
    from graphveil.privacy.plan import Release

UNSPENT = "unspent"
LEAST_UNSPENT = 1e-6  # below this, rounding


def shares(certificate: Certificate) -> dict[str, float]:
    """Shares by name of the release, which add up to 1; empty without noise, or where nothing has a finite cost."""
    found = shares_by_kind(certificate)
    return max(found.values(), key=lambda one: sum(one.values()) - one.get(UNSPENT, 0.0), default={})


def shares_by_kind(certificate: Certificate) -> dict[str, dict[str, float]]:
    """The same for every kind of record that pays anything, in the order of the certificate."""
    promise, releases = certificate.promise, certificate.releases
    if promise.level is Level.NONE or not promise.private or not releases:
        return {}
    mus = {kind: [total_mu((release.loss(kind),)) for release in releases] for kind in certificate.costs}
    gaussian = promise.level is not Level.LOCAL and all(mu is not None for found in mus.values() for mu in found)
    if gaussian:
        costs = {kind: [(mu or 0.0) ** 2 for mu in found] for kind, found in mus.items()}
        whole = max(*map(math.fsum, costs.values()), (certificate.implied.get("mu") or 0.0) ** 2)
    else:
        costs = {kind: [promise.cost(kind, (r.loss(kind),), 1.0) for r in releases] for kind in certificate.costs}
        costs = {kind: found for kind, found in costs.items() if all(map(math.isfinite, found))}
        whole = max(map(math.fsum, costs.values()), default=0.0)
    return {kind: _split(releases, found, whole) for kind, found in costs.items() if math.fsum(found)}


def _split(releases: tuple[Release, ...], costs: list[float], whole: float) -> dict[str, float]:
    found: dict[str, float] = {}
    for release, cost in zip(releases, costs, strict=True):
        if cost:
            found[release.name] = found.get(release.name, 0.0) + cost / whole
    left = 1 - math.fsum(found.values())
    return found | ({UNSPENT: left} if left > LEAST_UNSPENT else {})
