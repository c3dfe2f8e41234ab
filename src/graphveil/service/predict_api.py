"""The GNN API: whoever sends a randomised record gets class probabilities back, with the certificate they stand under.

An asker sends what everybody sent, randomised by the same client, without a label; the record is scored and not kept. People
who took part are asked about by id. Who may see a score is decided by the certificate: where it holds, scores may be shown to
anybody; where it does not, an owner asks about its own records and nobody else does.
Tests: ``tests/service/test_service.py``.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from graphveil.errors import GraphveilError
from graphveil.exchange.wire import FIRST
from graphveil.exchange.wire_reports import Columns, WireReports
from graphveil.service.access import Anybody
from graphveil.service.enrolment import holders_of
from graphveil.service.intake import NOT_YOURS
from graphveil.service.jobs import last_done
from graphveil.service.limits import limited_body
from graphveil.service.receive import DEFECT, received
from graphveil.service.reports_api import BODY, REFUSALS, Refused
from graphveil.service.schema import owners
from graphveil.service.store import Store
from graphveil.service.tokens import Caller, Role

router = APIRouter(prefix="/v1/collections/{name}", tags=["predictions"], responses=REFUSALS)
OWN_ONLY = "no promise holds for this model: everybody may ask about their own records only"
LOADED = 4  # models that are kept in memory
MOST_CELLS = 1 << 25  # numbers in one question, zeros included: a model may need all of them at once


class Score(BaseModel):
    id: str
    prediction: int
    probabilities: list[float]


class Scores(BaseModel):
    """Class probabilities, and the certificate of the model that gave them."""

    certificate: str = Field(description="The digest of the certificate: 'GET certificate' has all of it.")
    epsilon: float | None
    holds: bool
    audience: str = Field(description="Who may see these scores, in one sentence.")
    predictions: list[Score]
    refused: list[Refused] = []


class Models:
    """The newest model of each collection, loaded when it is first asked."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._loaded: OrderedDict[int, Any] = OrderedDict()
        self.lock = threading.Lock()

    def newest(self, number: int) -> tuple[Any, str]:
        """The model and the digest of its certificate; 404 if nothing has been trained."""
        from graphveil.runs.load import load_model

        row = last_done(self.store, number)
        if row is None:
            raise HTTPException(404, "nothing has been trained yet")
        with self.lock:
            if row.id not in self._loaded:
                self._loaded[row.id] = load_model(self.store.folder / row.run)
                if len(self._loaded) > LOADED:
                    self._loaded.popitem(last=False)
            model = self._loaded[row.id]
        return model, str(model.certificate.to_json()["digest"])


@router.post("/predict", openapi_extra=BODY)
async def post_predict(name: str, request: Request, caller: Anybody) -> Scores:
    """Score people who came after training from their own randomised records; nothing of it is kept."""
    state = request.app.state
    content = await limited_body(request, state.settings.largest_question)
    return await run_in_threadpool(_asked, state, name, content, request.headers.get("content-type", ""), caller)


@router.get("/predictions")
def get_predictions(
    name: str,
    request: Request,
    caller: Anybody,
    id: Annotated[list[str], Query(min_length=1, max_length=1000, description="Ids of people who took part.")],
) -> Scores:
    """Scores of people who took part, by id."""
    state = request.app.state
    number, _ = state.registry.find(name)
    model, digest = state.models.newest(number)
    if not model.certificate.holds:
        _only_own(state.store, number, caller, id)
    slots = {one: slot for slot, one in enumerate(model.ids)}
    if any(one not in slots for one in id):
        raise HTTPException(404, "somebody of them did not take part when this model was trained")
    with state.models.lock:
        rows = model.predict_proba()[[slots[one] for one in id]]
    return _scores(model, digest, id, rows)


def _asked(state: Any, name: str, content: bytes, kind: str, caller: Caller) -> Scores:
    number, protocol = state.registry.find(name)
    model, digest = state.models.newest(number)
    if not model.certificate.holds and caller.role is not Role.HOLDER:
        raise HTTPException(403, OWN_ONLY)
    later = protocol.stages[1:]
    if len(later) > 1:
        raise HTTPException(409, "this collection asks several rounds one after the other: score newcomers from files")
    _, _, stage = state.registry.stage(name, later[0] if later else FIRST, asking=True)
    mine = lambda record: None if caller.owns(record) else NOT_YOURS
    found = received(content, kind, stage, state.settings.most_records, mine)
    refused = [Refused(line=at, status=DEFECT, reason=why) for at, why in sorted(found.refused.items())]
    if not found.records:
        raise HTTPException(DEFECT, refused[0].reason)
    if len(found.records) * stage.attributes > MOST_CELLS:
        raise HTTPException(413, f"ask about at most {MOST_CELLS // stage.attributes} people at once")
    if not model.certificate.holds:  # a score tells about whoever is named as a contact
        named = {one for record in found.records for one in record.contacts or ()}
        _only_own(state.store, number, caller, sorted(named & {*model.ids}))
    reports = WireReports.of(Columns.of(found.records, stage), stage, caller.holder or "asker", False)
    try:
        with state.models.lock:
            files = model.newcomers([reports])
            rows = model.predict_proba(files)
    except GraphveilError as error:
        raise HTTPException(DEFECT, " ".join(str(error).split())) from None
    return _scores(model, digest, list(files.ids[files.known :]), rows, refused)


def _scores(model: Any, digest: str, ids: list[str], rows: Any, refused: list[Refused] | None = None) -> Scores:
    told = zip(ids, rows.tolist(), strict=True)
    certificate = model.certificate
    return Scores(
        certificate=digest,
        epsilon=certificate.epsilon,
        holds=certificate.holds,
        audience=model.audience("charge"),
        predictions=[Score(id=one, prediction=row.index(max(row)), probabilities=row) for one, row in told],
        refused=refused or [],
    )


def _only_own(store: Store, number: int, caller: Caller, ids: list[str]) -> None:
    """403 unless all of these records are the caller's own."""
    if caller.role is not Role.HOLDER or not all(caller.owns(one) for one in ids):
        raise HTTPException(403, OWN_ONLY)
    with store.reading() as connection:
        known = holders_of(connection, owners, number, ids)
        own = {record for record, holder in known if holder == caller.holder}
    if own != set(ids):
        raise HTTPException(403, OWN_ONLY)
