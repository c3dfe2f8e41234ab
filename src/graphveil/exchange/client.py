"""The side that is trusted by its owner: it randomises once per round and sends the same bytes whenever it is asked again.

*Memoisation.* Asking the same client twice for fresh noise would let a collector average the noise away: two reports cost
2 epsilon. A client therefore keeps every report it has made; a repeated request returns the stored one. A request for the
same round under another broadcast would be a second look at the same record and is refused. A record that its randomizer cannot
read (a value missing or not finite, another width, a class or a contact that does not exist) is refused in words that do not
quote it.
Tests: ``tests/exchange/test_client_collector.py``, ``tests/exchange/test_client_records.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from graphveil.errors import InputError, PrivacyError
from graphveil.exchange.randomizers.base import Contacts, plain_numbers, whole_numbers
from graphveil.exchange.report import Report, digest_of
from graphveil.exchange.round import Round
from graphveil.files import draft
from graphveil.privacy.local import Part
from graphveil.privacy.noise import Noise

NO_LABEL = -1


class Client:
    """The records of one vertex, or of all vertices of one holder: feature rows, labels (``-1``: none, publicly so), contacts.

    ``ids``: their public slots. Nothing but ``rounds`` is answered. ``memory``: a folder that keeps the reports, so that a
    restarted client repeats them.
    """

    def __init__(
        self,
        ids: Any,
        records: Mapping[Part, Any],
        rounds: Iterable[Round],
        noise: Noise,
        holder: str = "all",
        memory: str | Path | None = None,
    ) -> None:
        self.ids = np.atleast_1d(np.asarray(ids, dtype=np.int64))
        self.holder = holder
        self.rounds = {round.name: round for round in rounds}
        self.memory = None if memory is None else Path(memory)
        self._noise = noise
        self._records = {part: _aligned(part, record, len(self.ids)) for part, record in records.items()}
        self._sent: dict[str, tuple[Report, str]] = {}
        self.clipped = 0  # attributes outside the public range so far: for the owner's eyes, never sent
        if not len(self.ids):
            raise InputError(f"holder {holder!r} has no vertices: leave it out")
        if len(np.unique(self.ids)) != len(self.ids):
            raise InputError(f"holder {holder!r} has two records for the same vertex: keep one")

    def report(self, name: str, broadcast: Any = None) -> Report:
        """The report of this round: made at the first request, repeated at every later one."""
        if name not in self.rounds:
            raise PrivacyError(f"this client takes part in {', '.join(self.rounds)}; it does not answer {name!r}")
        heard = digest_of(broadcast)
        if name not in self._sent and not self._recall(name):
            self._remember(self._randomize(self.rounds[name], broadcast), heard)
        report, before = self._sent[name]
        if before != heard:
            raise PrivacyError(
                f"round {name!r} has been answered under another broadcast; a second answer would spend the budget twice: "
                "use the stored report, or plan one more round"
            )
        return report

    def _randomize(self, round: Round, broadcast: Any) -> Report:
        if round.part not in self._records:
            raise PrivacyError(f"round {round.name!r} needs {round.part}, which this client withholds")
        records, ids = self._records[round.part], self.ids
        if round.part is Part.LABELS:
            labelled = records != NO_LABEL
            records, ids = records[labelled], ids[labelled]
        if round.part is Part.EDGES and broadcast is not None:
            records.within(len(broadcast))
        self.clipped += round.randomizer.outside(records)
        values = round.randomizer.randomize(round.randomizer.own(records, ids), broadcast, self._noise)
        return Report(round.name, ids, values, self.holder)

    def _remember(self, report: Report, heard: str) -> None:
        """Keep the report durably before anybody sees it."""
        if self.memory is not None:
            self.memory.mkdir(parents=True, exist_ok=True)
            with draft(self.memory / f"{report.round}.report") as beside:
                head = json.dumps({"heard": heard}).encode()
                beside.write_bytes(len(head).to_bytes(8, "little") + head + report.to_bytes())
        self._sent[report.round] = (report, heard)

    def _recall(self, name: str) -> bool:
        path = None if self.memory is None else self.memory / f"{name}.report"
        if path is None or not path.exists():
            return False
        content = path.read_bytes()
        size = int.from_bytes(content[:8], "little")
        report = Report.from_bytes(content[8 + size :])
        if not np.isin(report.ids, self.ids).all():
            raise InputError(f"{path} holds reports of other vertices: give this client a folder of its own")
        self._sent[name] = (report, json.loads(content[8 : 8 + size])["heard"])
        return True


def _aligned(part: Part, record: Any, vertices: int) -> Any:
    """Records of a part, one per vertex."""
    found: Any
    if part is Part.EDGES:
        found = Contacts.of([record] if isinstance(record, np.ndarray) else record)
    elif part is Part.LABELS:
        found = np.atleast_1d(whole_numbers(record, "a label"))
    else:
        found = sp.csr_matrix(record) if sp.issparse(record) else np.atleast_2d(plain_numbers(record))
    count = found.shape[0] if sp.issparse(found) else len(found)
    if count != vertices:
        raise InputError(f"{part}: {count} records for {vertices} vertices")
    return found
