"""Work in shares, one of them here and the others in threads that wait for work: for loops that let go of the interpreter."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache

STRETCH = 1 << 16  # numbers for which another thread is worth its while


def share_out(work: Callable[[int], None], shares: int) -> None:
    """``work(0)`` to ``work(shares - 1)``, none of which may wait for others or share out work; comes back when all have ended.

    The first failure is raised then: what one share was to write must not go out as it was. Only an interrupt comes earlier.
    """
    others = [_pool().submit(work, share) for share in range(1, shares)]
    try:
        work(0)
    finally:
        wait(others)  # whoever gave them memory may use it again
    for other in others:
        other.result()


def in_stretches(work: Callable[[slice], None], size: int, threads: int) -> None:
    """``work`` on stretches that together are ``size`` numbers; each must be the same whatever stretch it lies in."""
    shares = max(1, min(threads, size // STRETCH))
    share_out(lambda share: work(slice(share * size // shares, (share + 1) * size // shares)), shares)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, "graphveil")


os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not live on in a fork
