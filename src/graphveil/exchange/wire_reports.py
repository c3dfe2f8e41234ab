"""Records of the wire as columns: checked by the randomizers that are said to have made them, and read like a reports file.

Tests: ``tests/service/test_refusals.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from graphveil.exchange.client import NO_LABEL
from graphveil.exchange.randomizers import checks
from graphveil.exchange.randomizers.checks import Defects, reasons
from graphveil.exchange.reports_file import ReportsFile
from graphveil.exchange.wire import Stage, WireRecord
from graphveil.privacy.local import Part


@dataclass(frozen=True, eq=False)
class Columns:
    """Many records of one stage, part by part; None where a part is not in the stage."""

    ids: list[str]
    features: Any
    labels: np.ndarray | None
    contacts: list[str] | None
    counts: np.ndarray | None
    degrees: np.ndarray | None

    @classmethod
    def of(cls, records: Sequence[WireRecord], stage: Stage, *, sparse: bool = True) -> Columns:
        """``sparse``: whether features are; a few rows are checked more quickly in full."""
        asked = stage.fields
        features: Any = None
        if "features" in asked and not sparse:
            features = np.zeros((len(records), stage.attributes))
            for row, record in zip(features, records, strict=True):
                row[list(record.at or ())] = record.values
        elif "features" in asked:
            sizes = [len(record.at or ()) for record in records]
            starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
            at = np.fromiter((place for record in records for place in record.at or ()), np.int64, starts[-1])
            values = np.fromiter((one for record in records for one in record.values or ()), np.float64, starts[-1])
            features = sp.csr_matrix((values, at, starts), (len(records), stage.attributes))
        return cls(
            [record.id for record in records],
            features,
            np.array([NO_LABEL if r.label is None else r.label for r in records]) if "label" in asked else None,
            [" ".join(record.contacts or ()) for record in records] if "contacts" in asked else None,
            np.array([r.counts for r in records], np.float64).reshape(-1, stage.count_width)
            if "counts" in asked
            else None,
            np.array([record.degree for record in records], np.int64) if "degree" in asked else None,
        )

    @classmethod
    def joined(cls, parts: Iterable[Columns]) -> Columns:
        """Columns of several batches as one."""
        found = list(parts)

        def each(name: str, join: Any) -> Any:
            values = [getattr(part, name) for part in found]
            return None if values[0] is None else join(values)

        return cls(
            [one for part in found for one in part.ids],
            each("features", lambda parts: sp.vstack(parts, format="csr")),
            each("labels", np.concatenate),
            each("contacts", lambda parts: [one for part in parts for one in part]),
            each("counts", np.concatenate),
            each("degrees", np.concatenate),
        )

    def refused(self, stage: Stage) -> dict[int, str]:
        """Which records no client can have made, and why."""
        return reasons(self._defects(stage))

    def _defects(self, stage: Stage) -> Defects:
        features, labels, edges = (stage.round_on(part) for part in Part)
        if features is not None:
            yield from features.randomizer.check_report(self.features, stage.slots)
        if labels is not None and self.labels is not None:
            told = self.labels != NO_LABEL
            for mask, reason in labels.randomizer.check_report(self.labels[told], stage.slots):
                whole = np.zeros(len(self.ids), dtype=bool)
                whole[np.flatnonzero(told)[mask]] = True
                yield whole, reason
        if edges is not None and self.counts is not None:
            yield from edges.randomizer.check_report(self.counts, stage.slots)
        if self.degrees is not None:
            yield self.degrees >= max(stage.slots, 1), "an impossible length of its contact list"
        if stage.raw(Part.FEATURES):
            yield from checks.numbers(self.features, stage.attributes)


@dataclass(frozen=True, eq=False)
class WireReports(ReportsFile):
    """The records of one holder in one stage, in the place of a file of reports."""

    told: Columns | None = None

    @classmethod
    def of(cls, columns: Columns, stage: Stage, holder: str, seeded: bool) -> WireReports:
        features = "features" in stage.fields
        return cls(
            Path(f"{holder}, {stage.name}{', seeded' if seeded else ''}"),
            pa.table({}),
            holder,
            len(columns.ids),
            stage.attributes if features else 0,
            stage.classes,
            stage.promise,
            stage.tells_lengths,
            {round.name: (round, stage.heard if round.part is Part.EDGES else "") for round in stage.rounds},
            seeded,
            columns,
        )

    @property
    def _told(self) -> Columns:
        assert self.told is not None
        return self.told

    @property
    def ids(self) -> list[str]:  # type: ignore[override]
        return self._told.ids

    def numbers(self, letter: str) -> Any:
        return self._told.counts if letter == "h" else self._told.features

    def labels(self) -> np.ma.MaskedArray:
        values = self._told.labels
        assert values is not None
        return np.ma.array(values, mask=values == NO_LABEL)

    @property
    def contacts(self) -> pa.Array | None:
        return None if self._told.contacts is None else pa.array(self._told.contacts, pa.large_string())

    def lengths(self) -> np.ndarray:
        assert self._told.degrees is not None
        return self._told.degrees


def batched(records: Iterable[WireRecord], size: int) -> Iterator[list[WireRecord]]:
    """Some records at a time."""
    batch: list[WireRecord] = []
    for record in records:
        batch.append(record)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
