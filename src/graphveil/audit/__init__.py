"""Search for violations of a promise: neighbouring graphs, record-and-replay, exact ratios, lower bounds, one-run audits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphveil.audit.result import Audit


def audit_method(method: Any, promise: Any, data: Any = None, **options: Any) -> Audit:
    """Audit a method under a promise; see ``central.audit.audit_central`` and ``local.audit.audit_local``."""
    from graphveil.privacy.local import Local

    if isinstance(promise, Local):
        from graphveil.audit.local.audit import audit_local

        return audit_local(method, promise, data, **options)
    from graphveil.audit.central.audit import audit_central

    return audit_central(method, promise, data, **options)
