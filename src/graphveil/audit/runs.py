"""Audit what a saved run says it did: its method, its settings, its promise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graphveil.errors import InputError
from graphveil.runs.load import method_of, read_certificate


def method_of_run(run: Path) -> tuple[Any, Any]:
    """The method with the parameters of the run's certificate, and its promise."""
    certificate = read_certificate(run)
    try:
        method = method_of(certificate)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"the certificate of {run} cannot be read: {type(error).__name__}: {error}") from None
    return method, certificate.promise
