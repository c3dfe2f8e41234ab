"""Tables of any length become a folder of records: nothing but identifiers is ever in memory as a whole.

People are written block by block as they are read. Arcs are put into one file per block of their owner and sorted there, block by
block: an external sort by one pass. What is under way lies in a hidden folder beside the result and goes away with it.
"""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import scipy.sparse as sp

from graphveil.errors import FOR_THE_OPERATOR, DataWarning, InputError
from graphveil.files import draft
from graphveil.graph.blocks import SIZE
from graphveil.graph.folder import KINDS, Written, write_folder
from graphveil.graph.formats.importing import NODES_FROM_EDGES, Imported, ImportPlan, decided, unused

WIDEST = 4096  # dense float32 columns; wider tables are sparse ones and belong into .npz


def import_folder(
    plan: ImportPlan, out: Path, *, save_ids: Path | None = None, progress: Callable[[int], None] | None = None
) -> Imported:
    """Read the tables of ``plan`` and write the folder ``out``; it is there as a whole or not at all."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} is there already: choose another folder")
    if plan.nodes is None and (plan.label is not None or plan.features):
        raise InputError("labels and features need a table of nodes: pass --nodes")
    plan, assumed = decided(plan)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as beside:
        work = Path(beside)
        notes: list[str] = []
        people = _People(work, plan, notes)
        arcs = _Arcs(work, plan, people.ids, progress)
        ids = arcs.ids
        if not len(ids):
            raise InputError(f"{(plan.nodes or plan.edges).path} holds no nodes")
        head = {"features": people.width, "classes": people.classes, "directed": plan.directed, "notes": notes}
        if people.class_names:
            head["class_names"] = people.class_names
        blocks = people.blocks(ids, arcs)
        write_folder(work / "folder", blocks, head)
        if save_ids is not None:
            named = pa.table({"node": pa.array(np.arange(len(ids))), "id": ids})
            with draft(save_ids) as kept:
                pq.write_table(named, kept) if save_ids.suffix == ".parquet" else pa_csv.write_csv(named, kept)
        if out.exists():
            out.rmdir()
        shutil.move(work / "folder", out)
    edges = arcs.kept if plan.directed else arcs.kept // 2
    duplicates = arcs.read - arcs.loops - edges
    if duplicates or arcs.loops:
        twice = "" if plan.directed else " (an edge listed in both directions counts as one)"
        message = f"removed {duplicates} duplicate edges{twice} and {arcs.loops} self-loops {FOR_THE_OPERATOR}"
        warnings.warn(message, DataWarning, stacklevel=2)
    if arcs.unknown:
        message = f"dropped {arcs.unknown} edges to identifiers without a node {FOR_THE_OPERATOR}"
        warnings.warn(message, DataWarning, stacklevel=2)
    return Imported(
        nodes=len(ids),
        edges=edges,
        features=people.width,
        classes=people.classes,
        unlabelled=people.unlabelled if plan.label else 0,
        duplicates=duplicates,
        self_loops=arcs.loops,
        unknown=arcs.unknown,
        notes=tuple(notes),
        assumed=tuple(assumed),
        unused=tuple(unused(plan)),
    )


class _People:
    """Features and labels, a file per block."""

    def __init__(self, work: Path, plan: ImportPlan, notes: list[str]) -> None:
        self._work, self.ids, self.classes, self.width, self.unlabelled = work, None, 0, 0, 0
        self.class_names: list[str] = []
        if plan.nodes is None:
            notes.append(NODES_FROM_EDGES)
            return
        table = plan.node_table(notes)
        ids: list[pa.Array] = [pa.array([], pa.large_string())]
        for number, (names, labels, features) in enumerate(_in_blocks(table.batches())):
            if features.shape[1] > WIDEST:
                raise InputError(f"{features.shape[1]} feature columns are too many for a folder: import to .npz")
            np.savez(work / f"people-{number}.npz", x=features.toarray(), labels=labels)
            self.unlabelled += int(np.count_nonzero(labels < 0))
            ids.append(names)
        self.ids, self.width = pa.concat_arrays(ids), table.width
        table.refuse_doubles(self.ids)
        if table.label:
            self.class_names = list(table.label.categories or ())
            self.classes = len(self.class_names)

    def blocks(self, ids: pa.Array, arcs: _Arcs) -> Iterator[Written]:
        for number, first in enumerate(range(0, len(ids), SIZE)):
            mine = ids.slice(first, SIZE)
            path = self._work / f"people-{number}.npz"
            if path.exists():
                with np.load(path) as read:
                    x, labels = read["x"], read["labels"]
                path.unlink()
            else:
                x, labels = np.zeros((len(mine), 0), dtype=np.float32), np.full(len(mine), -1)
            starts, entries = arcs.lists(number, len(mine), len(ids))
            yield Written(x, labels, np.full(len(mine), len(KINDS), dtype=np.int8), starts, entries, mine)


class _Arcs:
    """Arcs by the block of their owner, as pairs (place within the block, slot)."""

    def __init__(
        self, work: Path, plan: ImportPlan, ids: pa.Array | None, progress: Callable[[int], None] | None
    ) -> None:
        self._work, self.kept, self.read, self.loops = work, 0, 0, 0
        table = plan.edge_table(ids)
        with ExitStack() as files:
            opened: dict[int, Any] = {}
            for pairs in table.batches(progress):
                self.read += pairs.shape[1]
                loops = pairs[0] == pairs[1]
                self.loops += int(np.count_nonzero(loops))
                arcs = pairs[:, ~loops]
                if not plan.directed:
                    arcs = np.concatenate([arcs, arcs[::-1]], axis=1)
                owner = arcs[0] // SIZE
                order = np.argsort(owner, kind="stable")
                ends = np.cumsum(np.bincount(owner))
                for block, part in enumerate(np.split(order, ends[:-1]) if len(ends) else ()):
                    if block not in opened:
                        opened[block] = files.enter_context((work / f"arcs-{block}").open("wb"))
                    opened[block].write(np.ascontiguousarray((arcs[:, part] - [[block * SIZE], [0]]).T, dtype=np.int32))
        self.ids, self.unknown = table.known, table.unknown

    def lists(self, block: int, people: int, nodes: int) -> tuple[np.ndarray, np.ndarray]:
        """Where the own list of everybody in the block starts, and all entries, sorted and without doubles."""
        path = self._work / f"arcs-{block}"
        pairs = np.fromfile(path, dtype=np.int32).reshape(-1, 2) if path.exists() else np.zeros((0, 2), dtype=np.int32)
        path.unlink(missing_ok=True)
        keys = np.unique(pairs[:, 0].astype(np.int64) * nodes + pairs[:, 1])
        starts = np.searchsorted(keys, np.arange(people + 1, dtype=np.int64) * nodes)
        self.kept += len(keys)
        return starts, keys % nodes


def _in_blocks(
    batches: Iterator[tuple[pa.Array, np.ndarray, sp.csr_matrix]],
) -> Iterator[tuple[pa.Array, np.ndarray, sp.csr_matrix]]:
    """The same people, ``SIZE`` at a time."""
    waiting: list[tuple[pa.Array, np.ndarray, sp.csr_matrix]] = []
    count = 0

    def joined() -> tuple[pa.Array, np.ndarray, sp.csr_matrix]:
        ids, labels, features = zip(*waiting, strict=True)
        return pa.concat_arrays(list(ids)), np.concatenate(labels), sp.vstack(features, format="csr")

    for batch in batches:
        waiting.append(batch)
        count += len(batch[1])
        while count >= SIZE:
            ids, labels, features = joined()
            yield ids.slice(0, SIZE), labels[:SIZE], features[:SIZE]
            waiting, count = [(ids.slice(SIZE), labels[SIZE:], features[SIZE:])], count - SIZE
    if count:
        yield joined()
