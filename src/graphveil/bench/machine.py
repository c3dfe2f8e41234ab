"""What measurements are made on: the machine, installed packages, and one thread."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for torch and for numpy's and scipy's linear algebra: CPU time counts threads that merely wait."""
    import torch
    from threadpoolctl import threadpool_limits

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(threads)


def version(package: str) -> str | None:
    """The installed version."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def machine() -> dict[str, str]:
    """Processor, Python and torch, for the record."""
    import torch

    return {"processor": _processor(), "python": platform.python_version(), "torch": torch.__version__}


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
