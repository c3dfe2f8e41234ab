"""Vertices in the hands of several parties: who keeps which, by public coins, and what is left of the edges.

A holder knows its own vertices and the edges among them. Whether edges between the vertices of two holders are known depends on
alignment: if holders share the names of their vertices (``shared``) the cloud gets every edge, else (``none``) only those within
a holder. Tests: ``tests/graph/test_holders.py``.
"""

from __future__ import annotations

import numpy as np

from graphveil.errors import InputError

COINS = 0x5EED  # public


def holder_numbers(nodes: int, holders: int) -> np.ndarray:
    """The number of the holder of every vertex: parts of equal size (up to one), drawn by public coins."""
    if not 1 <= holders <= nodes:
        raise InputError(f"--holders takes a number from 1 to {nodes} (the number of vertices), got {holders}")
    return np.random.default_rng(COINS).permutation(nodes) % holders


def within(edge_index: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Which edges have both ends with one holder."""
    return np.asarray(numbers[edge_index[0]] == numbers[edge_index[1]])
