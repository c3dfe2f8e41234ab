"""Which part of the budget each release takes, for the kind of record that pays most.

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

UNSPENT = "unspent"
LEAST_UNSPENT = 1e-6  # below this, rounding


def shares(certificate: Certificate) -> dict[str, float]:
    """Shares by name of the release, which add up to 1; empty without noise, or where something has no finite cost."""
    promise, releases = certificate.promise, certificate.releases
    if promise.level is Level.NONE or not promise.private or not releases:
        return {}
    by_kind = {kind: [total_mu((release.loss(kind),)) for release in releases] for kind in certificate.costs}
    if promise.level is not Level.LOCAL and all(mu is not None for found in by_kind.values() for mu in found):
        squares = [[(mu or 0.0) ** 2 for mu in found] for found in by_kind.values()]
        most = max(squares, key=math.fsum, default=[])
        whole = max(math.fsum(most), (certificate.implied.get("mu") or 0.0) ** 2)
    else:
        alone = [[promise.cost(kind, (r.loss(kind),), 1.0) for r in releases] for kind in certificate.costs]
        finite = [costs for costs in alone if all(map(math.isfinite, costs))]
        most = max(finite, key=math.fsum, default=[])
        whole = math.fsum(most)
    if not whole:
        return {}
    found: dict[str, float] = {}
    for release, part in zip(releases, most, strict=True):
        found[release.name] = found.get(release.name, 0.0) + part / whole
    left = 1 - math.fsum(found.values())
    return found | ({UNSPENT: left} if left > LEAST_UNSPENT else {})
