"""The side nobody trusts: it takes reports, keeps rounds apart, and turns them into noisy data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from graphveil.errors import InputError
from graphveil.exchange.randomizers.base import Contacts
from graphveil.exchange.report import Report, Round
from graphveil.privacy.local import Part

if TYPE_CHECKING:
    from torch_geometric.data import Data

NOBODY = -1


class Collector:
    """Reports of public slots 0 .. ``slots`` - 1, from one or several holders, in named rounds.

    A report that arrives again byte for byte is counted and otherwise ignored; another report of the same vertex in the
    same round is refused, because somebody would have paid twice. Whatever is computed here is post-processing.
    """

    def __init__(self, rounds: Iterable[Round], slots: int) -> None:
        self.rounds = {round.name: round for round in rounds}
        self.slots = slots
        self.resent = 0
        self._reports: dict[str, list[Report]] = {name: [] for name in self.rounds}
        self._which = {name: np.full(slots, NOBODY) for name in self.rounds}
        self._where = {name: np.zeros(slots, dtype=np.int64) for name in self.rounds}

    def accept(self, report: Report) -> None:
        """Take the reports of one holder for one round; all of them or none."""
        if report.round not in self.rounds:
            raise InputError(f"there is no round {report.round!r}; the rounds are: {', '.join(self.rounds)}")
        ids = np.asarray(report.ids, dtype=np.int64)
        if ids.size and (ids.min() < 0 or ids.max() >= self.slots):
            raise InputError(f"round {report.round!r}: a report is for a vertex outside 0..{self.slots - 1}")
        if len(np.unique(ids)) != len(ids):
            raise InputError(f"round {report.round!r}: two reports of holder {report.holder!r} are for the same vertex")
        which, where = self._which[report.round], self._where[report.round]
        known = which[ids] != NOBODY
        for number in np.flatnonzero(known):
            stored = self._reports[report.round][which[ids[number]]]
            if not np.array_equal(stored.row(where[ids[number]]), report.row(number)):
                raise InputError(
                    f"round {report.round!r}: vertex {ids[number]} has already sent another report (holder "
                    f"{stored.holder!r}); a second one would cost it the budget again and is not taken"
                )
        self.resent += int(known.sum())
        fresh = ids[~known]
        which[fresh] = len(self._reports[report.round])
        where[fresh] = np.flatnonzero(~known)
        self._reports[report.round].append(report)

    def reported(self, name: str) -> np.ndarray:
        """Which slots have reported in this round."""
        return self._which[name] != NOBODY

    def holders(self) -> dict[str, int]:
        """How many vertices each holder has reported in at least one round."""
        seen: dict[str, set[int]] = {}
        for reports in self._reports.values():
            for report in reports:
                seen.setdefault(report.holder, set()).update(report.ids.tolist())
        return {holder: len(ids) for holder, ids in sorted(seen.items())}

    def values(self, name: str) -> Any:
        """All reports of a round in the order of the slots; slots that sent nothing have zeros (labels: -1)."""
        reports, which, where = self._reports[name], self._which[name], self._where[name]
        if not reports:
            raise InputError(f"nobody has reported in round {name!r} yet")
        there = np.flatnonzero(which != NOBODY)
        before = np.concatenate([[0], np.cumsum([len(report) for report in reports])])
        position = before[which[there]] + where[there]
        first = reports[0].values
        if isinstance(first, Contacts):
            lists = [report.row(number) for report in reports for number in range(len(report))]
            empty = np.empty(0, dtype=np.int64)
            ordered = [empty] * self.slots
            for slot, place in zip(there, position, strict=True):
                ordered[slot] = lists[place]
            return Contacts.of(ordered)
        if sp.issparse(first):
            stacked = sp.vstack([report.values for report in reports], format="csr")
            spread = sp.csr_matrix((np.ones(len(there)), (there, position)), (self.slots, stacked.shape[0]))
            return sp.csr_matrix(spread @ stacked.astype(np.float64))
        stacked = np.concatenate([report.values for report in reports])
        fill = -1 if self.rounds[name].part is Part.LABELS else 0
        found = np.full((self.slots, *stacked.shape[1:]), fill, dtype=stacked.dtype)
        found[there] = stacked[position]
        return found

    def estimate(self) -> Data:
        """Noisy data: unbiased feature rows, reported labels (``-1``: none), reported edges; whatever the rounds contain."""
        import torch
        from torch_geometric.data import Data

        data = Data(num_nodes=self.slots)
        data.edge_index = torch.zeros((2, 0), dtype=torch.int64)
        for name, round in self.rounds.items():
            if not self.reported(name).any():
                continue
            values = self.values(name)
            if round.part is Part.FEATURES:
                rows = np.asarray(round.randomizer.estimate(values))
                rows[~self.reported(name)] = 0.0
                data.x = torch.from_numpy(rows)
            elif round.part is Part.LABELS:
                data.y = torch.from_numpy(values)
            elif isinstance(values, Contacts):
                data.edge_index = torch.from_numpy(np.stack([values.owners, values.targets]))
            else:
                data[name] = torch.from_numpy(values)
        return data

    def __repr__(self) -> str:
        counts = ", ".join(f"{name} {int(self.reported(name).sum())}" for name in self.rounds)
        return f"Collector({self.slots} slots; reports: {counts})"
