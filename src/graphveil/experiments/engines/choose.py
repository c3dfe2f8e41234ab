"""The engine of a name."""

from __future__ import annotations

import os

from graphveil.errors import InputError
from graphveil.experiments.engines.base import Engine

ENGINES = ("serial", "process", "ray")


def choose(name: str, workers: int | None = None, threads: int = 1, address: str | None = None) -> Engine:
    """``workers`` defaults to the processors of this machine, divided by the threads of each."""
    if address is not None and name != "ray":
        raise InputError("--address names a Ray cluster: it belongs to --engine ray")
    count = workers or max(1, (os.cpu_count() or 1) // threads)
    if name == "serial":
        from graphveil.experiments.engines.serial import Serial

        return Serial(threads)
    if name == "process":
        from graphveil.experiments.engines.process import Processes

        return Processes(count, threads)
    if name == "ray":
        from graphveil.experiments.engines.ray import Ray

        return Ray(count, address, threads)
    raise InputError(f"unknown engine {name!r}; known are: {', '.join(ENGINES)}")
