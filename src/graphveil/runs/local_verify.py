"""Read certificates of either kind, and recompute what a local run claims from its file alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphveil.errors import GraphveilError
from graphveil.exchange import randomizers
from graphveil.exchange.certificate import SCHEMA, LocalCertificate, Spent
from graphveil.exchange.report import Round
from graphveil.privacy.certificate import Certificate, digest
from graphveil.privacy.local import Part
from graphveil.privacy.plan import Gap


def read_certificate(body: Mapping[str, Any]) -> Certificate | LocalCertificate:
    """The certificate of a central or of a local run."""
    return LocalCertificate.from_json(body) if is_local(body) else Certificate.from_json(body)


def is_local(body: Any) -> bool:
    return isinstance(body, Mapping) and body.get("schema") == SCHEMA


def local_disagreements(body: dict[str, Any], ledger: list[Any], gaps: tuple[Gap, ...]) -> list[str]:
    """Everything in which a local certificate disagrees with its ledger, its randomizers and its own sums.

    ``gaps`` are those of the method in the certificate's mode. Every epsilon is computed again from the public parameters of
    the randomizers, every sum from those epsilons.
    """
    found = []
    unsigned = {key: value for key, value in body.items() if key != "digest"}
    if body.get("digest") != digest(unsigned):
        found.append("the certificate was edited after it was written (its digest does not match)")
    if ledger != body.get("releases"):
        found.append("the ledger and the rounds on the certificate differ")
    try:
        certificate = LocalCertificate.from_json(body)
        again = certificate.to_json()
        rebuilt = [_again(release) for release in certificate.releases]
    except (GraphveilError, KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        return [*found, f"the certificate cannot be interpreted: {error}"]
    for release, computed in zip(certificate.releases, rebuilt, strict=True):
        if computed is not None and computed != release:
            found.append(f"round {release.name!r}: its randomizer gives other figures than the certificate")
    for key in sorted({*again, *body} - {"digest"}):
        if again.get(key) != body.get(key):
            found.append(f"{key!r} is recorded as {body.get(key)}, the rounds give {again.get(key)}")
    if certificate.gaps != gaps:
        found.append("the known gaps of this method and mode are not the ones on the certificate")
    return found


def _again(release: Spent) -> Spent | None:
    """The same round from its randomizer's public parameters; None if it has no bound (it may need private tables)."""
    if release.epsilon is None:
        return None
    randomizer = getattr(randomizers, release.mechanism)(**release.parameters)
    round = Round(release.name, Part(release.part), randomizer, release.hears)
    return Spent.of(round, release.vertices)
