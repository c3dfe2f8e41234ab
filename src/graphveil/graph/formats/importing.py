"""Your own graph: an edge table and a node table become one ``.npz`` file.

Tables are streamed: memory holds the identifiers of the nodes, the features and some bytes per edge, never a whole
text file. Rows are counted from 1, the header not included.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import scipy.sparse as sp

from graphveil.errors import FOR_THE_OPERATOR, DataWarning, InputError
from graphveil.files import draft
from graphveil.graph.formats.columns import Column, category_codes, encode, expand, feature_names, infer, width_of
from graphveil.graph.formats.npz import feature_arrays, label_arrays, undirected_pairs, unique_arcs, write_arrays
from graphveil.graph.formats.tables import TableFile, column_of, text_column

NODES_FROM_EDGES = "the nodes are those that occur in the edge table: their number is read off the data"
WEIGHTS = ": a contact is there or not, weights are not used"
INFERRED = "the {} of column {!r} was read off the data and is not covered by the promise"


@dataclass(frozen=True)
class ImportPlan:
    """What to read. ``source`` and ``target`` default to the first two columns, ``identifier`` to the first one."""

    edges: TableFile
    nodes: TableFile | None = None
    source: str | None = None
    target: str | None = None
    identifier: str | None = None
    label: Column | None = None
    features: Sequence[Column] = ()
    directed: bool = False
    zero_missing: bool = False
    drop_unknown: bool = False


@dataclass(frozen=True)
class Imported:
    """What came out, for the person who imported it (exact figures: not for publication)."""

    nodes: int
    edges: int
    features: int
    classes: int
    unlabelled: int
    duplicates: int
    self_loops: int
    unknown: int
    notes: tuple[str, ...]
    assumed: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()


def import_graph(
    plan: ImportPlan, out: Path, *, save_ids: Path | None = None, progress: Callable[[int], None] | None = None
) -> Imported:
    """Read the tables of ``plan`` and write ``out``; nothing is written unless everything is well."""
    if save_ids is not None and save_ids.suffix not in (".csv", ".parquet"):
        raise InputError(f"--save-ids writes .csv or .parquet, got {save_ids.name!r}")
    if plan.nodes is None and (plan.label is not None or plan.features):
        raise InputError("labels and features need a table of nodes: pass --nodes")
    plan, assumed = _decided(plan)
    notes: list[str] = []
    if plan.nodes is None:
        notes.append(NODES_FROM_EDGES)
        pairs, identifiers, unknown = _read_edges(plan, None, progress)
        table = feature_arrays(sp.csr_matrix((len(identifiers), 0), dtype=np.float32))
    else:
        identifiers, table = _read_nodes(plan, notes)
        pairs, identifiers, unknown = _read_edges(plan, identifiers, progress)
    count = len(identifiers)
    if count == 0:
        raise InputError(f"{(plan.nodes or plan.edges).path} holds no nodes")
    loops = int(np.count_nonzero(pairs[0] == pairs[1]))
    edges = undirected_pairs(pairs, count)
    arrays = {"edge_index": edges, **table}
    kept = edges.shape[1]
    if plan.directed:
        arrays["directed_edge_index"] = unique_arcs(pairs[:, pairs[0] != pairs[1]], count)
        arrays["directed"] = np.array(True)
        kept = arrays["directed_edge_index"].shape[1]
    duplicates = pairs.shape[1] - loops - kept
    if duplicates or loops:
        twice = "" if plan.directed else " (an edge listed in both directions counts as one)"
        message = f"removed {duplicates} duplicate edges{twice} and {loops} self-loops {FOR_THE_OPERATOR}"
        warnings.warn(message, DataWarning, stacklevel=2)
    if unknown:
        message = f"dropped {unknown} edges to identifiers without a node {FOR_THE_OPERATOR}"
        warnings.warn(message, DataWarning, stacklevel=2)
    arrays["ids"] = np.array(identifiers.to_pylist(), dtype=np.str_)
    if notes:
        arrays["notes"] = np.array(notes, dtype=np.str_)
    if save_ids is not None:
        named = pa.table({"node": pa.array(np.arange(count)), "id": identifiers})
        with draft(save_ids) as beside:
            pq.write_table(named, beside) if save_ids.suffix == ".parquet" else pa_csv.write_csv(named, beside)
    write_arrays(arrays, out)
    return Imported(
        nodes=count,
        edges=kept,
        features=int(arrays["x_shape"][1]),
        classes=int(arrays.get("num_classes", 0)),
        unlabelled=int(arrays["unlabeled_nodes"].size) if "unlabeled_nodes" in arrays else 0,
        duplicates=duplicates,
        self_loops=loops,
        unknown=unknown,
        notes=tuple(notes),
        assumed=tuple(assumed),
        unused=tuple(_unused(plan)),
    )


def _decided(plan: ImportPlan) -> tuple[ImportPlan, list[str]]:
    """The plan with delimiters and headers guessed where they were not said, and these guesses in words."""
    edges, said = plan.edges.guessed()
    nodes = plan.nodes
    if nodes is not None:
        nodes, more = nodes.guessed()
        said = said + more
    return replace(plan, edges=edges, nodes=nodes), said


def _unused(plan: ImportPlan) -> list[str]:
    """What the tables hold that the graph does not, in words."""
    names = plan.edges.names()
    used = {plan.source or names[0], plan.target or names[1]}
    said = [
        _left_out(
            plan.edges,
            [name for name in names if name not in used],
            WEIGHTS,
        )
    ]
    if plan.nodes is not None:
        names = plan.nodes.names()
        label = [] if plan.label is None else [plan.label.name]
        taken = {
            plan.identifier or names[0],
            *label,
            *(one.name for one in expand(plan.features, names, str(plan.nodes.path))),
        }
        said.append(_left_out(plan.nodes, [name for name in names if name not in taken], ""))
    return [line for line in said if line]


def _left_out(file: TableFile, names: Sequence[str], why: str) -> str:
    return f"not used, columns of {file.path.name}: {', '.join(names)}{why}" if names else ""


def _read_nodes(plan: ImportPlan, notes: list[str]) -> tuple[pa.Array, dict[str, np.ndarray]]:
    file = plan.nodes
    assert file is not None
    header = file.names()
    identifier = plan.identifier or header[0]
    label = expand([plan.label], header, str(file.path))[0] if plan.label else None
    features = expand(plan.features, header, str(file.path))
    expand([Column(identifier)], header, str(file.path))
    reserved = {identifier} | ({label.name} if label else set())
    features = [column for column in features if column.name not in reserved]
    label = _declared_label(_infer(file, [label], notes, classes=True)[0]) if label else None
    features = _infer(file, features, notes)
    needed = [*dict.fromkeys([identifier, *(column.name for column in [*features, *([label] if label else [])])])]
    types = {column.name: pa.float64() if column.categories is None else pa.string() for column in features}
    types |= dict.fromkeys([identifier, *([label.name] if label else [])], pa.string())
    identifiers, labels, blocks, widths, row = [], [], [], None, 1
    for batch in file.batches(needed, types):
        identifiers.append(text_column(batch, identifier, file, row))
        if label:
            labels.append(category_codes(label, column_of(batch, label.name))[0])
        found = [width_of(column, column_of(batch, column.name)) for column in features]
        if widths not in (None, found):
            raise InputError(f"{file.path} holds lists of different lengths: give lists of one length")
        widths = found
        blocks.append(_block(batch, features, widths, plan.zero_missing, row))
        row += batch.num_rows
    widths = widths if widths is not None else [width_of(column, None) for column in features]
    empty = sp.csr_matrix((0, sum(widths)), dtype=np.float32)
    table = feature_arrays(sp.vstack([empty, *blocks], format="csr"))
    names = [name for column, width in zip(features, widths, strict=True) for name in feature_names(column, width)]
    if names:
        table["feature_names"] = np.array(names, dtype=np.str_)
    if label:
        table |= label_arrays(np.concatenate([np.empty(0, dtype=np.int64), *labels]))
        table["num_classes"] = np.array(len(label.categories or ()), dtype=np.int64)
        table["class_names"] = np.array(label.categories, dtype=np.str_)
    ids = pa.concat_arrays([pa.array([], pa.large_string()), *identifiers])
    counts = pc.value_counts(ids)
    repeated = counts.filter(pc.greater(counts.field("counts"), 1))
    if len(repeated):
        raise InputError(
            f"{file.path} lists {len(repeated)} identifiers more than once, e.g. {repeated[0]['values'].as_py()!r}: "
            "give one row per node"
        )
    return ids, table


def _read_edges(
    plan: ImportPlan, identifiers: pa.Array | None, progress: Callable[[int], None] | None
) -> tuple[np.ndarray, pa.Array, int]:
    header = plan.edges.names()
    if len(header) < 2 and not (plan.source and plan.target):
        raise InputError(f"{plan.edges.path} has one column ({header[0]!r}): edges need two; is the delimiter right?")
    ends = [plan.source or header[0], plan.target or header[1]]
    expand([Column(name) for name in ends], header, str(plan.edges.path))
    known = pa.array([], pa.large_string()) if identifiers is None else identifiers
    parts: list[np.ndarray] = []
    unknown, row = 0, 1
    for batch in plan.edges.batches(list(dict.fromkeys(ends)), dict.fromkeys(ends, pa.string())):
        texts = [text_column(batch, name, plan.edges, row) for name in ends]
        if identifiers is None:
            row_by_row = np.arange(2 * batch.num_rows).reshape(2, -1).T.ravel()  # numbered as they appear in the file
            seen = pc.unique(pa.concat_arrays(texts).take(pa.array(row_by_row)))
            known = pa.concat_arrays([known, seen.filter(pc.invert(pc.is_in(seen, known)))])
        codes = np.stack([pc.fill_null(pc.index_in(text, known), -1).to_numpy(zero_copy_only=False) for text in texts])
        lost = np.any(codes < 0, axis=0)
        if lost.any() and not plan.drop_unknown:
            first = int(lost.argmax())
            name = texts[int(codes[0, first] >= 0)][first].as_py()
            raise InputError(
                f"{plan.edges.path} row {row + first} names {name!r}, which is no node of the node table: add it, or "
                "pass --drop-unknown"
            )
        unknown += int(lost.sum())
        parts.append(codes[:, ~lost].astype(np.int32, copy=False))
        row += batch.num_rows
        if progress is not None:
            progress(row - 1)
    return np.concatenate([np.empty((2, 0), dtype=np.int32), *parts], axis=1), known, unknown


def _infer(file: TableFile, columns: Sequence[Column], notes: list[str], classes: bool = False) -> list[Column]:
    """Declared columns as they are; the others get their range or categories from a first pass over the table."""
    what = "list of classes" if classes else "range or list of categories"
    result = []
    for column in columns:
        if not column.declared:
            name = column.name
            values = (column_of(batch, name) for batch in file.batches([name], {name: pa.string()}))
            column = infer(column, values, classes=classes)
            notes.append(INFERRED.format(what, name))
            message = f"{notes[-1]}: declare it from what is publicly known, {column.pattern()}"
            warnings.warn(message, DataWarning, stacklevel=4)
        result.append(column)
    return result


def _declared_label(label: Column) -> Column:
    """A label with an integer range has the classes low, low + 1, ..., high."""
    if label.categories is not None:
        return label
    low, high = int(label.low or 0), int(label.high or 0)
    if (low, high) != (label.low, label.high) or high - low > 100_000:
        raise InputError(
            f"the label {label.name!r} is a number from {label.low:g} to {label.high:g}: declare its classes"
        )
    return replace(label, low=None, high=None, categories=tuple(str(value) for value in range(low, high + 1)))


def _block(
    batch: pa.RecordBatch, features: Sequence[Column], widths: Sequence[int], zero_missing: bool, row: int
) -> sp.csr_matrix:
    parts = [sp.coo_matrix((batch.num_rows, 0), dtype=np.float32)]
    for column, width in zip(features, widths, strict=True):
        rows, columns, values = encode(column, column_of(batch, column.name), zero_missing, row)
        parts.append(sp.coo_matrix((values, (rows, columns)), shape=(batch.num_rows, width), dtype=np.float32))
    return sp.hstack(parts, format="csr", dtype=np.float32)
