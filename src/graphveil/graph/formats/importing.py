"""Your own graph: an edge table and a node table become one ``.npz`` file.

Tables are streamed: memory holds the identifiers of the nodes, the features and some bytes per edge, never a whole
text file. Rows are counted from 1, the header not included.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import scipy.sparse as sp

from graphveil.errors import FOR_THE_OPERATOR, DataWarning, InputError
from graphveil.files import draft
from graphveil.graph.formats.columns import Column, expand
from graphveil.graph.formats.npz import feature_arrays, label_arrays, undirected_pairs, unique_arcs, write_arrays
from graphveil.graph.formats.people import EdgeTable, NodeTable
from graphveil.graph.formats.tables import TableFile

NODES_FROM_EDGES = "the nodes are those that occur in the edge table: their number is read off the data"
WEIGHTS = ": a contact is there or not, weights are not used"


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

    def node_table(self, notes: list[str]) -> NodeTable:
        assert self.nodes is not None
        columns = self.identifier, self.label, self.features
        return NodeTable.declared(self.nodes, *columns, self.zero_missing, notes)

    def edge_table(self, identifiers: pa.Array | None) -> EdgeTable:
        return EdgeTable(self.edges, self.source, self.target, identifiers, self.drop_unknown)


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
    plan, assumed = decided(plan)
    notes: list[str] = []
    if plan.nodes is None:
        notes.append(NODES_FROM_EDGES)
        edge_table = plan.edge_table(None)
        pairs = _joined(edge_table.batches(progress))
        table = feature_arrays(sp.csr_matrix((len(edge_table.known), 0), dtype=np.float32))
    else:
        known, table = _read_nodes(plan.node_table(notes))
        edge_table = plan.edge_table(known)
        pairs = _joined(edge_table.batches(progress))
    identifiers, unknown = edge_table.known, edge_table.unknown
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
        unused=tuple(unused(plan)),
    )


def decided(plan: ImportPlan) -> tuple[ImportPlan, list[str]]:
    """The plan with delimiters and headers guessed where they were not said, and these guesses in words."""
    edges, said = plan.edges.guessed()
    nodes = plan.nodes
    if nodes is not None:
        nodes, more = nodes.guessed()
        said = said + more
    return replace(plan, edges=edges, nodes=nodes), said


def unused(plan: ImportPlan) -> list[str]:
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


def _read_nodes(people: NodeTable) -> tuple[pa.Array, dict[str, np.ndarray]]:
    read = list(people.batches())
    empty = sp.csr_matrix((0, people.width), dtype=np.float32)
    table = feature_arrays(sp.vstack([empty, *(features for _, _, features in read)], format="csr"))
    table["x_dense"] = np.array(people.dense)
    if names := people.feature_names():
        table["feature_names"] = np.array(names, dtype=np.str_)
    if people.label:
        table |= label_arrays(np.concatenate([np.empty(0, dtype=np.int64), *(labels for _, labels, _ in read)]))
        table["num_classes"] = np.array(len(people.label.categories or ()), dtype=np.int64)
        table["class_names"] = np.array(people.label.categories, dtype=np.str_)
    ids = pa.concat_arrays([pa.array([], pa.large_string()), *(ids for ids, _, _ in read)])
    people.refuse_doubles(ids)
    return ids, table


def _joined(parts: Iterable[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.empty((2, 0), dtype=np.int32), *parts], axis=1)
