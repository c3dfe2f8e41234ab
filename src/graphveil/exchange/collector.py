"""The side nobody trusts: it takes reports, keeps rounds apart, and turns them into noisy data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from graphveil.errors import InputError
from graphveil.exchange.randomizers.base import Contacts
from graphveil.exchange.randomizers.checks import reasons
from graphveil.exchange.report import Refusal, Report
from graphveil.exchange.round import Round
from graphveil.privacy.local import Part

NOBODY = -1


class Collector:
    """Reports of public slots 0 .. ``slots`` - 1, from one or several holders, in named rounds.

    A report that its randomizer cannot have made is refused and ``refused`` says why; the others of its holder are kept. A
    report that arrives again byte for byte is counted and otherwise ignored; another report of the same vertex in the same
    round stops everything, because somebody would have paid twice. Whatever is computed here is post-processing.
    """

    def __init__(self, rounds: Iterable[Round], slots: int) -> None:
        self.rounds = {round.name: round for round in rounds}
        self.slots = slots
        self.resent = 0
        self.refused: list[Refusal] = []
        self._reports: dict[str, list[Report]] = {name: [] for name in self.rounds}
        self._which = {name: np.full(slots, NOBODY) for name in self.rounds}
        self._where = {name: np.zeros(slots, dtype=np.int64) for name in self.rounds}

    def accept(self, report: Report) -> None:
        """Take the reports of one holder for one round; none of them if somebody would have paid twice."""
        if report.round not in self.rounds:
            raise InputError(f"there is no round {report.round!r}; the rounds are: {', '.join(self.rounds)}")
        ids = np.asarray(report.ids, dtype=np.int64)
        if ids.size and (ids.min() < 0 or ids.max() >= self.slots):
            raise InputError(f"round {report.round!r}: a report is for a vertex outside 0..{self.slots - 1}")
        if len(np.unique(ids)) != len(ids):
            raise InputError(f"round {report.round!r}: two reports of holder {report.holder!r} are for the same vertex")
        wrong = reasons(self.rounds[report.round].randomizer.check_report(report.values, self.slots))
        if wrong:
            good = np.setdiff1d(np.arange(len(ids)), list(wrong))
            self.refused += [
                Refusal(report.holder, str(ids[at]), report.round, why) for at, why in sorted(wrong.items())
            ]
            if not len(good):
                return
            report, ids = report.take(good), ids[good]
        which, where = self._which[report.round], self._where[report.round]
        known = which[ids] != NOBODY
        for number in np.flatnonzero(known).tolist():
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
        return np.asarray(self._which[name] != NOBODY)

    def values(self, name: str) -> Any:
        """All reports of a round in the order of the slots; slots that sent nothing have zeros (labels: -1)."""
        reports, which, where = self._reports[name], self._which[name], self._where[name]
        if not reports:
            wrong = [refusal for refusal in self.refused if refusal.round == name]
            why = f": {len(wrong)} reports were refused, the first from {wrong[0]}" if wrong else " yet"
            raise InputError(f"nobody has reported in round {name!r}{why}")
        there = np.flatnonzero(which != NOBODY)
        before = np.concatenate([[0], np.cumsum([len(report) for report in reports])])
        position = before[which[there]] + where[there]
        first = reports[0].values
        if isinstance(first, Contacts):
            lists = [report.row(number) for report in reports for number in range(len(report))]
            place_of = dict(zip(there.tolist(), position.tolist(), strict=True))
            return Contacts.of([lists[place_of[slot]] if slot in place_of else [] for slot in range(self.slots)])
        if any(sp.issparse(report.values) for report in reports):
            stacked = sp.vstack([sp.csr_matrix(report.values) for report in reports], format="csr")
            spread = sp.csr_matrix((np.ones(len(there)), (there, position)), (self.slots, stacked.shape[0]))
            return sp.csr_matrix(spread @ stacked.astype(np.float64))
        stacked = first if len(reports) == 1 else np.concatenate([report.values for report in reports])
        if len(there) == self.slots:
            return stacked[position]
        fill = -1 if self.rounds[name].part is Part.LABELS else 0
        found = np.full((self.slots, *stacked.shape[1:]), fill, dtype=stacked.dtype)
        found[there] = stacked[position]
        return found

    def estimate(self) -> dict[str, Any]:
        """What the rounds say, without bias: feature rows, reported labels (-1: none) or lists, noisy counts."""
        found = {name: self.values(name) for name in self.rounds if self.reported(name).any()}
        for name, values in found.items():
            if self.rounds[name].part is Part.FEATURES:
                found[name] = np.array(self.rounds[name].randomizer.estimate(values))
                found[name][~self.reported(name)] = 0.0
        return found
