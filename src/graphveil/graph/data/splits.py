"""Which nodes teach, which calibrate, which are asked about.

A split is a public fact, so the default reads nothing but the number of nodes. Splits that read labels say so in
``data.notes``, and certificates print it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch_geometric.data import Data

from graphveil.errors import InputError
from graphveil.graph.graph import MASKS, UNLABELLED
from graphveil.graph.layout import features_tensor, is_dense, scipy_features

Fractions = tuple[float, float, float]
FRACTIONS: Fractions = (0.75, 0.10, 0.15)
STRATIFIED = "the split is stratified by class: it reads every label"
WHO_IS_LABELLED = "who has a label decides who teaches and who is asked about: that somebody has one is public"
CUT = "edges between test nodes and the others were cut: predictions read no training person"
CLUSTERS = "the split cuts the graph into clusters: it reads every edge"
PER_CLASS = "the split takes equally many training nodes of every class: it reads every label"


def parse_split(text: str) -> tuple[str, Fractions | None]:
    """``random:50/25/25`` as the name of a split and its shares; without a colon the shares are the default's."""
    kind, colon, shares = text.partition(":")
    if not colon:
        return kind, None
    if kind not in ("random", "stratified", "inductive", "labelled"):
        raise InputError(f"split {text}: only random, stratified, inductive and labelled take shares")
    try:
        train, val, test = (float(share) / 100 for share in shares.split("/"))
    except ValueError:
        raise InputError(f"split {text}: give three percentages, as in random:50/25/25") from None
    return kind, (train, val, test)


def random_split(data: Data, seed: int = 0, fractions: Fractions = FRACTIONS) -> Data:
    """Random train, validation and test masks; reads the number of nodes only, so equal sizes and seeds agree."""
    order = np.random.default_rng(seed).permutation(int(data.num_nodes))
    return _set(data, *np.split(order, _cuts(fractions, order.size)))


def no_split(data: Data) -> Data:
    """Masks that nobody is in: whoever asks a trained model must not be sorted anew."""
    return _set(data, *[np.empty(0, dtype=np.int64)] * len(MASKS))


def stratified_split(data: Data, seed: int = 0, fractions: Fractions = FRACTIONS) -> Data:
    """Random masks with the same class shares in each part. Unlabelled nodes are in no mask. Reads every label."""
    rng = np.random.default_rng(seed)
    labels = labels_of(data)
    parts: list[list[np.ndarray]] = [[], [], []]
    for label in range(int(labels.max(initial=-1)) + 1):
        members = rng.permutation(np.flatnonzero(labels == label))
        for part, chosen in zip(parts, np.split(members, _cuts(fractions, members.size)), strict=True):
            part.append(chosen)
    data = _set(data, *(np.concatenate([np.empty(0, dtype=np.int64), *part]) for part in parts))
    add_note(data, STRATIFIED)
    return data


def clusters_split(data: Data, seed: int = 0, parts: int = 9) -> Data:
    """Cut the graph into ``parts`` equal clusters: one is asked about, one calibrates, the others teach. Reads every edge.

    DPAR's released code splits so, by METIS into nine; here clusters grow breadth-first and are then refined.
    """
    from graphveil.graph.kernels.clusters import balanced_clusters

    part = balanced_clusters(data.edge_index.numpy(), int(data.num_nodes), parts, np.random.default_rng(seed))
    asked, calibrate = np.random.default_rng(seed).permutation(parts)[:2]
    teach = np.flatnonzero((part != asked) & (part != calibrate))
    data = _set(data, teach, np.flatnonzero(part == calibrate), np.flatnonzero(part == asked))
    add_note(data, CLUSTERS)
    return data


def labelled_split(data: Data, seed: int = 0, fractions: Fractions = FRACTIONS) -> Data:
    """Labelled nodes teach and calibrate, in the proportion of their shares; all others are asked about."""
    known = np.random.default_rng(seed).permutation(np.flatnonzero(labels_of(data) != UNLABELLED))
    teach, calibrate, _ = fractions
    if not teach > 0 or calibrate < 0:
        raise InputError("split labelled: the share of training nodes must be positive")
    cut = round(known.size * teach / (teach + calibrate))
    asked = np.flatnonzero(labels_of(data) == UNLABELLED)
    data = _set(data, known[:cut], known[cut:], asked)
    add_note(data, WHO_IS_LABELLED)
    return data


def mostly_unlabelled(data: Data) -> bool:
    """Whether more than half of the nodes have no label."""
    return data.get("y") is not None and bool((labels_of(data) == UNLABELLED).mean() > 0.5)


def per_class_split(data: Data, seed: int = 0, *, train: int = 20, val: int = 500, test: int = 1000) -> Data:
    """``train`` random nodes of every class, then ``val`` and ``test`` random others, as in Planetoid."""
    rng = np.random.default_rng(seed)
    labels = labels_of(data)
    chosen = []
    for label in range(int(labels.max(initial=-1)) + 1):
        members = np.flatnonzero(labels == label)
        if members.size < train:
            raise InputError(f"class {label} has {members.size} nodes, not the {train} asked for training")
        chosen.append(rng.permutation(members)[:train])
    taken = np.concatenate([np.empty(0, dtype=np.int64), *chosen])
    free = labels != UNLABELLED
    free[taken] = False
    rest = rng.permutation(np.flatnonzero(free))
    if rest.size < val + test:
        raise InputError(
            f"{rest.size} labelled nodes are left for {val} validation and {test} test nodes: ask for fewer"
        )
    data = _set(data, taken, rest[:val], rest[val : val + test])
    add_note(data, PER_CLASS)
    return data


def official_split(data: Data, number: int = 0) -> Data:
    """The split that comes with the data set; ``number`` chooses one if there are several (ten for Geom-GCN's)."""
    masks = [data.get(name) for name in MASKS]
    if any(mask is None for mask in masks):
        raise InputError(f"{data.get('name') or 'this graph'} has no official split: use split='random'")
    count = masks[0].shape[1] if masks[0].dim() == 2 else 1
    if not 0 <= number < count:
        raise InputError(f"split number {number} does not exist: {data.get('name') or 'this graph'} has {count}")
    for name, mask in zip(MASKS, masks, strict=True):
        data[name] = mask[:, number].contiguous() if mask.dim() == 2 else mask
    return data


class Inductive(NamedTuple):
    """What training sees, and what predictions are made on."""

    training: Data
    inference: Data


def inductive_split(data: Data, kind: Literal["fully", "incrementally"] = "fully") -> Inductive:
    """Hide the test nodes from training (DPDGC, appendix I). ``data`` already has masks.

    Training sees the graph of everybody but the test nodes. Predictions are made on the test nodes' own graph
    (``"fully"``: the two graphs are disjoint, edges between them are cut) or on the whole graph (``"incrementally"``:
    test nodes join later, and predictions read training people again). Both graphs keep all slots, so node numbers
    stay; slots that are not in a graph are blank: no features, no label, no edges.
    """
    if kind not in ("fully", "incrementally"):
        raise InputError(f"inductive split {kind!r}: give 'fully' or 'incrementally'")
    if data.get("test_mask") is None or data.test_mask.dim() != 1:
        raise InputError("an inductive split needs data.test_mask: split the data first")
    test = data.test_mask.numpy()
    inference = restrict(data, test) if kind == "fully" else copy.copy(data)
    return Inductive(training=restrict(data, ~test), inference=inference)


def cut_edges(data: Data) -> Data:
    """``data`` without the edges between test nodes and the others: both disjoint graphs of a fully inductive split."""
    test = data.test_mask.numpy()
    part = _keep_edges(data, lambda pairs: test[pairs[0]] == test[pairs[1]])
    add_note(part, CUT)
    return part


def restrict(data: Data, keep: np.ndarray) -> Data:
    """A copy in which the slots outside the mask ``keep`` are blank and in no mask; node numbers stay."""
    part = _keep_edges(data, lambda pairs: keep[pairs].all(axis=0))
    x = scipy_features(data)
    x.data[~np.repeat(keep, np.diff(x.indptr))] = 0
    x.eliminate_zeros()
    part.x = features_tensor(x, is_dense(data))
    inside = torch.from_numpy(keep)
    if data.get("y") is not None:
        part.y = torch.where(inside, data.y, UNLABELLED)
    for name in MASKS:
        part[name] = data[name] & inside
    return part


def seeded_splits(data: Data, seeds: Iterable[int], fractions: Fractions = FRACTIONS) -> Iterator[Data]:
    """One copy of ``data`` per seed, each with its own random split; features and edges are shared, not copied."""
    for seed in seeds:
        yield random_split(copy.copy(data), seed, fractions)


def add_note(data: Data, note: str) -> None:
    """Record an assumption that certificates print."""
    data.notes = (*(data.notes if "notes" in data else ()), note)


def _keep_edges(data: Data, kept: Callable[[np.ndarray], np.ndarray]) -> Data:
    part = copy.copy(data)
    for name in ("edge_index", "directed_edge_index"):
        if name in data:
            part[name] = data[name][:, torch.from_numpy(kept(data[name].numpy()))]
    return part


def _cuts(fractions: Fractions, size: int) -> np.ndarray:
    shares = np.asarray(fractions, dtype=np.float64)
    if shares.shape != (3,) or not (shares >= 0).all() or not np.isclose(shares.sum(), 1.0):
        raise InputError(f"split fractions {tuple(fractions)}: give three non-negative numbers that add up to 1")
    return np.rint(np.cumsum(shares[:2]) * size).astype(int)


def _set(data: Data, *parts: np.ndarray) -> Data:
    for name, part in zip(MASKS, parts, strict=True):
        mask = np.zeros(int(data.num_nodes), dtype=bool)
        mask[part] = True
        data[name] = torch.from_numpy(mask)
    return data


def labels_of(data: Data) -> np.ndarray:
    """The labels, which a split or a preparation cannot do without."""
    if data.get("y") is None:
        raise InputError("this split or preparation needs labels, and the data have none")
    return np.asarray(data.y)
