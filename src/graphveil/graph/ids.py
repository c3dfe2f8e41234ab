"""Ids of people: whatever names them in ``data.ids``, numbers or text, one for each node and nobody twice."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphveil.errors import InputError


def read_ids(given: Any, nodes: int) -> np.ndarray | None:
    """The ids as text, checked; None where there are none."""
    if given is None:
        return None
    ids = np.asarray(given)
    if ids.dtype.kind == "O" and all(isinstance(name, (str, int)) for name in ids.ravel().tolist()):
        ids = ids.astype(np.str_)
    if ids.shape != (nodes,):
        raise InputError(f"data.ids has shape {ids.shape} for {nodes} nodes: give one id per node, or none at all")
    if ids.dtype.kind not in "iuU":
        raise InputError(f"data.ids has type {ids.dtype}: give whole numbers or text")
    order = np.argsort(ids, kind="stable")
    twice = ids[order][1:] == ids[order][:-1]
    if twice.any():
        raise InputError(
            f"data.ids names the node of row {int(order[1:][twice].min())} like an earlier one: ids must differ"
        )
    return ids.astype(np.str_)
