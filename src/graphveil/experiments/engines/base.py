"""What an engine is: runs in, rows out, in whatever order they finish."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from graphveil.experiments.run import Run

BLAS_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


class Engine(Protocol):
    """Takes a run from the iterator only when it can start it, so that what was taken was started."""

    @property
    def name(self) -> str: ...

    def run(self, runs: Iterator[Run]) -> Iterator[dict[str, Any]]: ...


def limit_threads(threads: int) -> None:
    """The same number of threads in every engine: with another one, sums would differ in their last digits."""
    import torch
    from threadpoolctl import threadpool_limits

    threadpool_limits(threads)
    torch.set_num_threads(threads)


def thread_variables(threads: int) -> dict[str, str]:
    """The environment of a worker that is yet to start."""
    return dict.fromkeys(BLAS_THREADS, str(threads))
