"""One graph in one ``.npz`` file, without pickles: the layout of the benchmark files and of ``graphveil import``.

========================================  ==============================================================================
``edge_index`` int32 [2, E]               every undirected pair once, u < v, sorted, no self-loops, no duplicates
``directed_edge_index`` int32 [2, A]      if the source is directed: its arcs (from, to), unique, sorted, loops kept
``x_indptr``, ``x_indices``, ``x_shape``  the feature matrix in CSR form; ``x_shape[0]`` is the number of nodes
``x_binary`` and ``x_data`` float32       True: all stored values are 1 and there is no ``x_data``
``x_dense`` bool                          how the matrix is held in memory, if that is said
``y`` int16 [n]                           classes from 0; absent for multi-label data
``unlabeled_nodes`` int32                 nodes whose ``y`` is only a placeholder
``train_mask``, ``val_mask``, ...         official splits, bool [n] or [splits, n]
``class_names``, ``feature_names``, ...   unicode
``ids`` int or unicode [n]                who is who, if known
``directed``, ``num_classes``, ``notes``  imported graphs: declared facts, and assumptions a certificate prints
========================================  ==============================================================================
"""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from graphveil.errors import InputError
from graphveil.files import draft
from graphveil.graph.graph import MASKS, UNLABELLED

Arrays = Mapping[str, np.ndarray]
NAMES = ("class_names", "feature_names", "genre_names")
BROKEN: tuple[type[Exception], ...] = (  # what numpy and zipfile raise on a damaged file
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)
DENSE_FROM = 0.1
"""Share of non-zeros from which features become a dense tensor where nothing says how they are stored: in benchmark files,
which are public. Dense and sparse rows are rounded differently, so for private data the form must not follow from them: imports
decide it by the declared columns, files say it (``x_dense``), and what is derived from a graph keeps it."""
_REQUIRED = ("edge_index", "x_indptr", "x_indices", "x_shape", "x_binary")


def read_arrays(path: str | Path, *, sha256: str | None = None) -> dict[str, np.ndarray]:
    """All arrays of the file, checked: checksum if known, no pickles, and the rules of the layout."""
    path = Path(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
        raise InputError(f"{path} is not the known file (sha256 differs): delete it and fetch it again")
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except BROKEN:
        raise InputError(f"{path} is damaged or no graph file: it cannot be read as .npz") from None
    problem = layout_problem(arrays)
    if problem:
        raise InputError(f"{path} is not a valid graph file: {problem}")
    return arrays


def layout_problem(arrays: Arrays) -> str | None:
    """The first rule of the layout that ``arrays`` break, or None."""
    for name in _REQUIRED:
        if name not in arrays:
            return f"array {name} is missing"
    shape = arrays["x_shape"]
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or shape.min() < 0 or shape.max() >= 2**31:
        return "x_shape is not two sizes"
    nodes, width = int(shape[0]), int(shape[1])
    for name in ("edge_index", "directed_edge_index"):
        pairs = arrays.get(name)
        if pairs is not None and (pairs.ndim != 2 or pairs.shape[0] != 2 or pairs.dtype.kind not in "iu"):
            return f"{name} is not an integer array of shape (2, edges)"
    indptr, indices = arrays["x_indptr"], arrays["x_indices"]
    if indptr.shape != (nodes + 1,) or indices.ndim != 1 or {indptr.dtype.kind, indices.dtype.kind} - {"i", "u"}:
        return "x_indptr or x_indices has the wrong shape or type"
    if indptr[0] != 0 or indptr[-1] != indices.size or (indptr[1:] < indptr[:-1]).any():
        return "x_indptr does not fit x_indices"
    if "unlabeled_nodes" in arrays and ("y" not in arrays or arrays["unlabeled_nodes"].dtype.kind not in "iu"):
        return "unlabeled_nodes are not node numbers, or there are no labels"
    named = {"edge_index": nodes, "directed_edge_index": nodes, "unlabeled_nodes": nodes, "x_indices": width}
    for name, size in named.items():
        if name in arrays and arrays[name].size and (arrays[name].min() < 0 or arrays[name].max() >= size):
            return f"{name} names a {'column' if name == 'x_indices' else 'node'} outside 0..{size - 1}"
    for name in ("x_binary", "x_dense", "directed", "collected"):
        if name in arrays and (arrays[name].shape != () or arrays[name].dtype != bool):
            return f"{name} is not a boolean"
    values = arrays.get("x_data")
    if not arrays["x_binary"] and (values is None or values.shape != indices.shape or values.dtype.kind not in "fiub"):
        return "x_data is missing or has the wrong length or type"
    return _label_problem(arrays, nodes) or _name_problem(arrays, nodes)


def _label_problem(arrays: Arrays, nodes: int) -> str | None:
    labels, classes = arrays.get("y"), arrays.get("num_classes")
    if labels is not None and (labels.shape != (nodes,) or labels.dtype.kind not in "iu"):
        return f"y is not one integer for each of {nodes} nodes"
    if classes is not None and (classes.shape != () or classes.dtype.kind not in "iu" or not 1 <= classes < 2**31):
        return "num_classes is not a number of classes"
    if labels is not None and labels.size and not -1 <= labels.min() <= labels.max() < 2**31:
        return "y has a class that no number of classes holds"
    for name in MASKS:
        mask = arrays.get(name)
        if mask is not None and (mask.dtype != bool or mask.shape[-1:] != (nodes,) or mask.ndim > 2):
            return f"{name} is not a boolean mask over {nodes} nodes"
    return None


def _name_problem(arrays: Arrays, nodes: int) -> str | None:
    ids = arrays.get("ids")
    if ids is not None and (ids.shape != (nodes,) or ids.dtype.kind not in "iuU"):
        return f"ids is not one number or text for each of {nodes} nodes"
    for name in (*NAMES, "notes"):
        if name in arrays and (arrays[name].ndim != 1 or arrays[name].dtype.kind != "U"):
            return f"{name} is not a list of words"
    return None


def write_arrays(arrays: Arrays, path: str | Path) -> Path:
    """Write atomically, with fixed time stamps so that equal content gives an equal checksum."""
    path = Path(path)
    with draft(path) as beside:
        pack(arrays, beside)
    return path


def pack(arrays: Arrays, path: Path) -> None:
    """The bytes of a graph file, not yet in their place."""
    with zipfile.ZipFile(path, "w") as archive:
        for name in sorted(arrays):
            entry = zipfile.ZipInfo(f"{name}.npy")  # ZipInfo's default date is 1980
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(arrays[name], order="C"), allow_pickle=False)


def feature_arrays(x: sp.csr_matrix) -> dict[str, np.ndarray]:
    """``x_*`` arrays of a canonical CSR matrix without stored zeros."""
    binary = bool((x.data == 1).all())
    arrays = {
        "x_indptr": x.indptr.astype(np.int64),
        "x_indices": x.indices.astype(np.int32),
        "x_shape": np.array(x.shape, dtype=np.int64),
        "x_binary": np.array(binary),
    }
    return arrays if binary else arrays | {"x_data": x.data.astype(np.float32)}


def label_arrays(labels: np.ndarray) -> dict[str, np.ndarray]:
    """``y`` with the placeholder 0 for unlabelled nodes, and their list."""
    missing = np.flatnonzero(labels == UNLABELLED)
    codes = np.maximum(labels, 0)
    arrays = {"y": codes.astype(np.int16 if codes.max(initial=0) < 2**15 else np.int32)}
    return arrays | {"unlabeled_nodes": missing.astype(np.int32)} if missing.size else arrays


def both_directions(edges: np.ndarray, nodes: int) -> np.ndarray:
    """Arcs (u, v) and (v, u) of every edge, sorted, as int64 ``(2, arcs)``. Repeated edges stay repeated."""
    u, v = edges.astype(np.int64)
    other = u != v
    keys = np.concatenate([u * nodes + v, v[other] * nodes + u[other]])
    keys.sort()
    return np.stack(np.divmod(keys, max(nodes, 1)))


def undirected_pairs(pairs: np.ndarray, nodes: int) -> np.ndarray:
    """Every unordered pair once as (u, v), u < v, sorted; self-loops dropped. int32 ``(2, E)``."""
    u, v = pairs[:, pairs[0] != pairs[1]]
    return unique_arcs((np.minimum(u, v), np.maximum(u, v)), nodes)


def unique_arcs(pairs: np.ndarray | tuple[np.ndarray, np.ndarray], nodes: int) -> np.ndarray:
    """The distinct columns of ``pairs``, sorted. int32 ``(2, A)``."""
    keys = sorted_unique(pairs[0].astype(np.int64) * nodes + pairs[1])
    return np.stack(np.divmod(keys, max(nodes, 1))).astype(np.int32)


def sorted_unique(keys: np.ndarray) -> np.ndarray:
    """The distinct values in order; sorts ``keys`` in place (several times faster than hashing millions of keys)."""
    keys.sort()
    kept = np.ones(keys.size, dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=kept[1:])
    return keys[kept]
