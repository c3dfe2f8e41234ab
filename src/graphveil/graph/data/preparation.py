"""Preparations that papers apply before training: largest component, class filters, direction, degree bounds.

Each is one small step from ``Data`` to ``Data``, written ``name`` or ``name:argument``. Steps read edges, labels or
features, so each leaves a note: on public benchmarks the prepared graph is a public fact, on a private graph it is not,
and certificates print the notes.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Callable, Sequence

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import connected_components
from torch_geometric.data import Data

from graphveil.errors import InputError
from graphveil.graph.data.splits import add_note, labels_of
from graphveil.graph.graph import MASKS, UNLABELLED
from graphveil.graph.holders import holder_numbers, within
from graphveil.graph.layout import features_tensor, is_dense, scipy_features
from graphveil.graph.lists import Lists

Step = Callable[[Data, str], Data]


def prepare(data: Data, steps: Sequence[str]) -> Data:
    """Apply ``steps`` in order to a copy of ``data``, e.g. ``["top-classes:10", "largest-component"]``."""
    for step in steps:
        apply, note, argument = step_of(step)
        data = apply(copy.copy(data), argument)
        add_note(data, "prepared: " + note.format(argument))
    return data


def step_of(text: str) -> tuple[Step, str, str]:
    """A step, the note it leaves and its argument, from ``name:argument``."""
    name, _, argument = text.partition(":")
    if name not in STEPS:
        close = difflib.get_close_matches(name, STEPS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(STEPS)}"
        raise InputError(f"unknown preparation {text!r}: {hint}")
    return *STEPS[name], argument


def subgraph(data: Data, keep: np.ndarray) -> Data:
    """The nodes under the mask ``keep`` and the edges among them, renumbered in order.

    ``Data.subgraph`` of PyG, and the transforms for components and isolated nodes, stop at sparse features.
    """
    number = np.cumsum(keep) - 1
    part = copy.copy(data)
    part.x = features_tensor(scipy_features(data)[keep], is_dense(data))
    for name in ("edge_index", "directed_edge_index"):
        if name in data:
            pairs = data[name].numpy()
            part[name] = torch.from_numpy(number[pairs[:, keep[pairs].all(axis=0)]])
    for name in ("y", *MASKS):
        if data.get(name) is not None:
            part[name] = data[name][torch.from_numpy(keep)]
    if data.get("ids") is not None:
        part.ids = np.asarray(data.ids)[keep]
    part.num_nodes = int(keep.sum())
    return part


def cut_lists(data: Data, max_degree: int, seed: int = 0) -> Data:
    """Keep at most ``max_degree`` entries of everybody's own contact list, chosen by public coins drawn from ``seed``.

    Lists are cut independently, so an undirected friendship may survive on one side only. See :meth:`Lists.capped`.
    """
    if not isinstance(max_degree, int) or max_degree < 1:
        raise InputError(f"max_degree is {max_degree}: give a positive integer")
    lists = Lists.from_edge_index(data.edge_index.numpy(), int(data.num_nodes))
    data.edge_index = torch.from_numpy(lists.capped(max_degree, np.random.default_rng([seed, 0x636170])).edge_index())
    return data


def largest_component_mask(data: Data) -> np.ndarray:
    """Members of the largest weakly connected component (the first one if several are equally large)."""
    nodes, arcs = int(data.num_nodes), data.edge_index.numpy()
    matrix = sp.coo_matrix((np.ones(arcs.shape[1], dtype=bool), tuple(arcs)), shape=(nodes, nodes)).tocsr()
    component = connected_components(matrix, directed=True, connection="weak")[1]
    return component == np.bincount(component).argmax() if nodes else np.zeros(0, dtype=bool)


def _drop_isolated(data: Data, _: str) -> Data:
    pairs = data.edge_index.numpy()
    connected = np.zeros(int(data.num_nodes), dtype=bool)
    connected[pairs[:, pairs[0] != pairs[1]].ravel()] = True
    return subgraph(data, connected)


def _top_classes(data: Data, argument: str) -> Data:
    largest = np.argsort(-_class_sizes(data), kind="stable")
    return _keep_classes(data, np.sort(largest[: _number(argument, "top-classes")]))


def _min_class_size(data: Data, argument: str) -> Data:
    return _keep_classes(data, np.flatnonzero(_class_sizes(data) >= _number(argument, "min-class-size")))


def _class_sizes(data: Data) -> np.ndarray:
    return np.bincount(labels_of(data)[labels_of(data) != UNLABELLED])


def _keep_classes(data: Data, kept: np.ndarray) -> Data:
    labels = labels_of(data)
    data = subgraph(data, np.isin(labels, kept))
    code = np.full(int(labels.max()) + 1, UNLABELLED)
    code[kept] = np.arange(kept.size)
    data.y = torch.from_numpy(code[data.y.numpy()])
    data.num_classes = int(kept.size)
    if "class_names" in data:
        data.class_names = [data.class_names[index] for index in kept]
    return data


def _arcs(data: Data, _: str) -> Data:
    if not data.get("directed"):
        if "directed_edge_index" not in data:
            raise InputError("preparation 'arcs': this graph has no directed version")
        data.edge_index = data.directed_edge_index
        data.directed = True
    data.edge_index = data.edge_index[:, data.edge_index[0] != data.edge_index[1]]
    return data


def _clip_counts(data: Data, _: str) -> Data:
    x = scipy_features(data)
    x.data = np.minimum(x.data, 1)
    data.x = features_tensor(x, is_dense(data))
    return data


def _scale_rows(data: Data, _: str) -> Data:
    x = scipy_features(data)
    return _divided(data, x, np.repeat(_largest(x, axis=1), np.diff(x.indptr)))


def _scale_columns(data: Data, _: str) -> Data:
    x = scipy_features(data)
    return _divided(data, x, _largest(x, axis=0)[x.indices])


def _largest(x: sp.csr_matrix, axis: int) -> np.ndarray:
    return np.asarray(abs(x).max(axis=axis).toarray().ravel())


def _divided(data: Data, x: sp.csr_matrix, divisors: np.ndarray) -> Data:
    """Each of the numbers that ``x`` stores (none is 0) divided by its own divisor."""
    x.data = x.data / divisors
    data.x = features_tensor(x, is_dense(data))
    return data


def _label_column(data: Data, argument: str) -> Data:
    names = data.get("genre_names") or data.get("feature_names") or []
    if argument not in names:
        close = difflib.get_close_matches(argument, names, n=1)
        raise InputError(f"no feature column {argument!r}" + (f": did you mean {close[0]}?" if close else ""))
    column = names.index(argument)
    x = scipy_features(data)
    data.y = torch.from_numpy((x[:, [column]].toarray().ravel() != 0).astype(np.int64))
    data.num_classes = 2
    data.class_names = [f"not {argument}", argument]
    rest = np.arange(x.shape[1]) != column
    data.x = features_tensor(x[:, rest], is_dense(data))
    data.feature_names = [name for name in names if name != argument]
    if "genre_names" in data:
        del data.genre_names
    return data


def _mutual(data: Data, _: str) -> Data:
    """Only arcs whose reverse is there: after a cut of the lists, nobody then has more contacts in either direction."""
    senders, receivers = data.edge_index.numpy().astype(np.int64)
    nodes = int(data.num_nodes)
    kept = np.isin(senders * nodes + receivers, receivers * nodes + senders)
    data.edge_index = data.edge_index[:, torch.from_numpy(kept)]
    return data


def _holders(data: Data, argument: str) -> Data:
    """Edges between the vertices of two holders are known to nobody."""
    numbers = holder_numbers(int(data.num_nodes), _number(argument, "holders"))
    data.edge_index = data.edge_index[:, torch.from_numpy(within(data.edge_index.numpy(), numbers))]
    return data


def _number(argument: str, step: str) -> int:
    if not argument.isdigit() or int(argument) < 1:
        raise InputError(f"preparation {step!r} needs a positive number, e.g. {step}:10")
    return int(argument)


MAX_DEGREE_NOTE = (
    "everybody's own contact list was cut to {} entries by public coins: under adjacency record this costs nothing, "
    "for any other adjacency the guarantee is for the cut graph"
)

STEPS: dict[str, tuple[Step, str]] = {
    "largest-component": (
        lambda data, _: subgraph(data, largest_component_mask(data)),
        "largest connected component only (reads the edges)",
    ),
    "drop-isolated": (_drop_isolated, "nodes without edges removed (reads the edges)"),
    "top-classes": (_top_classes, "only the {} largest classes kept (reads the labels)"),
    "min-class-size": (_min_class_size, "only classes of at least {} nodes kept (reads the labels)"),
    "arcs": (_arcs, "arcs of the directed source, self-loops dropped"),
    "clip-counts": (_clip_counts, "features above 1 set to 1"),
    "scale-rows": (_scale_rows, "every row of features divided by its largest value"),
    "scale-columns": (_scale_columns, "every feature column divided by its largest value (reads the features)"),
    "label-column": (_label_column, "feature column {} used as label"),
    "max-degree": (lambda data, degree: cut_lists(data, _number(degree, "max-degree")), MAX_DEGREE_NOTE),
    "holders": (
        _holders,
        "{} holders with equal random shares of the vertices; edges between two of them are not known",
    ),
    "mutual": (_mutual, "arcs that only one of the two lists has were removed (reads the edges)"),
}
"""What can be asked for by name, and the note it leaves."""
