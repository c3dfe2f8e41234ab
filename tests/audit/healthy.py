"""Results of methods without a planted bug, computed once per session however many tests compare with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_FOUND: dict[tuple[str, ...], Any] = {}


def remembered(check: Callable[..., Any], method: Any, *promises: Any) -> Any:
    """``check(method, promises)``, or ``check(method)`` without promises; equal settings are checked once."""
    key = (check.__name__, repr(method), *map(repr, promises))
    if key not in _FOUND:
        _FOUND[key] = check(method, list(promises)) if promises else check(method)
    return _FOUND[key]
