"""Tables of generated people and edges of any size, written chunk by chunk: what the scale benchmark imports and trains on.

Slot i has class i mod C. An edge has a random first end; its second end is of the same class with probability ``homophily``. Ends
are drawn as ``n u^skew``: a few people have very many contacts. Features are standard normal numbers, and 1 more in the column of
the class.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CHUNK = 1 << 20
LABEL, FEATURES = "group", "x"


def write_people(path: Path, people: int, features: int, classes: int, seed: int = 0) -> None:
    """One row per person: ``id``, ``x`` (a list of numbers) and ``group``."""
    schema = pa.schema([("id", pa.string()), (LABEL, pa.string()), (FEATURES, pa.list_(pa.float32(), features))])
    with pq.ParquetWriter(path, schema) as writer:
        for number, first in enumerate(range(0, people, CHUNK)):
            rng = np.random.default_rng((seed, 0, number))
            slots = np.arange(first, min(first + CHUNK, people))
            x = rng.standard_normal((len(slots), features), dtype=np.float32)
            x[np.arange(len(slots)), slots % classes % features] += 1
            columns = [
                pa.array(slots).cast(pa.string()),
                pa.array(slots % classes).cast(pa.string()),
                pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), features),
            ]
            writer.write_table(pa.table(columns, schema=schema))


def write_edges(
    path: Path, people: int, edges: int, classes: int, *, homophily: float = 0.7, skew: float = 1.5, seed: int = 0
) -> None:
    """One row per undirected edge: ``from`` and ``to``; a few of them twice or from somebody to themselves."""
    schema = pa.schema([("from", pa.string()), ("to", pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        for number, first in enumerate(range(0, edges, CHUNK)):
            rng = np.random.default_rng((seed, 1, number))
            count = min(CHUNK, edges - first)
            ends = (people * rng.random((2, count)) ** skew).astype(np.int64)
            alike = rng.random(count) < homophily
            same = ends[1] - ends[1] % classes + ends[0] % classes
            ends[1] = np.where(alike & (same < people), same, ends[1])
            writer.write_table(pa.table([pa.array(end).cast(pa.string()) for end in ends], schema=schema))
