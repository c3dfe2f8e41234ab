"""How many threads numerical libraries use, here and in workers that are yet to start."""

from __future__ import annotations

import os

BLAS_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def threads_given() -> int:
    """As many threads as ``OMP_NUM_THREADS`` allows, or as there are processors."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    return int(given) if given.isdecimal() and int(given) > 0 else os.cpu_count() or 1


def limit_threads(threads: int) -> None:
    """The same number of threads in every engine: with another one, sums would differ in their last digits."""
    import torch
    from threadpoolctl import threadpool_limits

    threadpool_limits(threads)
    torch.set_num_threads(threads)


def thread_variables(threads: int) -> dict[str, str]:
    """The environment of a worker that is yet to start."""
    return dict.fromkeys(BLAS_THREADS, str(threads))
