"""Where data sets may be found on this machine. Light: looks at folders, reads nothing."""

from __future__ import annotations

import os
from importlib import metadata
from pathlib import Path

from platformdirs import user_cache_path

from graphveil.graph.data.registry import GENERATED, cards

WHEEL = "graphdatascience"
WHEEL_FILES = (
    "graphdatascience/resources/cora/cora_nodes.parquet.gzip",
    "graphdatascience/resources/cora/cora_rels.parquet.gzip",
)


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
