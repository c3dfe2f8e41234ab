"""Audit what a saved run says it did: its method, its settings, its promise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graphveil.errors import InputError
from graphveil.methods.registry import method_class
from graphveil.privacy.certificate import Certificate
from graphveil.privacy.verify import read_json


def method_of_run(run: Path) -> tuple[Any, Any]:
    """The method with the parameters of the run's certificate, and its promise."""
    from graphveil.local.certificate import LocalCertificate
    from graphveil.local.verify import is_local

    body = read_json(run / "certificate.json")
    try:
        certificate: Any = LocalCertificate.from_json(body) if is_local(body) else Certificate.from_json(body)
        method = method_class(certificate.method)().set_params(**certificate.parameters)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"the certificate of {run} cannot be read: {type(error).__name__}: {error}") from None
    return method, certificate.promise
