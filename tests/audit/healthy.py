"""Results of methods without a planted bug, computed once per session however many tests compare with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from graphveil.audit.central.conformance import ConformanceError, Findings

_FOUND: dict[tuple[str, ...], Any] = {}


def remembered(check: Callable[..., Any], method: Any, *promises: Any) -> Any:
    """``check(method, promises)``, or ``check(method)`` without promises; equal settings are checked once."""
    key = (check.__name__, repr(method), *map(repr, promises))
    if key not in _FOUND:
        _FOUND[key] = check(method, list(promises)) if promises else check(method)
    return _FOUND[key]


@contextmanager
def stopping_at_the_first_failure() -> Iterator[None]:
    """A planted bug is caught by one failure; the checks after it need not run."""
    add = Findings.add

    def stop(self: Findings, *arguments: Any) -> None:
        add(self, *arguments)
        raise ConformanceError(self)

    with patch.object(Findings, "add", stop):
        yield
