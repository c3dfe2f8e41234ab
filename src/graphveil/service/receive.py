"""From the bytes of a request to records that a client can have made, and reasons for the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fastapi import HTTPException

from graphveil.exchange.wire import Defect, Stage, WireRecord, lines_of, parsed, record_of
from graphveil.exchange.wire_reports import Columns

JSON_LINES = ("application/x-ndjson", "application/jsonl", "application/json")
ARROW = ("application/vnd.apache.arrow.stream",)
TWICE = "a record twice in one request"
DEFECT = 422
FEW = 1 << 15  # numbers that are checked one by one, zeros and all


@dataclass(frozen=True)
class Received:
    """The good records with their places in the request, and why others are refused, by place."""

    records: list[WireRecord]
    places: list[int]
    refused: dict[int, str]


def received(content: bytes, kind: str, stage: Stage, most: int, mine: Callable[[str], str | None]) -> Received:
    """Everything in a body; ``mine`` gives a reason why the caller may not speak for an id. 400 if it cannot be read at all."""
    found: list[tuple[int, WireRecord | Defect]] = []
    media = kind.partition(";")[0].strip().lower()
    try:
        if media in ARROW:
            from graphveil.exchange.wire_arrow import arrow_records

            found = list(enumerate(arrow_records(content, stage, most), start=1))
        elif media in JSON_LINES:
            found = [(number, _line(line, stage)) for number, line in lines_of(content, most)]
        else:
            raise HTTPException(415, f"send {JSON_LINES[0]} or {ARROW[0]}")
    except Defect as defect:
        raise HTTPException(400, str(defect)) from None
    if not found:
        raise HTTPException(400, "there is no record in this request")
    return _sorted_out(found, stage, mine)


def _line(line: bytes, stage: Stage) -> WireRecord | Defect:
    try:
        return record_of(parsed(line), stage)
    except Defect as defect:
        return defect


def _sorted_out(
    found: list[tuple[int, WireRecord | Defect]], stage: Stage, mine: Callable[[str], str | None]
) -> Received:
    refused: dict[int, str] = {}
    good: dict[int, WireRecord] = {}
    names: set[str] = set()
    for place, record in found:
        if isinstance(record, Defect):
            refused[place] = str(record)
        elif (reason := mine(record.id)) is not None:
            refused[place] = reason
        elif record.id in names:
            refused[place] = TWICE
        else:
            names.add(record.id)
            good[place] = record
    places = list(good)
    if good:
        few = len(good) * stage.attributes <= FEW
        wrong = Columns.of(list(good.values()), stage, sparse=not few).refused(stage)
        refused |= {places[at]: reason for at, reason in wrong.items()}
    kept = [place for place in places if place not in refused]
    return Received([good[place] for place in kept], kept, refused)
