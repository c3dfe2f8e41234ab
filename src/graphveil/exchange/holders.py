"""A graph kept by several holders: each vertex belongs to one of them, under the same public id everywhere.

Every holder randomises its own vertices once; the collector aligns reports by id. Who holds which vertex is public.
Tests: ``tests/methods/test_lga_pgnn.py``.
"""

from __future__ import annotations

import numpy as np

from graphveil.errors import InputError
from graphveil.methods.base import PUBLIC_COINS


def partition(nodes: int, holders: int) -> np.ndarray:
    """The name of the holder of every vertex: parts of equal size (up to one), drawn by public coins."""
    if not 1 <= holders <= nodes:
        raise InputError(f"--holders takes a number from 1 to {nodes} (the number of vertices), got {holders}")
    width = len(str(holders))
    names = np.array([f"holder-{number + 1:0{width}d}" for number in range(holders)])
    return names[np.random.default_rng(PUBLIC_COINS).permutation(nodes) % holders]
