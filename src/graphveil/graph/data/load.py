"""``load_dataset``: one line from a name or a file to a graph with a split."""

from __future__ import annotations

import difflib
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from graphveil.errors import DataWarning, InputError
from graphveil.graph.data import splits
from graphveil.graph.data.places import cora_arrays, file_of, wheel_files
from graphveil.graph.data.preparation import MAX_DEGREE_NOTE, cut_lists, step_of
from graphveil.graph.data.preparation import prepare as apply_steps
from graphveil.graph.data.registry import GENERATED, DatasetCard, Variant, cards
from graphveil.graph.data.sources import download, read_built
from graphveil.graph.data.stand_in import stand_in
from graphveil.graph.data.synthetic import csbm, powerlaw_sbm
from graphveil.graph.folder import open_folder
from graphveil.graph.formats.npz import read_arrays
from graphveil.graph.graph import MASK_OF, MASKS, UNLABELLED, Graph
from graphveil.graph.layout import data_from_arrays
from graphveil.progress import Progress

GENERATORS: dict[str, Callable[..., Data]] = dict(zip(GENERATED, (csbm, powerlaw_sbm, stand_in), strict=True))
SPLITS = ("random", "stratified", "per-class", "official", "inductive", "clusters", "labelled", "auto", "paper", "none")
MOSTLY_UNLABELLED = (
    "most nodes have no label: labelled ones teach and calibrate, the others are asked about (--split labelled)"
)


def load_dataset(
    name: str | Path,
    seed: int = 0,
    *,
    split: str = "random",
    fractions: splits.Fractions | None = None,
    prepare: str | Sequence[str] | None = None,
    directed: bool | None = None,
    max_degree: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Data:
    """A data set by name, or an ``.npz`` file by path, with train, validation and test masks.

    Names are looked up in ``$GRAPHVEIL_DATA``, then in the user's cache, then in installed wheels, and then downloaded
    through PyG. ``csbm`` and ``powerlaw-sbm`` are generated from ``seed`` with ``options`` (e.g. ``phi=0.9``), which the name can
    carry as well: ``csbm:phi=0.9,nodes=2000``.

    Args:
        seed: of the split, and of generated graphs.
        split: ``random`` 75/10/15 (reads the number of nodes only), ``stratified``, ``per-class`` (20 for training, as
            in Planetoid), ``official`` (``seed`` chooses among several), ``inductive`` (random, edges to test nodes
            cut), ``clusters`` (one of nine clusters is asked about, edges to it cut), ``labelled`` (labelled nodes teach
            and calibrate, the others are asked about), ``auto`` (``labelled`` for a file in which most nodes have no label,
            else ``random``), ``paper`` (what the paper named by ``prepare`` does), or ``none`` (nobody is in a mask: for
            predictions); shares as in ``random:50/25/25``.
        fractions: train, validation and test shares.
        prepare: a paper's name (``"dpdgc"``), or steps such as ``["top-classes:10", "largest-component"]``.
        directed: True for the arcs of a directed source, False for the undirected view; default: as the file declares.
        max_degree: cut everybody's own contact list to this length by public coins; recorded as an assumption.
    """
    name, given = _named(str(name))
    options = given | options
    card = cards().get(name)
    if name in GENERATORS:
        data = _generate(name, seed, options)
    else:
        if options:
            raise InputError(f"{name} has no option {next(iter(options))!r}: only generated graphs take options")
        data = data_from_arrays(_find(name, progress), directed=directed)
        data.name = Path(name).stem if card is None else name
    if card is not None:  # public facts of a public benchmark; self-loops of its arcs are dropped
        data.ids = torch.arange(data.num_nodes)  # the file is known, so the number of a node says who it is
        if data.get("y") is not None:
            data.num_classes = card.classes
        data.edge_index = data.edge_index[:, data.edge_index[0] != data.edge_index[1]]
    variant, steps = _variant(card, prepare)
    data = apply_steps(data, steps)
    if max_degree is not None:
        data = cut_lists(data, max_degree, seed)
        splits.add_note(data, MAX_DEGREE_NOTE.format(max_degree))
    if split == "auto":
        split = "labelled" if name.endswith(".npz") and splits.mostly_unlabelled(data) else "random"
        if split == "labelled":
            warnings.warn(MOSTLY_UNLABELLED, DataWarning, stacklevel=2)
    data = _split(data, split, seed, fractions, variant)
    if card is not None and data.get("y") is not None and (unlabelled := data.y == UNLABELLED).any():
        for mask in MASKS:
            data[mask] = data[mask] & torch.logical_not(unlabelled)
        splits.add_note(data, f"{int(unlabelled.sum())} nodes have no label in the public source and are in no mask")
    if "directed_edge_index" in data:
        del data.directed_edge_index
    return data


def load_folder(folder: Path, seed: int = 0, *, split: str = "auto") -> Graph:
    """The graph in a folder of records (``graphveil import --out FOLDER``), read block by block by methods that can.

    Kinds that the folder declares are its split. Otherwise ``random`` masks, or ``labelled`` ones where most people have no label
    (``auto``), as :func:`load_dataset` makes them.
    """
    graph = open_folder(folder)
    if any(mask.any() for mask in graph.masks.values()) and split in ("auto", "random", "official"):
        return graph
    bare = Data(y=torch.from_numpy(graph.labels), num_nodes=graph.nodes)
    kind, fractions = _split_of(split, None, None)
    if kind not in ("auto", "random", "labelled"):
        raise InputError(
            f"split {kind!r} is not made for a folder: give random, labelled or auto, or write kinds into it"
        )
    if kind == "auto":
        kind = "labelled" if splits.mostly_unlabelled(bare) else "random"
        if kind == "labelled":
            warnings.warn(MOSTLY_UNLABELLED, DataWarning, stacklevel=2)
    bare = _split(bare, kind, seed, fractions, None)
    masks = {kind: bare[mask].numpy() for kind, mask in MASK_OF.items()}
    return replace(graph, masks=masks, notes=(*graph.notes, *bare.get("notes", ())))


def check_asked(name: str, prepare: str | Sequence[str] | None, split: str, options: Mapping[str, Any]) -> None:
    """Refuse a preparation, a split or options that :func:`load_dataset` would refuse, without loading anything."""
    name, given = _named(name)
    options = given | dict(options)
    variant, steps = _variant(cards().get(name), prepare)
    for step in steps:
        step_of(step)
    _split_of(split, None, variant)
    if name in GENERATORS:
        _check_options(name, options)


def _named(name: str) -> tuple[str, dict[str, Any]]:
    """The name of a generated graph and the options after its colon; other names as they are."""
    base, colon, rest = name.partition(":")
    if base not in GENERATORS or not colon:
        return name, {}
    options: dict[str, Any] = {}
    for part in rest.split(","):
        key, equals, value = part.partition("=")
        try:
            options[key.strip()] = float(value) if any(mark in value for mark in ".e") else int(value)
        except ValueError:
            equals = ""
        if not equals:
            raise InputError(f"{name}: options of a generated graph read {base}:key=number,key=number; got {part!r}")
    return base, options


def dataset_names() -> list[str]:
    """Every name :func:`load_dataset` knows."""
    return sorted([*cards(), *GENERATORS])


def local_arrays(name: str) -> dict[str, np.ndarray] | None:
    """The arrays of a data set if they are on this machine: data folder, cache, wheel; never downloads."""
    card = cards().get(name)
    if (path := file_of(name)) is not None:
        return read_arrays(path, sha256=card.sha256 if card else None)
    if card is None:
        return None
    if (arrays := read_built(card)) is not None:
        return arrays
    if name == "cora" and (paths := wheel_files()):
        return cora_arrays(paths)
    return None


def _find(name: str, progress: Progress | None) -> dict[str, np.ndarray]:
    if name.endswith(".npz"):
        return read_arrays(name)
    if (arrays := local_arrays(name)) is not None:
        return arrays
    if name not in cards():
        close = difflib.get_close_matches(name, dataset_names(), n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else "see `graphveil datasets`, or give an .npz file"
        raise InputError(f"unknown data set {name!r}: {hint}")
    return download(cards()[name], progress)


def _generate(name: str, seed: int, options: dict[str, Any]) -> Data:
    _check_options(name, options)
    return GENERATORS[name](seed, **options)


def _check_options(name: str, options: Mapping[str, Any]) -> None:
    known = [key for key in inspect.signature(GENERATORS[name]).parameters if key != "seed"]
    for option in options:
        if option not in known:
            raise InputError(f"{name} has no option {option!r}: it takes {', '.join(known)}")


def _variant(card: DatasetCard | None, asked: str | Sequence[str] | None) -> tuple[Variant | None, tuple[str, ...]]:
    if asked is None:
        return None, ()
    if not isinstance(asked, str):
        return None, tuple(asked)
    if card is not None and asked in card.variants:
        return card.variants[asked], card.variants[asked].steps
    if any(asked in other.variants for other in cards().values()):
        known = ", ".join(card.variants) if card and card.variants else "none"
        raise InputError(f"{asked} does not use {card.name if card else 'this graph'}: papers that do: {known}")
    return None, tuple(step.strip() for step in asked.split(",") if step.strip())


def _split(data: Data, split: str, seed: int, fractions: splits.Fractions | None, variant: Variant | None) -> Data:
    split, fractions = _split_of(split, fractions, variant)
    if split == "none":
        return splits.no_split(data)
    if split == "labelled":
        return splits.labelled_split(data, seed, fractions or splits.FRACTIONS)
    if split == "official":
        count = data.train_mask.shape[1] if data.get("train_mask") is not None and data.train_mask.dim() == 2 else 1
        return splits.official_split(data, seed % count)
    if split == "per-class":
        return splits.per_class_split(data, seed)
    if split == "clusters":
        return splits.cut_edges(splits.clusters_split(data, seed))
    if split == "stratified":
        return splits.stratified_split(data, seed, fractions or splits.FRACTIONS)
    data = splits.random_split(data, seed, fractions or splits.FRACTIONS)
    return splits.cut_edges(data) if split == "inductive" else data


def _split_of(
    split: str, fractions: splits.Fractions | None, variant: Variant | None
) -> tuple[str, splits.Fractions | None]:
    """The kind of split and its shares."""
    split, shares = splits.parse_split(split)
    if split not in SPLITS:
        raise InputError(f"unknown split {split!r}: known are {', '.join(SPLITS)}")
    if split != "paper":
        return split, fractions or shares
    if variant is None or variant.split is None:
        raise InputError("split='paper' needs prepare= with a paper that states its split")
    return "inductive" if variant.inductive else "random", variant.split
