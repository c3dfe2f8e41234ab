"""Joining a Ray cluster: an existing one by its address, or one that is started on this machine and stopped afterwards.

Workers import graphveil and read data themselves: the package, and whatever files a task names, must be there on every machine.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from graphveil.errors import InputError
from graphveil.learn.engine.threads import thread_variables

MISSING = "engine ray needs Ray: pip install 'graphveil[ray]', or use another --engine"
SECONDS_TO_CONNECT = 5.0
PASSED_ON = ("GRAPHVEIL_DATA", "PYTHONPATH")  # where workers find data and package


@contextmanager
def joined(workers: int, address: str | None = None, threads: int = 1) -> Iterator[Any]:
    """The module ``ray``, connected to the cluster at ``address``, or to a new one with so many ``workers`` on this machine.

    ``threads``: of every worker. A connection that this process has already is used as it is and stays.
    """
    try:
        import ray
    except ImportError:
        raise InputError(MISSING) from None
    if ray.is_initialized():
        yield ray
        return
    if address is not None:
        _check_reachable(address)
    variables = thread_variables(threads) | {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # what Ray 2.60 warns about otherwise
    here: dict[str, Any] = {"num_cpus": workers, "include_dashboard": False} if address is None else {}
    try:
        ray.init(address=address, runtime_env={"env_vars": variables}, log_to_driver=False, **here)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise InputError(f"no Ray cluster at {address or 'this machine'}: {error}") from None
    try:
        yield ray
    finally:
        ray.shutdown()


def processors(ray: Any) -> int:
    """Of the whole cluster."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def _check_reachable(address: str) -> None:
    """Refuse an address at which nobody listens: Ray itself would go on trying for many minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon:  # a name that Ray looks up, such as auto
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), SECONDS_TO_CONNECT).close()
    except (OSError, ValueError, OverflowError) as error:
        raise InputError(f"no Ray cluster at {address}: {error}; --address takes host:port, or auto") from None
