"""``POST reports``: holders send what their clients made; every report is answered for by itself."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, Response
from pydantic import BaseModel, Field
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool

from graphveil.exchange.protocol import Protocol
from graphveil.exchange.wire import FIRST
from graphveil.service.access import Holder
from graphveil.service.intake import NOT_YOURS, STATUS, Batch
from graphveil.service.limits import limited_body
from graphveil.service.receive import ARROW, DEFECT, JSON_LINES, Received, received
from graphveil.service.schema import reports
from graphveil.service.stored import broadcast_bytes
from graphveil.service.summary import stage_cost
from graphveil.service.tokens import Caller

router = APIRouter(prefix="/v1/collections/{name}", tags=["reports"])
Stage = Annotated[str, Query(max_length=64, description="'first', or the name of a round that hears a broadcast.")]
BODY = {
    "requestBody": {
        "required": True,
        "description": "Records, one JSON object a line, or an Arrow stream with the columns of a reports file.",
        "content": {
            JSON_LINES[0]: {"schema": {"type": "string"}},
            ARROW[0]: {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
PROBLEM = {"description": "Refused; 'detail' says why.", "content": {"application/json": {}}}
REFUSALS: dict[int | str, dict[str, Any]] = dict.fromkeys((400, 401, 403, 404, 409, 413, 415, 422, 429, 503), PROBLEM)


class Refused(BaseModel):
    """A report that was not taken."""

    line: int = Field(description="Its place in the request, from 1.")
    status: int
    reason: str


class Receipt(BaseModel):
    """What became of the reports of a request; whatever is stored or repeated is on the disk."""

    stored: int
    repeated: int = Field(description="Taken before, byte for byte: counted once.")
    refused: list[Refused]


@router.post("/reports", openapi_extra=BODY, responses=REFUSALS)
async def post_reports(
    name: str,
    request: Request,
    response: Response,
    caller: Holder,
    stage: Stage = FIRST,
    seeded: Annotated[bool, Query(description="Whether a seed made them: no certificate holds then.")] = False,
) -> Receipt:
    """Take reports of the caller's records. The status is that of the first refusal if nothing could be taken."""
    state = request.app.state
    content = await limited_body(request, state.settings.largest_body)
    kind = request.headers.get("content-type", "")
    number, protocol, found = await run_in_threadpool(_read, state, name, stage, content, kind, caller)
    reasons = dict(found.refused)
    counted: dict[str, int] = {}
    for reason in reasons.values():
        counted[reason] = counted.get(reason, 0) + 1
    stages = protocol.stages
    later = stages[stages.index(stage) + 1 :]
    batch = Batch(number, stage, caller.holder or "", seeded, found.records, counted, later)
    try:
        taken = await asyncio.wrap_future(state.writer.put(batch))
    except SQLAlchemyError:
        raise HTTPException(503, "the store is away: send the same again", {"Retry-After": "2"}) from None
    reasons |= {found.places[at]: reason for at, reason in taken.refused.items()}
    refused = [Refused(line=at, status=STATUS.get(why, DEFECT), reason=why) for at, why in sorted(reasons.items())]
    if not taken.stored + taken.repeated:
        response.status_code = refused[0].status
    outcomes = state.metrics.reports
    for outcome, count in (("stored", taken.stored), ("repeated", taken.repeated), ("refused", len(refused))):
        outcomes.labels(protocol.name, outcome).inc(count)
    return Receipt(stored=taken.stored, repeated=taken.repeated, refused=refused)


class Spent(BaseModel):
    """What one record has paid for what it has answered."""

    id: str
    epsilon: float = Field(description="The sum over the stages that it has answered.")
    stages: dict[str, float]
    in_the_clear: list[str] = Field(description="Parts without any epsilon: they were sent as they are.")


@router.get("/spent", responses=REFUSALS)
def get_spent(
    name: str,
    request: Request,
    caller: Holder,
    id: Annotated[list[str], Query(min_length=1, max_length=400, description="Ids of records of the caller's own.")],
) -> list[Spent]:
    """What the caller's own records have paid so far, stage by stage; nobody pays for a label they have not told."""
    state = request.app.state
    number, protocol = state.registry.find(name)
    paid: dict[str, dict[str, float]] = {one: {} for one in id}
    if not all(caller.owns(one) for one in paid):
        raise HTTPException(403, NOT_YOURS)
    table = reports.c
    asked = select(table.record, table.stage, table.body).where(table.collection == number)
    asked = asked.where(table.holder == caller.holder, table.record.in_(list(paid)))
    with state.store.reading() as connection:
        for row in connection.execute(asked):
            labelled = "label" in json.loads(bytes(row.body))
            paid[row.record][row.stage] = stage_cost(protocol, row.stage, labelled=labelled)
    raw = [part.value for part in protocol.promise.raw]
    return [
        Spent(id=one, epsilon=sum(stages.values()), stages=stages, in_the_clear=raw if stages else [])
        for one, stages in paid.items()
    ]


def _read(
    state: Any, name: str, stage: str, content: bytes, kind: str, caller: Caller
) -> tuple[int, Protocol, Received]:
    """What a body says; in a thread, so that others are answered while a large one is read."""
    number, protocol, asked = state.registry.stage(name, stage)
    mine = lambda record: None if caller.owns(record) else NOT_YOURS
    return number, protocol, received(content, kind, asked, state.settings.most_records, mine)


@router.get("/rounds/{stage}/broadcast", responses=REFUSALS, response_class=Response)
def get_broadcast(name: str, stage: str, request: Request, caller: Holder) -> Response:
    """What a round hears: everybody's id and bin, as an Arrow stream."""
    state = request.app.state
    number, protocol = state.registry.find(name)
    if not {*protocol.tells} <= {*protocol.public}:
        raise HTTPException(403, "it would tell in the clear what this collection does not declare public")
    content = broadcast_bytes(state.store, number, stage)
    if content is None:
        raise HTTPException(404, "nobody has been asked this round yet")
    return Response(content, media_type=ARROW[0])
