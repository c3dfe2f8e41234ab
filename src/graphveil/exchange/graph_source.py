"""A graph file read as a table of records: ``id``, ``x0``, ``x1``, ..., ``label``, ``contacts``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from graphveil.graph.formats.npz import read_arrays

ROWS = 1 << 14


class GraphSource:
    """Looks like a ``TableFile``; features are made dense batch by batch."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def _arrays(self) -> dict[str, np.ndarray]:
        return read_arrays(self.path)

    @cached_property
    def _features(self) -> sp.csr_matrix:
        arrays = self._arrays
        data = np.ones(len(arrays["x_indices"])) if arrays["x_binary"] else arrays["x_data"].astype(np.float64)
        shape = (int(arrays["x_shape"][0]), int(arrays["x_shape"][1]))
        return sp.csr_matrix((data, arrays["x_indices"], arrays["x_indptr"]), shape=shape)

    @cached_property
    def _labels(self) -> np.ndarray:
        labels = self._arrays.get("y", np.full(self._features.shape[0], -1)).astype(np.int64)
        labels[self._arrays.get("unlabeled_nodes", np.empty(0, dtype=np.int64))] = -1
        return labels

    @cached_property
    def _lists(self) -> sp.csr_matrix:
        """Row k is k's own contact list: both directions of an undirected edge, or the arcs of a directed graph."""
        directed = bool(self._arrays.get("directed", False)) and "directed_edge_index" in self._arrays
        pairs = self._arrays["directed_edge_index" if directed else "edge_index"]
        nodes = self._features.shape[0]
        matrix = sp.coo_matrix((np.ones(pairs.shape[1]), (pairs[0], pairs[1])), (nodes, nodes)).tocsr()
        matrix = matrix if directed else matrix + matrix.T
        matrix.setdiag(0)
        matrix.eliminate_zeros()
        return sp.csr_matrix(matrix)

    @property
    def classes(self) -> int | None:
        """The number of classes if the file declares it; never counted from the labels, which are private."""
        declared = self._arrays.get("num_classes")
        return None if declared is None else int(declared)

    def names(self) -> list[str]:
        return ["id", *(f"x{number}" for number in range(self._features.shape[1])), "label", "contacts"]

    def batches(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
        for start in range(0, self._features.shape[0], ROWS):
            rows = self._features[start : start + ROWS].toarray()
            ids = np.arange(start, start + len(rows))
            found: dict[str, Any] = {}
            for name in columns:
                if name == "id":
                    found[name] = ids
                elif name == "label":
                    labels = self._labels[ids]
                    found[name] = pa.array(labels, mask=labels < 0)
                elif name == "contacts":
                    found[name] = [" ".join(map(str, self._lists[vertex].indices)) for vertex in ids]
                else:
                    found[name] = np.ascontiguousarray(rows[:, int(name[1:])])
            yield pa.RecordBatch.from_pydict(found)
