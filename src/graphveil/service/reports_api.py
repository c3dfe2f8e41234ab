"""``POST reports``: holders send what their clients made; every report is answered for by itself."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, Response
from pydantic import BaseModel, Field
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool

from graphveil.exchange.wire import FIRST
from graphveil.service.access import Anybody, Holder
from graphveil.service.intake import NOT_YOURS, STATUS, Batch
from graphveil.service.limits import limited_body
from graphveil.service.receive import ARROW, DEFECT, JSON_LINES, received
from graphveil.service.stored import broadcast_bytes

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
    registry = state.registry
    if not registry.has(name, stage):
        await run_in_threadpool(registry.stage, name, stage)
    number, protocol, asked = registry.stage(name, stage)
    mine = lambda record: None if caller.owns(record) else NOT_YOURS
    kind = request.headers.get("content-type", "")
    found = received(content, kind, asked, state.settings.most_records, mine)
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


@router.get("/rounds/{stage}/broadcast", responses=REFUSALS, response_class=Response)
def get_broadcast(name: str, stage: str, request: Request, caller: Anybody) -> Response:
    """What a round hears: everybody's id and bin, as an Arrow stream."""
    state = request.app.state
    number, _ = state.registry.find(name)
    content = broadcast_bytes(state.store, number, stage)
    if content is None:
        raise HTTPException(404, "nobody has been asked this round yet")
    return Response(content, media_type=ARROW[0])
