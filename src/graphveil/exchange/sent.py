"""Reports made for a service, kept by record: whoever is asked again sends the same bytes, from any file, after any crash.

The key is the keyed digest of the id (``memory.py``) and what was drawn: a part of the record, or one round on contacts. With it
stand the randomizer, what it heard and whether a seed drew it; a request under another law is a second look at the record and is
refused, and what a seed has drawn is never sent as if it had not been. A report is on the disk before it leaves. Lookups and
inserts are by key, so time is linear in the records and memory does not grow.
Tests: ``tests/exchange/test_sent.py``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

import numpy as np

from graphveil.errors import PrivacyError
from graphveil.exchange.drawn import Drawn
from graphveil.exchange.memory import SENT, Memory, what_is_drawn
from graphveil.exchange.wire import Stage
from graphveil.privacy.local import Part
from graphveil.privacy.mechanisms import mechanism_to_json

FIELDS = {Part.FEATURES: ("features",), Part.LABELS: ("label",), Part.EDGES: ("counts", "contacts", "degree")}


class Sent:
    """The reports in the folder of a memory."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._drawn = Drawn(memory.path / SENT)

    def recall(
        self, stage: Stage, digests: np.ndarray, seeded: bool = False
    ) -> list[tuple[dict[str, object], frozenset[str]]]:
        """What was made before for each of these records, and what of it: parts, or rounds on contacts."""
        laws = laws_of(stage, seeded)
        each = {what: self._drawn.read(what, digests) for what in laws}
        found = []
        for digest in digests.tolist():
            told: dict[str, object] = {}
            known = [what for what in laws if digest in each[what]]
            for what in known:
                law, body = each[what][digest]
                if law != laws[what]:
                    raise PrivacyError(
                        f"{what} of some records have been randomised already, in another way, after hearing something else, or "
                        f"{'without' if seeded else 'with'} a seed; "
                        f"a second draw would spend the budget again ({self.memory.path} remembers)"
                    )
                told |= json.loads(body)
            found.append((told, frozenset(known)))
        return found

    def keep(
        self,
        stage: Stage,
        digests: np.ndarray,
        bodies: Sequence[Mapping[str, object]],
        known: Sequence[frozenset[str]],
        seeded: bool = False,
    ) -> None:
        """Keep durably what is not ``known`` of each record; an error, and nothing is kept, if a file has it already."""
        rows = []
        for what, law in laws_of(stage, seeded).items():
            new = np.array([what not in one for one in known], dtype=bool)
            self.memory.refuse_again(what, digests[new])
            names = _fields(what)
            for at in np.flatnonzero(new).tolist():
                part = {name: bodies[at][name] for name in names if name in bodies[at]}
                rows.append((what, int(digests[at]), law, json.dumps(part, sort_keys=True, separators=(",", ":"))))
        self._drawn.write(rows)


def laws_of(stage: Stage, seeded: bool = False) -> dict[str, str]:
    """What a stage draws (or sends in the clear), and by which law; ``seeded``: with noise that can be drawn again."""
    found = {}
    for round in stage.rounds:
        heard = stage.heard if round.part is Part.EDGES else ""
        law = [mechanism_to_json(round.randomizer), heard, *(["seeded"] if seeded else [])]
        found[what_is_drawn(round)] = hashlib.sha256(json.dumps(law, sort_keys=True).encode()).hexdigest()
    return found | {f"raw-{part.value}": "raw" for part in Part if stage.raw(part)}


def _fields(what: str) -> tuple[str, ...]:
    return FIELDS[Part(what.removeprefix("raw-").partition("-")[0])]
