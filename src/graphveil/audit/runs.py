"""Audit what a saved run says it did: its method, its settings, its promise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graphveil.errors import InputError
from graphveil.files import read_json
from graphveil.methods.registry import build
from graphveil.privacy.certificate import Certificate


def method_of_run(run: Path) -> tuple[Any, Any]:
    """The method with the parameters of the run's certificate, and its promise."""
    from graphveil.exchange.certificate import LocalCertificate
    from graphveil.runs.local_verify import is_local

    body = read_json(run / "certificate.json")
    try:
        certificate: Any = LocalCertificate.from_json(body) if is_local(body) else Certificate.from_json(body)
        method = build(certificate.method, dict(certificate.parameters))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"the certificate of {run} cannot be read: {type(error).__name__}: {error}") from None
    return method, certificate.promise
