"""What travels between a client and a service: one record's answers as a line of JSON, or many as an Arrow stream.

    {"id": "p17", "features": {"at": [3, 40], "is": [1, -1]}, "label": 2, "contacts": ["p3", "p9"], "counts": [...], "degree": 4}

``features`` may also be a plain list of numbers. A record says what its stage asks for and nothing else. In Arrow the columns are
those of a reports file (``id``, ``f0, f1, ...``, ``label``, ``contacts`` separated by spaces, ``h0, h1, ...``, ``degree``).
Nothing that arrives is trusted: a line that is not such a record is a :class:`Defect`, and the reason never quotes a value. A
record has one canonical form (:meth:`WireRecord.body`), so that a repeated one is recognised byte for byte.
Tests: ``tests/service/test_refusals.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from graphveil.exchange.round import Round
from graphveil.privacy.local import Local, Openness, Part

SCHEMA = "graphveil/wire/1"
FIRST = "first"  # the stage of all rounds that hear nothing, and of what is sent in the clear
LONGEST_ID = 128
MOST_CONTACTS = 100_000
LARGEST = 3.4e38  # of numbers, in single precision


class Defect(Exception):
    """Why a line is no record of its stage; in words for whoever sent it, without what it said."""


@dataclass(frozen=True)
class Stage:
    """What is asked at one time: rounds, and parts in the clear; ``heard`` is the digest of the broadcast they answer."""

    name: str
    promise: Local
    rounds: tuple[Round, ...]
    attributes: int
    classes: int
    slots: int = 0  # how many the broadcast names
    heard: str = ""

    def round_on(self, part: Part) -> Round | None:
        return next((round for round in self.rounds if round.part is part), None)

    def raw(self, part: Part) -> bool:
        return self.promise.budget(part) is Openness.RAW

    @property
    def tells_lengths(self) -> bool:
        return any(round.randomizer.tells_lengths for round in self.rounds)

    @cached_property
    def fields(self) -> dict[str, bool]:
        """The fields of a record, and whether it must have them; nobody has to have a label."""
        edges = self.round_on(Part.EDGES)
        counts = edges is not None and edges.randomizer.report_width > 0
        found = {"features": True} if self.raw(Part.FEATURES) or self.round_on(Part.FEATURES) else {}
        found |= {"label": False} if self.raw(Part.LABELS) or self.round_on(Part.LABELS) else {}
        found |= {"counts": True} if counts else {}
        found |= {"contacts": True} if self.raw(Part.EDGES) or (edges is not None and not counts) else {}
        return found | ({"degree": True} if self.tells_lengths else {})

    @cached_property
    def count_width(self) -> int:
        edges = self.round_on(Part.EDGES)
        return 0 if edges is None else edges.randomizer.report_width


@dataclass(frozen=True, slots=True)
class WireRecord:
    """One record's answers in a stage; ``at`` and ``values`` are the features that are not 0."""

    id: str
    at: tuple[int, ...] | None = None
    values: tuple[float, ...] | None = None
    label: int | None = None
    contacts: tuple[str, ...] | None = None
    counts: tuple[float, ...] | None = None
    degree: int | None = None

    def body(self) -> bytes:
        """The canonical bytes, without the id."""
        told: dict[str, Any] = {}
        if self.at is not None:
            told["features"] = {"at": self.at, "is": self.values}
        for name in ("label", "contacts", "counts", "degree"):
            value = getattr(self, name)
            if value is not None:
                told[name] = value
        return json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()

    def line(self) -> bytes:
        """As it is sent."""
        return json.dumps({"id": self.id, **json.loads(self.body())}, separators=(",", ":")).encode()


def parsed(line: bytes | str) -> Any:
    """The JSON of a line; NaN, infinities and nests of brackets are defects."""
    try:
        return json.loads(line, parse_constant=_no_constant)
    except Defect:
        raise
    except (ValueError, RecursionError):
        raise Defect("not a line of JSON in UTF-8") from None


def record_of(body: Any, stage: Stage) -> WireRecord:
    """The record that a line says, or a :class:`Defect`."""
    if not isinstance(body, dict):
        raise Defect("not a record: an object with the field 'id'")
    name = identifier(body.get("id"))
    asked = stage.fields
    for key in body:
        if key not in asked and key != "id":
            raise Defect(f"a field that stage {stage.name!r} does not ask for; it asks for: {', '.join(asked)}")
    for key, needed in asked.items():
        if needed and body.get(key) is None:
            raise Defect(f"no field {key!r}, which stage {stage.name!r} asks for")
    at, values = _features(body["features"], stage.attributes) if "features" in asked else (None, None)
    return WireRecord(
        name,
        at,
        values,
        None if body.get("label") is None else _whole(body["label"], "label", 0, stage.classes - 1),
        _contacts(body["contacts"], name) if "contacts" in asked else None,
        _numbers(body["counts"], "counts", stage.count_width) if "counts" in asked else None,
        _whole(body["degree"], "degree", 0, 2**31) if "degree" in asked else None,
    )


def stored_record(name: str, body: Mapping[str, Any]) -> WireRecord:
    """A record from its canonical form, which was checked when it came."""
    features = body.get("features")
    return WireRecord(
        name,
        None if features is None else features["at"],
        None if features is None else features["is"],
        body.get("label"),
        body.get("contacts"),
        body.get("counts"),
        body.get("degree"),
    )


def lines_of(content: bytes, most: int) -> Iterator[tuple[int, bytes]]:
    """The lines that are not empty, with their numbers from 1; no more than ``most``, or a :class:`Defect`."""
    found = 0
    for number, line in enumerate(content.split(b"\n"), start=1):
        if line.strip():
            found += 1
            if found > most:
                raise Defect(f"more than {most} records in one request: send smaller batches")
            yield number, line


def identifier(value: Any) -> str:
    """An id: text without spaces or control characters, of a length that a key may have."""
    plain = isinstance(value, str) and 0 < len(value) <= LONGEST_ID and value.isprintable() and " " not in value
    if not plain:
        raise Defect(f"an id is text of 1 to {LONGEST_ID} printable characters without spaces")
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        raise Defect("an id is text in UTF-8") from None
    return str(value)


def _no_constant(name: str) -> Any:
    raise Defect("a number that is not finite")


def _features(value: Any, width: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
    if isinstance(value, Mapping) and set(value) == {"at", "is"} and isinstance(value["at"], list):
        at = tuple(_whole(one, "features", 0, width - 1) for one in value["at"])
        numbers = _numbers(value["is"], "features", len(at))
        if len(set(at)) != len(at):
            raise Defect("features: a column twice")
        pairs = sorted((place, number) for place, number in zip(at, numbers, strict=True) if number != 0)
    else:
        dense = _numbers(value, "features", width)
        pairs = [(place, number) for place, number in enumerate(dense) if number != 0]
    return tuple(place for place, _ in pairs), tuple(number for _, number in pairs)


def _numbers(value: Any, name: str, width: int) -> tuple[float, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != width:
        raise Defect(f"{name}: not a row of {width} numbers")
    for one in value:
        if isinstance(one, bool) or not isinstance(one, (int, float)) or not abs(one) <= LARGEST:
            raise Defect(f"{name}: a number that is empty or not finite")
    return tuple(map(float, value))


def _whole(value: Any, name: str, least: int, most: int) -> int:
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not abs(value) <= LARGEST
        or value != int(value)
    ):
        raise Defect(f"{name}: not a whole number")
    if not least <= value <= most:
        raise Defect(f"{name}: outside {least}..{most}")
    return int(value)


def _contacts(value: Any, own: str) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MOST_CONTACTS:
        raise Defect(f"contacts: not a list of at most {MOST_CONTACTS} ids")
    found = {identifier(one) for one in value}
    if own in found:
        raise Defect("contacts: a record that lists itself")
    return tuple(sorted(found))
