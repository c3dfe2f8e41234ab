"""How a query goes over all records: the three forms that private methods need, each a map over blocks and a reduction.

``total``: a sum of what every record brings. ``gathered``: rows of some records. ``spread``: messages along contact lists, added
up where they arrive. What is added up lies on a grid on which float64 does not round (``lists.GRID``, ``sum_grid``), so the
result is the same whatever the blocks, their order and who computed them; a part that is computed twice counts once: parts are
kept by block (``base.py``). Clean sums are returned to the curator's process, which alone adds noise.

Queries run in threads of this process (``local.py``) unless another engine is chosen:

    with engine.using(Ray(address="auto")):
        model = gv.Ballot().fit(open_folder(folder), gv.NodeLevel(4))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from graphveil.learn.engine.base import Engine, in_order
from graphveil.learn.engine.local import Local
from graphveil.learn.engine.messages import Sent
from graphveil.learn.engine.threads import threads_given

if TYPE_CHECKING:
    from graphveil.graph import Graph
    from graphveil.graph.blocks import Block

T = TypeVar("T")
Query = Callable[["Block"], np.ndarray]

_chosen: ContextVar[Engine | None] = ContextVar("engine", default=None)


@contextmanager
def using(engine: Engine) -> Iterator[None]:
    """All queries inside run on this engine, which is started before and stopped after."""
    with engine.started():
        before = _chosen.set(engine)
        try:
            yield
        finally:
            _chosen.reset(before)


def chosen() -> Engine | None:
    """The engine that :func:`using` names, if any."""
    return _chosen.get()


def threads() -> int:
    """Threads for what the curator's process does by itself, as noise: those of the chosen engine, if it runs here."""
    where = _engine()
    return where.threads if isinstance(where, Local) else threads_given()


def each(private: Graph, query: Callable[[Block], T]) -> Iterator[T]:
    """What ``query`` finds for every block, in the order of slots; not to be written to."""
    return in_order(_engine(), private, query)


def total(private: Graph, query: Query) -> np.ndarray:
    """The sum of ``query`` over all blocks; terms must lie on a grid of which the whole sum is a 53-bit multiple."""
    found: np.ndarray | None = None
    for part in each(private, query):
        found = np.array(part) if found is None else np.add(found, part, out=found)
    if found is None:
        raise ValueError("a graph has at least one record")
    return found


def gathered(private: Graph, query: Query, wanted: np.ndarray) -> np.ndarray:
    """``query`` gives one row for each record of a block under the (public) mask ``wanted``: all of these, by slot."""
    found: np.ndarray | None = None
    done = 0
    for part in each(private, query):
        if found is None:
            found = np.empty((int(np.count_nonzero(wanted)), *part.shape[1:]), dtype=part.dtype)
        found[done : done + len(part)] = part
        done += len(part)
    if found is None or done != len(found):
        raise ValueError(f"{done} rows were gathered of {0 if found is None else len(found)}")
    return found


def spread(private: Graph, messages: Query, receivers: np.ndarray, floor: int | None) -> np.ndarray:
    """``S_i = sum_k A[i, k] w_k messages_k`` for the receivers i under this (public) mask.

    ``w_k = max(|out(k) in receivers|, floor)^(-1/2)`` (Lemma M), or 1 for ``floor=None``; ``messages`` gives one row of norm at
    most 1 for every record of a block. What is sent is truncated towards zero to the grid 2^-24.
    """
    return _engine().added(private, Sent.to(receivers, messages, floor))


def _engine() -> Engine:
    return chosen() or Local()
