"""Collections and their training jobs: created by an operator, trained by an analyst, readable by anybody as far as public."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Path, Request
from pydantic import BaseModel, ConfigDict, Field

from graphveil.errors import GraphveilError
from graphveil.service.access import Analyst, Operator, Public
from graphveil.service.jobs import Busy, cancel_job, create_job, jobs_of, last_done, read_job
from graphveil.service.planning import Wanted, planned
from graphveil.service.reports_api import REFUSALS

router = APIRouter(prefix="/v1/collections", tags=["collections"], responses=REFUSALS)
Budget = Annotated[float | str, Field(description="An epsilon, 'raw' (in the clear) or 'withheld' (never sent).")]
Number = Annotated[int, Path(ge=1, le=2**31 - 1)]


class NewCollection(BaseModel):
    """What a collection is to ask, and who will learn from it."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=128)]
    method: Annotated[str, Field(max_length=64, description="A local method: 'graphveil methods'.")]
    classes: Annotated[int, Field(ge=2, le=10_000)]
    attributes: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    features: Budget = "withheld"
    labels: Budget = "withheld"
    edges: Budget = "withheld"
    delta: Annotated[float, Field(ge=0, lt=1)] = 0.0
    relation: Annotated[str | None, Field(max_length=16)] = None
    directed: bool = False
    mean_degree: Annotated[float | None, Field(ge=0, le=1e9)] = None
    options: dict[str, Any] = Field(default_factory=dict)
    public: Annotated[
        list[Literal["features", "labels"]],
        Field(max_length=2, description="Parts in the clear that all who take part may be told: declared public."),
    ] = []
    open: bool = Field(False, description="Records need not be enrolled: whoever of the holders is first owns one.")


class CollectionState(BaseModel):
    name: str
    state: str
    protocol: dict[str, Any]


class NewJob(BaseModel):
    """``seed`` is for public coins only: the noise is the holders'."""

    model_config = ConfigDict(extra="forbid")

    seed: Annotated[int | None, Field(ge=0, le=2**31 - 1)] = None


class Job(BaseModel):
    id: int
    state: str = Field(description="queued, running, waiting (for a round), done, failed, cancelled or withdrawn")
    step: str | None
    done: int
    total: int
    message: str | None
    created: float
    finished: float | None
    attempts: int
    figures: dict[str, Any] | None = Field(description="How good the model is, by released labels.")

    @classmethod
    def of(cls, row: Any) -> Job:
        told = {name: getattr(row, name) for name in cls.model_fields if name != "figures"}
        return cls(**told, figures=None if row.figures is None else json.loads(row.figures))


@router.get("", dependencies=[Public])
def get_collections(request: Request) -> list[CollectionState]:
    """All collections with their public protocols."""
    found = request.app.state.store.collections()
    return [CollectionState(name=one.name, state=state, protocol=one.to_json()) for _, one, state in found]


@router.post("", status_code=201)
def post_collection(body: NewCollection, request: Request, caller: Operator) -> CollectionState:
    """Start a collection."""
    try:
        protocol = planned(Wanted(**body.model_dump(exclude={"open"})))
        request.app.state.store.create_collection(protocol, open_to_all=body.open)
    except GraphveilError as error:
        raise HTTPException(409 if "already" in str(error) else 422, str(error)) from None
    return CollectionState(name=protocol.name, state="open", protocol=protocol.to_json())


@router.get("/{name}", dependencies=[Public])
def get_collection(name: str, request: Request) -> CollectionState:
    """The public protocol of a collection."""
    number, protocol = request.app.state.registry.find(name)
    state = {one: state for one, _, state in request.app.state.store.collections()}[number]
    return CollectionState(name=protocol.name, state=state, protocol=protocol.to_json())


@router.post("/{name}/close")
def close_collection(name: str, request: Request, caller: Operator) -> CollectionState:
    """Take no further reports; those that are there stay."""
    number, protocol = request.app.state.registry.find(name)
    request.app.state.store.close_collection(number)
    return CollectionState(name=protocol.name, state="closed", protocol=protocol.to_json())


@router.post("/{name}/jobs", status_code=202)
def post_job(name: str, body: NewJob, request: Request, caller: Analyst) -> Job:
    """Train in the background on what has been reported so far."""
    store = request.app.state.store
    number, _ = request.app.state.registry.find(name)
    try:
        made = create_job(store, number, body.seed)
    except Busy as error:
        raise HTTPException(409, str(error)) from None
    return Job.of(read_job(store, made))


@router.get("/{name}/jobs")
def get_jobs(name: str, request: Request, caller: Analyst) -> list[Job]:
    """The training jobs, the newest first."""
    number, _ = request.app.state.registry.find(name)
    return [Job.of(row) for row in jobs_of(request.app.state.store, number)]


@router.get("/{name}/jobs/{job}")
def get_job(name: str, job: Number, request: Request, caller: Analyst) -> Job:
    """How far a job is."""
    return Job.of(_job(request, name, job))


@router.post("/{name}/jobs/{job}/cancel")
def post_cancel(name: str, job: Number, request: Request, caller: Analyst) -> Job:
    """Stop a job that is not finished."""
    _job(request, name, job)
    if not cancel_job(request.app.state.store, job):
        raise HTTPException(409, "this job is finished")
    return Job.of(read_job(request.app.state.store, job))


@router.get("/{name}/certificate", dependencies=[Public])
def get_certificate(name: str, request: Request) -> dict[str, Any]:
    """The certificate of the newest model: public."""
    number, _ = request.app.state.registry.find(name)
    row = last_done(request.app.state.store, number)
    if row is None:
        raise HTTPException(404, "nothing has been trained yet")
    found: dict[str, Any] = json.loads(row.certificate)
    return found


def _job(request: Request, name: str, job: int) -> Any:
    number, _ = request.app.state.registry.find(name)
    row = read_job(request.app.state.store, job)
    if row is None or row.collection != number:
        raise HTTPException(404, "there is no such job")
    return row
