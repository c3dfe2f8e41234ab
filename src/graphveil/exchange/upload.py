"""From a holder to a service: the protocol is read, records are randomised once, reports are sent until they are acknowledged.

Sending is idempotent, so whatever was not acknowledged is sent again, after a pause that doubles and is drawn at random. Only the
standard library speaks HTTP here. A token goes to an encrypted address or to this machine, nowhere else.
Tests: ``tests/service/test_upload.py``, ``tests/exchange/test_sent.py``.
"""

from __future__ import annotations

import http.client
import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np

from graphveil.errors import GraphveilError, InputError, PrivacyError
from graphveil.exchange.broadcast import Broadcast
from graphveil.exchange.memory import FOLDER, Memory
from graphveil.exchange.privatizer import Privatizer
from graphveil.exchange.protocol import Protocol
from graphveil.exchange.records import Batch
from graphveil.exchange.round import check_within
from graphveil.exchange.sent import Sent, laws_of
from graphveil.exchange.wire import FIRST, Defect, Stage
from graphveil.privacy.local import Local, Openness, Part
from graphveil.privacy.noise import Noise

TRIES = 10
FIRST_PAUSE = 0.2
LONGEST_PAUSE = 20.0
TIMEOUT = 60.0
AGAIN = (408, 425, 429, 500, 502, 503, 504)
RECEIPTS = (200, 403, 409, 422)  # answers that say what became of every report
TOGETHER = 500  # records in one request
HERE = ("localhost", "127.0.0.1", "::1")


class ServiceError(GraphveilError):
    """The service refused, or was not there."""


class Service:
    """A collection of a service: ``https://host/v1/collections/NAME``."""

    def __init__(self, url: str, token: str, tries: int = TRIES) -> None:
        self.url, self.token, self.tries = url.rstrip("/"), token, tries
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or "/v1/collections/" not in parts.path:
            raise InputError("--to is the address of a collection: https://host/v1/collections/NAME")
        if parts.scheme == "http" and parts.hostname not in HERE:
            raise InputError(
                "--to is an address without encryption: anybody on the way could read the token; use https"
            )

    def protocol(self) -> Protocol:
        """What the collection asks for."""
        _, content = self._call("")
        return Protocol.from_json(json.loads(content)["protocol"])

    def broadcast(self, protocol: Protocol, name: str) -> Broadcast:
        """What a round hears."""
        _, content = self._call(f"/rounds/{quote(name, safe='')}/broadcast")
        return Broadcast.from_bytes(content, next(round for round in protocol.rounds if round.name == name))

    def send(self, lines: list[bytes], stage: str = FIRST, seeded: bool = False) -> dict[str, Any]:
        """Send reports until they are acknowledged; what became of them."""
        path = f"/reports?stage={quote(stage, safe='')}" + ("&seeded=true" if seeded else "")
        return self._receipt(path, lines)

    def predict(self, lines: list[bytes]) -> dict[str, Any]:
        """The scores of newcomers, from their reports."""
        status, content = self._call("/predict", b"\n".join(lines))
        if status != 200:
            raise ServiceError(_told(content, status))
        found: dict[str, Any] = json.loads(content)
        return found

    def _receipt(self, path: str, lines: list[bytes]) -> dict[str, Any]:
        status, content = self._call(path, b"\n".join(lines))
        found = json.loads(content)
        if status not in RECEIPTS or "refused" not in found:
            raise ServiceError(_told(content, status))
        return dict(found)

    def _call(self, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """One request, again and again while the service is away; errors that will not go away are raised."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/x-ndjson"}
        pause, why = FIRST_PAUSE, ""
        for attempt in range(self.tries):
            if attempt:
                time.sleep(pause * random.uniform(0.5, 1.5))
                pause = min(2 * pause, LONGEST_PAUSE)
            try:
                request = urllib.request.Request(self.url + path, body, headers)
                with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                    return answer.status, answer.read()
            except urllib.error.HTTPError as error:
                content = error.read()
                if error.code not in AGAIN:
                    if body is None or error.code not in RECEIPTS:
                        raise ServiceError(_told(content, error.code)) from None
                    return error.code, content
                why = f"status {error.code}"
                told = error.headers.get("Retry-After", "")
                pause = max(pause, min(float(told), LONGEST_PAUSE)) if told.isdecimal() else pause
            except (urllib.error.URLError, OSError, http.client.HTTPException) as error:
                why = type(error).__name__
        raise ServiceError(f"the service could not be reached in {self.tries} tries ({why}): run the same again later")


@dataclass
class Uploaded:
    """What became of a holder's records."""

    records: int = 0
    drawn: int = 0  # randomised now; the others were remembered
    stored: int = 0
    repeated: int = 0
    outside: int = 0
    refused: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Upload:
    """The records of a holder on their way to one stage of a collection, as far as their owners allow it."""

    job: Privatizer
    stage: Stage
    allowed: Local
    memory: Path | None = None

    def __post_init__(self) -> None:
        check_within(self.allowed, self.stage.rounds)
        for part in Part:
            if self.stage.raw(part) and self.allowed.budget(part) is not Openness.RAW:
                raise PrivacyError(
                    f"the collection asks for {part} in the clear: say --{part}-epsilon raw if that is allowed"
                )

    def run(
        self, service: Service, noise: Noise, progress: Callable[[int], None] | None = None, together: int = TOGETHER
    ) -> Uploaded:
        """Randomise who is new, recall who is not, send all of them."""
        found = Uploaded()
        for lines, drawn, outside in self.lines(noise):
            found.records, found.drawn = found.records + len(lines), found.drawn + drawn
            found.outside += outside
            for start in range(0, len(lines), together):
                told = service.send(lines[start : start + together], self.stage.name, noise.seed is not None)
                found.stored, found.repeated = found.stored + told["stored"], found.repeated + told["repeated"]
                for one in told["refused"]:
                    found.refused[one["reason"]] = found.refused.get(one["reason"], 0) + 1
            if progress is not None:
                progress(found.records)
        if not found.records:
            raise InputError(f"{self.job.records.source.path} has no records: a holder without vertices is left out")
        return found

    def lines(self, noise: Noise) -> Iterator[tuple[list[bytes], int, int]]:
        """Reports as they are sent, batch by batch, with how many were drawn just now and how many attributes clipped."""
        records = self.job.records
        columns = records.columns(self.job.promise)
        if "features" in self.stage.fields and len(columns) != self.stage.attributes:
            raise InputError(
                f"{records.source.path} has {len(columns)} attributes, the collection asks for {self.stage.attributes}"
            )
        memory = Memory(self.memory or records.source.path.parent / FOLDER)
        kept, before, seeded = Sent(memory), 0, noise.seed is not None
        for batch in records.batches(columns):
            digests = memory.digests(batch.ids.to_pylist())
            if len(np.unique(digests)) != len(digests):
                raise InputError(f"{records.source.path} has two records with the same id: every vertex reports once")
            told = kept.recall(self.stage, digests, seeded)
            asked = len(laws_of(self.stage))
            new = np.array([len(known) < asked for _, known in told], dtype=bool)
            outside = 0
            bodies = [dict(one) for one, _ in told]
            if new.any():
                made, outside = self._made(batch.take(new), noise, before)
                places = np.flatnonzero(new).tolist()
                kept.keep(self.stage, digests[new], made, [told[at][1] for at in places], seeded)
                for at, one in zip(places, made, strict=True):
                    bodies[at] = {
                        **one,
                        **bodies[at],
                    }  # what was made before is sent again; the new draw of it never leaves
            ids = batch.ids.to_pylist()
            lines = [
                json.dumps({"id": name, **body}, separators=(",", ":")).encode()
                for name, body in zip(ids, bodies, strict=True)
            ]
            yield lines, int(new.sum()), outside
            before += len(batch)

    def _made(self, batch: Batch, noise: Noise, before: int) -> tuple[list[Mapping[str, Any]], int]:
        from graphveil.exchange.wire_arrow import rows_of

        table, outside = self.job.report(batch, noise, before)
        if outside and self.job.refuse_outside:
            raise InputError(
                f"values near row {before + 1} lie outside the public range: widen --range or let them be clipped"
            )
        made: list[Mapping[str, Any]] = []
        for record in rows_of(table, self.stage):
            if isinstance(record, Defect):
                raise InputError(f"a record near row {before + 1} cannot be sent: {record}")
            made.append(json.loads(record.body()))
        return made, outside


def scores_of(upload: Upload, service: Service, noise: Noise) -> dict[str, Any]:
    """What a service's model says of newcomers who sent these reports."""
    found: dict[str, Any] = {}
    for lines, _, _ in upload.lines(noise):
        for start in range(0, len(lines), TOGETHER):
            told = service.predict(lines[start : start + TOGETHER])
            found = told | {"predictions": found.get("predictions", []) + told["predictions"]}
    return found


def _told(content: bytes, status: int) -> str:
    """What a service said, in one line."""
    try:
        detail = json.loads(content)["detail"]
    except (ValueError, LookupError, TypeError):
        detail = "no reason given"
    return f"the service refused ({status}): {' '.join(str(detail).split())[:300]}"
