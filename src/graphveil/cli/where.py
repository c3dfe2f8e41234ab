"""``--engine``, ``--address``, ``--workers``: where the queries of a run over all records are computed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from graphveil.cli.options import flag
from graphveil.errors import InputError

if TYPE_CHECKING:
    from graphveil.privacy.promise import Promise

LOCAL, RAY = "local", "ray"


@dataclass(frozen=True)
class WhereFlags:
    """On this machine in threads, or on the workers of a Ray cluster, with the same releases."""

    engine: Annotated[str, flag("--engine local|ray", "Where records are read: in threads here, or on Ray.")] = LOCAL
    address: Annotated[str | None, flag("--address A", "Engine ray: an existing cluster, host:port or auto.")] = None
    workers: Annotated[
        int | None, flag("--workers N", "Engine ray without --address: workers on this machine.", min=1)
    ] = None

    def check(self) -> None:
        """Refuse flags that do not go together."""
        if self.engine not in (LOCAL, RAY):
            raise InputError(f"unknown engine {self.engine!r}; known are: {LOCAL}, {RAY}")
        if self.engine == LOCAL and (self.address is not None or self.workers is not None):
            raise InputError("--address and --workers are about a Ray cluster: they belong to --engine ray")
        if self.address is not None and self.workers is not None:
            raise InputError("--workers starts a cluster on this machine, --address joins one: give one of them")

    @contextmanager
    def running(self, method: Any, promise: Promise) -> Iterator[None]:
        """The engine for all queries inside; a method that does not run in blocks is refused before anything starts."""
        self.check()
        if self.engine == LOCAL:
            yield
            return
        from graphveil.learn import engine
        from graphveil.learn.engine.ray import Ray

        method.check_blocks(promise)
        with engine.using(Ray(self.address, self.workers)):
            yield
