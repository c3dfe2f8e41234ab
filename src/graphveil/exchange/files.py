"""Answers from files: the reports that holders made with ``graphveil privatize``, merged by id.

Slots are the ids of everybody who reported, as numbers where all are numbers, else as text. Reports that cannot be, randomised or
raw, are refused one by one when the files are opened; a file in which a part has no good report is refused. A round that the
files do not contain stops the server with :class:`RoundNotAnswered`, which carries the broadcast that the next round needs.
Tests: ``tests/cli/test_privatize.py``, ``tests/cli/test_train_reports.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from graphveil.errors import GraphveilError, InputError, PrivacyError
from graphveil.exchange.broadcast import Broadcast, split_ids
from graphveil.exchange.client import NO_LABEL
from graphveil.exchange.randomizers import Contacts, checks
from graphveil.exchange.randomizers.base import SampledRows
from graphveil.exchange.randomizers.checks import Defects, reasons
from graphveil.exchange.report import Refusal, Report
from graphveil.exchange.reports_file import ReportsFile
from graphveil.exchange.round import Round
from graphveil.privacy.local import SEEDED_REPORTS, Local, Openness, Part

COLLECTED = "collected from reports: its labels and features are noisy already"
ONCE = "every client used the randomizer it names and reports once"


class RoundNotAnswered(GraphveilError):
    """A round that nobody has answered yet, and the broadcast that asks for it."""

    def __init__(self, round: Round, broadcast: Broadcast | None) -> None:
        self.round, self.broadcast = round, broadcast
        super().__init__(f"nobody has answered round {round.name!r} yet")


class Files:
    """Reports of one or several holders, in one or several rounds.

    ``known``: the ids of a model's slots, if these reports are of newcomers who ask it: they come in slots behind them.
    """

    reads_everybody = False

    def __init__(self, paths: Sequence[Path | ReportsFile], known: Sequence[str] = ()) -> None:
        if not paths:
            raise InputError("give at least one file of reports")
        self._files = [path if isinstance(path, ReportsFile) else ReportsFile.read(path) for path in paths]
        self.rounds, self.promise = self._merged()
        names = {name for file in self._files for name in file.ids}
        again = next((name for name in known if name in names), None)
        if again is not None:
            raise InputError(f"{again!r} took part in training: ask for its score by id, a second report is not taken")
        self.known = len(known)
        self.ids = (*known, *sorted(names, key=int if all(n.isdecimal() and len(n) < 19 for n in names) else None))
        self._slot = {name: number for number, name in enumerate(self.ids)}
        self._read = np.ones(len(self.ids), dtype=bool)  # whose labels are read
        self.refused: list[Refusal] = []
        self._good: dict[tuple[Path, Part], np.ndarray] = {}
        for file in {file.path: file for file in self._files}.values():  # a file that is given twice is checked once
            self._good |= {(file.path, part): self._checked(file, part) for part in _told(file)}

    @property
    def classes(self) -> int | None:
        return next((file.classes for file in self._files if file.classes is not None), None)

    @property
    def attributes(self) -> int:
        return max(file.attributes for file in self._files)

    @property
    def holders(self) -> Mapping[str, int]:
        """How many different vertices each holder reports, over all its files."""
        known: dict[str, set[str]] = {}
        for file in self._files:
            known.setdefault(file.holder, set()).update(file.ids)
        return {holder: len(vertices) for holder, vertices in known.items()}

    @property
    def labelled(self) -> np.ndarray:
        """Which slots have sent a label, randomised or raw."""
        found = np.zeros(len(self.ids), dtype=bool)
        for file in self._files:
            if Part.LABELS in _told(file):
                found[self._slots(file)[self._good[file.path, Part.LABELS]]] = True
        return found & self._read

    @property
    def accepted(self) -> int:
        """How many reports of all rounds, or in the clear, are good."""
        return sum(len(rows) for rows in self._good.values())

    @property
    def remarks(self) -> tuple[str, ...]:
        """For the certificate: what its readers have to know about the reports."""
        found = [ONCE, SEEDED_REPORTS] if any(file.seeded for file in self._files) else [ONCE]
        if self.refused:
            every = self.accepted + len(self.refused)
            found.append(f"{len(self.refused)} of {every} reports were refused: no client can have made them")
        return tuple(found)

    def with_labels_of(self, slots: np.ndarray) -> Files:
        """The same reports without the labels of all other slots: a vertex to be scored must not have told its own."""
        found = copy(self)
        found._read = slots
        return found

    def check(self, asked: Mapping[str, Round]) -> None:
        """An error if the files have a round that is not asked, or was answered otherwise: its cost would be left out."""
        for file in self._files:
            for name in file.rounds:
                if name not in asked:
                    raise InputError(
                        f"{file.path} answers round {name!r}, which the method does not ask: leave the file out, or give "
                        "'graphveil privatize' the method's plan (--plan)"
                    )
                self._check(file, asked[name])

    def _check(self, file: ReportsFile, round: Round) -> None:
        made, _ = file.rounds[round.name]
        if made.randomizer != round.randomizer:
            raise InputError(
                f"{file.path}: round {round.name!r} was answered with {made.randomizer}, the method asks for "
                f"{round.randomizer}: give 'graphveil privatize' the method's plan (--plan)"
            )

    def answer(self, round: Round, broadcast: Any) -> Iterator[Report]:
        heard = None if broadcast is None else Broadcast.of(self.ids, broadcast, round)
        answered = [file for file in self._files if round.name in file.rounds]
        if not answered:
            raise RoundNotAnswered(round, heard)
        for file in answered:
            self._check(file, round)
            made, listened = file.rounds[round.name]
            if heard is not None and listened != heard.digest:
                raise InputError(f"{file.path}: round {round.name!r} was answered after hearing another broadcast")
            yield self.report(file, made)

    def answer_with_everybody(self, round: Round, broadcast: Any) -> Contacts:
        raise PrivacyError(f"round {round.name!r} reads everybody's lists: no client could answer it, no file has it")

    def reports(self) -> Iterator[tuple[Path, Report]]:
        """All reports of all rounds, each with the file it stands in."""
        for file in self._files:
            for round, _ in file.rounds.values():
                yield file.path, self.report(file, round)

    def report(self, file: ReportsFile, round: Round) -> Report:
        """The good answers of one file in one round."""
        rows = self._good[file.path, round.part]
        if round.part is Part.LABELS:
            rows = rows[self._read[self._slots(file)[rows]]]
        values = self._values(file, round.part)
        kept = values.take(rows) if isinstance(values, Contacts) else values[rows]
        return Report(round.name, self._slots(file)[rows], kept, file.holder)

    def in_the_clear(self, part: Part) -> Any:
        files = [(file, self._good[file.path, part]) for file in self._files if file.raw(part)]
        if part is Part.EDGES:
            lists = [(self._slots(file)[rows], self._values(file, part).take(rows)) for file, rows in files]
            arcs = [np.stack([slots[own.owners], own.targets]) for slots, own in lists]
            return np.unique(np.concatenate([np.zeros((2, 0), dtype=np.int64), *arcs], axis=1), axis=1)
        labels = part is Part.LABELS
        found = np.full(len(self.ids), NO_LABEL) if labels else np.zeros((len(self.ids), self.attributes))
        told = np.zeros(len(self.ids), dtype=bool)
        for file, rows in files:
            slots, values = self._slots(file)[rows], self._values(file, part)[rows]
            again = told[slots]
            if not np.array_equal(found[slots[again]], values[again]):
                raise InputError(f"{file.path}: a vertex sent other {part} in an earlier file: which of the two is it?")
            found[slots], told[slots] = values, True
        return np.where(self._read, found, NO_LABEL) if labels else found

    def lengths(self) -> np.ndarray | None:
        told = [file for file in self._files if file.lengths_in_the_clear]
        if not told:
            return None
        degrees = np.zeros(len(self.ids), dtype=np.int64)
        for file in told:
            rows = self._good[file.path, Part.EDGES]
            degrees[self._slots(file)[rows]] = file.lengths()[rows]
        return degrees

    def _checked(self, file: ReportsFile, part: Part) -> np.ndarray:
        """The rows with a good report on a part; the others are refused, one by one."""
        values, asked = self._values(file, part), file.answered(part)
        there = np.arange(len(file.ids))
        if part is Part.LABELS:  # nobody has to have one
            there = np.flatnonzero(~file.labels().mask)
            values = values[there]
        wrong = reasons(self._defects(file, part, values))
        name = asked[0] if asked else part.value
        refused = [Refusal(str(file.path), file.ids[there[at]], name, why) for at, why in sorted(wrong.items())]
        if refused and len(refused) == len(there):
            raise InputError(f"{refused[0]}; none of its {len(there)} reports on {part} is good")
        self.refused += refused
        return np.delete(there, list(wrong))

    def _defects(self, file: ReportsFile, part: Part, values: Any) -> Defects:
        for name in file.answered(part):
            yield from file.rounds[name][0].randomizer.check_report(values, len(self.ids))
        if file.raw(part) and part is Part.FEATURES:
            yield from checks.numbers(values, file.attributes)
        if file.raw(part) and part is Part.LABELS:
            yield from checks.classes(values, file.classes or 0)
        if file.raw(part) and part is Part.EDGES:
            yield from checks.lists(values, len(self.ids))
        if part is Part.EDGES and file.lengths_in_the_clear:
            yield (file.lengths() < 0) | (file.lengths() >= len(self.ids)), "an impossible length of its contact list"

    def _values(self, file: ReportsFile, part: Part) -> Any:
        """What a file says about a part, row by row, unchecked."""
        if part is Part.LABELS:
            return file.labels().data
        if part is Part.FEATURES:
            rows = file.numbers("f")
            sampled = any(isinstance(file.rounds[n][0].randomizer, SampledRows) for n in file.answered(part))
            return sp.csr_matrix(rows) if sampled else rows.toarray() if sp.issparse(rows) else rows
        return file.numbers("h") if file.contacts is None else self._lists(file)

    def _slots(self, file: ReportsFile) -> np.ndarray:
        return np.array([self._slot[name] for name in file.ids], dtype=np.int64)

    def _lists(self, file: ReportsFile) -> Contacts:
        """The contacts of every record as sorted slots; -1 for somebody who has not reported."""
        owners, names = split_ids(file.contacts)
        targets = np.array([self._slot.get(name, -1) for name in names.to_pylist()], dtype=np.int64)
        return Contacts.of_pairs(owners, targets, len(file.ids)).sorted()

    def _merged(self) -> tuple[dict[str, Round], Local]:
        """All rounds, and the promise of all files together; a round must be answered in the same way by everybody."""
        kept: dict[str, tuple[Path, Any]] = {}
        rounds: dict[str, Round] = {}
        for file in self._files:
            rounds |= {name: made for name, (made, _) in file.rounds.items()}
            answers: dict[str, Any] = {n: [one.release(0).to_json(), heard] for n, (one, heard) in file.rounds.items()}
            answers |= {f"raw {part}": "" for part in Part if file.raw(part)}
            answers |= {"number of attributes": file.attributes} if Part.FEATURES in _told(file) else {}
            answers |= {"number of classes": file.classes} if file.classes is not None else {}
            for name, how in answers.items():
                first, before = kept.setdefault(name, (file.path, how))
                if before != how:
                    raise InputError(f"{file.path} was made under another promise or other randomizers than {first}")
        budgets: dict[str, Any] = {}
        for part in Part:
            asked = {names: f.promise.budget(part) for f in self._files if (names := f.answered(part))}
            budgets[part.value] = Openness.RAW if f"raw {part}" in kept else sum(asked.values()) or Openness.WITHHELD
        delta = sum(round.randomizer.delta for round in rounds.values())
        relations = {round.randomizer.entry_relation for round in rounds.values() if round.part is Part.EDGES}
        if len(relations) > 1:
            raise InputError(f"the files answer rounds on contact lists under the relations {' and '.join(relations)}")
        return rounds, Local(**budgets, delta=delta, relation=next(iter(relations), None))


def _told(file: ReportsFile) -> list[Part]:
    """The parts that a file reports, randomised or raw."""
    return [part for part in Part if file.raw(part) or file.answered(part)]
