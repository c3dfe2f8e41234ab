"""How a bug is planted: one attribute of the library is replaced for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import Any
from unittest.mock import patch

Plant = Callable[[], AbstractContextManager[None]]


def planted(owner: Any, attribute: str) -> Callable[[Callable[[Any], Any]], Plant]:
    """Turns ``make(original)``, which returns the wrong attribute, into a plant."""

    def of(make: Callable[[Any], Any]) -> Plant:
        @contextmanager
        @wraps(make)
        def plant() -> Iterator[None]:
            with patch.object(owner, attribute, make(getattr(owner, attribute))):
                yield

        return plant

    return of
