"""The time of day, in one place."""

from __future__ import annotations

import time


def now() -> float:
    """Seconds since 1970."""
    return time.time()
