"""Where data sets may be found on this machine: folders, and Cora in an installed ``graphdatascience`` wheel.

With the wheel (Apache-2.0) a first run needs no download of data. The package is never imported: its two Parquet files are found
through the installation's metadata, checked against known sha256 sums, and read with pyarrow. A committed index gives Planetoid's
node order and class codes, so that the arrays equal those of ``cora.npz`` and equal seeds give equal splits. Feature columns
already agree.
"""

from __future__ import annotations

import os
from importlib import metadata, resources
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from platformdirs import user_cache_path

from graphveil.errors import InputError
from graphveil.files import sha256_of
from graphveil.graph.data.registry import GENERATED, cards
from graphveil.graph.formats.npz import feature_arrays, undirected_pairs

WHEEL = "graphdatascience"
WHEEL_FILES = (
    "graphdatascience/resources/cora/cora_nodes.parquet.gzip",
    "graphdatascience/resources/cora/cora_rels.parquet.gzip",
)

SHA256 = (
    "c54c0625af98570287dcb25e9f29e0b229948352a8de1dbf202fa39f36bfe591",
    "e0059f81e607c0262e93fbe3c77950b06098dab167f0071cba97a82c9440ca01",
)
PUBLIC_SPLIT = {"train_mask": (0, 140), "val_mask": (140, 640), "test_mask": (1708, 2708)}


def data_folder() -> Path | None:
    """The folder named by ``$GRAPHVEIL_DATA``."""
    declared = os.environ.get("GRAPHVEIL_DATA")
    return Path(declared) if declared else None


def cache_folder() -> Path:
    """Where downloads are kept: ``$GRAPHVEIL_CACHE``, else ``graphveil`` in the user's cache folder."""
    declared = os.environ.get("GRAPHVEIL_CACHE")
    return Path(declared) if declared else user_cache_path("graphveil", appauthor=False)


def file_of(name: str) -> Path | None:
    """The file of a data set in the data folder or the cache, in this order."""
    card = cards().get(name)
    for folder in (data_folder(), cache_folder()):
        path = folder / f"{card.file if card else name}.npz" if folder else None
        if path is not None and path.is_file():
            return path
    return None


def built_file(name: str) -> Path:
    """Where a download of this data set is kept, in our own layout."""
    return cache_folder() / "built" / f"{name}.npz"


def wheel_files() -> tuple[Path, Path] | None:
    """Cora's node and relation file in an installed wheel, or None if there is none."""
    try:
        distribution = metadata.distribution(WHEEL)
    except metadata.PackageNotFoundError:
        return None
    nodes, relations = (Path(str(distribution.locate_file(name))) for name in WHEEL_FILES)
    return (nodes, relations) if nodes.is_file() and relations.is_file() else None


def availability(name: str) -> str:
    """``here``, ``wheel``, ``download``, ``by hand`` or ``generated``."""
    if name in GENERATED:
        return "generated"
    if file_of(name) or built_file(name).is_file():
        return "here"
    if name == "cora" and wheel_files():
        return "wheel"
    return "download" if cards()[name].pyg else "by hand"


def cora_arrays(paths: tuple[Path, Path]) -> dict[str, np.ndarray]:
    """The arrays of Planetoid's Cora (layout of :mod:`graphveil.graph.formats.npz`) from the two files of the wheel."""
    import pyarrow.parquet as pq

    for path, digest in zip(paths, SHA256, strict=True):
        if sha256_of(path) != digest:
            raise InputError(f"{path} is not the known file (sha256 differs): install {WHEEL}==2.2 again")
    with resources.files("graphveil.graph.data").joinpath("resources/cora-index.npz").open("rb") as handle:
        index = dict(np.load(handle, allow_pickle=False))
    nodes, relations = (pq.read_table(path) for path in paths)
    identifiers = nodes["nodeId"].to_numpy()[index["rows"]]
    count = identifiers.size
    features = nodes["features"].combine_chunks().flatten().to_numpy().reshape(count, -1)[index["rows"]]
    order = np.argsort(identifiers)
    ends = [relations[column].to_numpy() for column in ("sourceNodeId", "targetNodeId")]
    pairs = np.stack([order[np.searchsorted(identifiers, end, sorter=order)] for end in ends])
    arrays = {"edge_index": undirected_pairs(pairs, count)} | feature_arrays(sp.csr_matrix(features))
    arrays["y"] = index["classes"][nodes["subject"].to_numpy()[index["rows"]]].astype(np.int16)
    for name, (start, stop) in PUBLIC_SPLIT.items():
        arrays[name] = np.zeros(count, dtype=bool)
        arrays[name][start:stop] = True
    return arrays
