"""The graphs and hyper-parameters an audit runs with: small, quick, and such that every bound is put to the test.

Steps are long (``LARGE``): with short ones a model says the same after every epoch, and a choice among epochs that reads private
labels would choose the same one on every graph. Published modes with gaps keep theirs: they declare that choice, and one that
moves would hide their other gaps behind it.

Mechanisms, sensitivities and accounting do not depend on these sizes; an audit prints them, and ``--set`` overrides them.
Published modes get caps below the degrees of the graph, since a cap that never bites violates nothing.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from graphveil.errors import InputError
from graphveil.learn import engine
from graphveil.learn.engine.local import Local
from graphveil.methods.base import PrivateMethod

MOST_NUMBERS = 200_000_000
BLOCKS, THREADS = 5, 2
SMALL: dict[str, Any] = {"hidden": 8, "epochs": 10, "steps": 20, "code_steps": 10, "width": 8, "combiner_steps": 10}
LARGE: dict[str, Any] = {"learning_rate": 1.0, "paper_learning_rate": 0.3, "combiner_rate": 1.0}  # predictions move
SPECIAL: dict[tuple[str, str], dict[str, Any]] = {
    ("ballot", "sound"): {"assume": "homophilous", "least_votes": 0.5},
    ("dp-mlp", "published"): {"batch_size": 5},
    ("gap", "published"): {"max_degree": 20, "batch_size": 5, "epochs": 4},
    ("dp-sage", "sound"): {"max_degree": 3},
    ("dpar", "sound"): {"sources": 6, "projection": 3},
    ("dpar", "published"): {"sources": 16, "batch_size": 16, "clip": 0.05, "graph_rate": 0.8},
    ("dpdgc", "published"): {"max_degree": 2, "epochs": 2, "open_epochs": 2},
    ("nip-gnn", "published"): {"max_degree": 20},
}


def audit_settings(method: PrivateMethod) -> dict[str, Any]:
    """The hyper-parameters an audit sets for this method, unless its user has set them."""
    defaults = method.parameter_defaults()
    wanted = {**SMALL, **({} if method.gaps else LARGE), **SPECIAL.get((method.name, method.mode), {})}
    untouched = {name for name, value in method.get_params().items() if value == defaults[name]}
    if defaults.get("hidden", 1) is None:
        untouched.discard("hidden")  # no hidden layer is the default, and small enough
    return {name: value for name, value in wanted.items() if name in untouched}


def dense(data: Data) -> Data:
    """The same graph with ordinary features: neighbours are made by changing rows."""
    if data.x.layout is torch.strided:
        return data
    rows, width = data.x.shape
    if rows * width > MOST_NUMBERS:
        raise InputError(f"an audit keeps features dense, and these are {rows} x {width}: take a smaller graph")
    other = data.clone()
    other.x = data.x.to_dense()
    return other


def awkward_nodes(data: Data, seed: int = 0) -> dict[str, int]:
    """The nodes of a real graph that sensitivities are worst for: hubs of every public kind, a leaf, a loner, the last index."""
    degrees = np.bincount(data.edge_index[0].numpy(), minlength=data.num_nodes)
    masks = {"training": data.train_mask, "validation": data.val_mask, "test": data.test_mask}
    train = data.train_mask.numpy()
    chosen = {"hub": int(np.argmax(np.where(train, degrees, -1))), "last index": int(data.num_nodes) - 1}
    for kind, mask in masks.items():
        if bool(mask.any()):
            chosen[f"{kind} node of highest degree"] = int(np.argmax(np.where(mask.numpy(), degrees, -1)))
    for story, degree in (("leaf", 1), ("isolated node", 0)):
        found = np.flatnonzero((degrees == degree) & train)
        if found.size:
            chosen[story] = int(np.random.default_rng(seed).choice(found))
    return chosen


def in_blocks(nodes: int) -> AbstractContextManager[None]:
    """Queries of the runs inside go over several blocks in threads, as on large graphs; an engine that was chosen stays."""
    return nullcontext() if engine.chosen() else engine.using(Local(THREADS, records=-(-nodes // BLOCKS)))
