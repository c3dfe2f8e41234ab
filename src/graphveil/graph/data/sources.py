"""Downloads through PyG's own data set classes: their addresses, their raw folders, their processing.

Raw files are fetched by :mod:`graphveil.graph.data.download` into the folder where the class expects them, the class turns
them into ``Data``, and the result is written to the cache in our own layout. Where the result is known in advance, its
content checksum is compared; otherwise only the sizes are, and the data say so.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch_geometric.data import Data

from graphveil.errors import InputError
from graphveil.files import draft, sha256_of, write_text
from graphveil.graph.data.download import fetch
from graphveil.graph.data.places import built_file, cache_folder, data_folder
from graphveil.graph.data.registry import DatasetCard, PygSource
from graphveil.graph.formats.npz import Arrays, pack, read_arrays
from graphveil.graph.graph import MASKS, UNLABELLED
from graphveil.graph.layout import arrays_from_data
from graphveil.progress import Progress

UNCHECKED = "downloaded through PyG: no checksum of this data set is known, only its sizes were compared"
OTHER_FEATURES = "downloaded through PyG: its features are {} and differ from those of the papers' file"
_GEOM_GCN = ("out1_node_feature_label.txt", "out1_graph_edges.txt")
_PLANETOID = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")


class Raw(NamedTuple):
    """Where a PyG class keeps its raw files (under its root), and where they come from."""

    folder: str
    urls: list[str]


def _geom_gcn(url: str, name: str) -> list[str]:
    splits = [f"{url}/splits/{name}_split_0.6_0.2_{number}.npz" for number in range(10)]
    return [*(f"{url}/new_data/{name}/{file}" for file in _GEOM_GCN), *splits]


RAW: dict[str, Callable[[Any, str], Raw]] = {
    "Planetoid": lambda c, name: Raw(f"{name}/raw", [f"{c.url}/ind.{name.lower()}.{part}" for part in _PLANETOID]),
    "Amazon": lambda c, name: Raw(f"{name.capitalize()}/raw", [f"{c.url}amazon_electronics_{name}.npz"]),
    "Coauthor": lambda c, name: Raw(f"{name}/raw", [f"{c.url}ms_academic_{name[:3].lower()}.npz"]),
    "CitationFull": lambda c, name: Raw(f"{name}/raw", [c.url.format(name)]),
    "WikipediaNetwork": lambda c, name: Raw(f"{name}/geom_gcn/raw", _geom_gcn(c.processed_url, name)),
    "Actor": lambda c, _: Raw("raw", _geom_gcn(c.url, "film")),
    **dict.fromkeys(("LastFMAsia", "FacebookPagePage", "PolBlogs", "Reddit"), lambda c, _: Raw("raw", [c.url])),
    **dict.fromkeys(("Twitch", "GemsecDeezer"), lambda c, name: Raw(f"{name}/raw", [f"{c.url}/{name}.npz"])),
}


def read_built(card: DatasetCard) -> dict[str, np.ndarray] | None:
    """What an earlier download left in the cache, checked against the sum written beside it."""
    path = built_file(card.name)
    if not path.is_file():
        return None
    try:
        sha256 = _checksum_file(path).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{path} has no checksum beside it: delete it and load {card.name} again") from None
    return read_arrays(path, sha256=sha256)


def _checksum_file(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def download(card: DatasetCard, progress: Progress | None = None) -> dict[str, np.ndarray]:
    """Fetch, process, check and cache ``card``; the cached file appears only when everything is right."""
    if card.pyg is None:
        folder = data_folder() or cache_folder()
        raise InputError(f"{card.name} cannot be downloaded: put {card.file}.npz into {folder} (origin: {card.origin})")
    raw = RAW[card.pyg.dataset](pyg_class(card.pyg), card.pyg.name)
    root = cache_folder() / "pyg" / card.name
    names = [url.rsplit("/", 1)[-1] for url in raw.urls]
    for name, url in zip(names, raw.urls, strict=True):
        try:
            fetch(url, root / raw.folder / name, progress=progress)
        except InputError as error:
            raise InputError(f"{error}; {card.name} needs {', '.join(names)}") from None
    arrays = process(card, card.pyg, root)
    path = built_file(card.name)
    with draft(path) as beside:
        path.parent.mkdir(parents=True, exist_ok=True)
        pack(arrays, beside)
        write_text(_checksum_file(path), sha256_of(beside))
    shutil.rmtree(root, ignore_errors=True)
    return arrays


def process(card: DatasetCard, pyg: PygSource, root: Path) -> dict[str, np.ndarray]:
    """Let the PyG class read its raw files under ``root``, and check what comes out."""
    options = {"name": pyg.name} if pyg.name else {}
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            data = pyg_class(pyg)(root=str(root), **options)[0]
    except Exception as error:  # PyG's readers raise whatever their parsers meet in a damaged file
        shutil.rmtree(root, ignore_errors=True)
        raise InputError(
            f"the downloaded files of {card.name} are damaged ({type(error).__name__}): they were deleted, try again"
        ) from None
    arrays = arrays_from_data(_adapt(data, card, pyg))
    arrays.pop("x_dense", None)  # a public file: its own share of non-zeros says it
    problem = _difference(arrays, card, pyg)
    if problem:
        shutil.rmtree(root, ignore_errors=True)
        raise InputError(f"the download of {card.name} is not the known data set ({problem}): it was deleted")
    notes = [UNCHECKED] * (pyg.content is None)
    notes += [OTHER_FEATURES.format(pyg.features)] * (pyg.features != "same")
    return arrays | {"notes": np.array(notes)} if notes else arrays


def pyg_class(pyg: PygSource) -> Any:
    import torch_geometric.datasets

    return getattr(torch_geometric.datasets, pyg.dataset)


def content_digest(arrays: Arrays) -> str:
    """sha256 of the arrays themselves (names, types, shapes, values), whatever file they come from."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _adapt(data: Data, card: DatasetCard, pyg: PygSource) -> Data:
    """PyG's object as ours: arcs apart from the undirected view, multi-label targets as features, missing labels."""
    if data.get("x") is None and data.y is not None and data.y.dim() == 2:
        data.x, data.y = data.y.float(), None
    nodes = card.nodes if data.x is None else int(data.x.shape[0])
    data.num_nodes = nodes
    for name in set(data.keys()) - {"x", "y", "edge_index", "num_nodes", *MASKS}:
        del data[name]
    if pyg.arcs:
        data.directed_edge_index = data.edge_index
    data.edge_index = torch.cat([data.edge_index, data.edge_index.flip(0)], dim=1)
    if card.unlabelled:
        data.y[list(card.unlabelled)] = UNLABELLED
    data.directed = False
    return data


def _difference(arrays: Arrays, card: DatasetCard, pyg: PygSource) -> str | None:
    if pyg.content is not None:
        return None if content_digest(arrays) == pyg.content else "content checksum differs"
    nodes, edges = int(arrays["x_shape"][0]), int(arrays["edge_index"].shape[1])
    if nodes != card.nodes:
        return f"{nodes} nodes instead of {card.nodes}"
    return None if edges == card.edges else f"{edges} edges instead of {card.edges}"
