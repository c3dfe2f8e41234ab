"""A central model behind the same door: a person gets their own prediction, an analyst what was paid for as public.

The rules are the certificate's (``Model.predict_proba`` with its accesses); nothing is decided here a second time. A person's
token is for this run and for one record, which is their id in the data. No route trains or releases anything: predictions follow
from what the run has paid for, so no budget is charged.
Tests: ``tests/service/test_central.py``.
"""

from __future__ import annotations

import threading
import warnings
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request
from pydantic import BaseModel

from graphveil.errors import DataWarning, GraphveilError, InputError, PrivacyError
from graphveil.service.access import Person, Public, RunAnalyst
from graphveil.service.predict_api import Score, Scores
from graphveil.service.reports_api import REFUSALS
from graphveil.service.tokens import run_scope

router = APIRouter(prefix="/v1/run", tags=["central model"], responses=REFUSALS)


class Central:
    """A saved run and the graph it was trained on; both are read when somebody first asks."""

    def __init__(self, run: Path, data: str | None) -> None:
        self.run, self.data = run, data
        self.scope = run_scope(run)
        self.lock = threading.Lock()
        if not (run / "certificate.json").exists():
            raise InputError(f"{run} holds no run: give the folder that 'train --out' wrote")

    @cached_property
    def model(self) -> Any:
        from graphveil.runs.load import load_model

        return load_model(self.run)

    @cached_property
    def graph(self) -> Any:
        from graphveil.graph import load_dataset
        from graphveil.methods.model import as_graph

        if self.data is None:
            raise InputError("the service was started without --data: it has nobody's own record")
        seed = self.model.certificate.seed
        data = load_dataset(
            self.data, seed=0 if seed is None else seed, split="none"
        )  # a generated graph has a seed, too
        return as_graph(data, need_training=False)

    @cached_property
    def ids(self) -> list[str]:
        named = getattr(self.graph, "ids", None) if self.data is not None else self.model.ids
        count = self.model.certificate.facts.nodes
        return list(map(str, range(count) if named is None else named))

    @cached_property
    def places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.ids)}

    @cached_property
    def own_rows(self) -> Any:
        """Everybody's own prediction; each row is for that person alone."""
        return self._probabilities("own-row")

    @cached_property
    def public_rows(self) -> Any:
        """What anybody may see; :class:`PrivacyError` if nothing was paid for."""
        return self._probabilities("charge")

    def _probabilities(self, access: str) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # the data are those of training, in that order
            return self.model.predict_proba(None if self.data is None else self.graph, access)

    def scores(self, rows: Any, names: list[str], access: str) -> Scores:
        certificate = self.model.certificate
        told = [(name, rows[self.places[name]].tolist()) for name in names]
        return Scores(
            certificate=str(certificate.to_json()["digest"]),
            epsilon=certificate.epsilon,
            holds=certificate.holds,
            audience=self.model.audience(access),
            predictions=[Score(id=name, prediction=row.index(max(row)), probabilities=row) for name, row in told],
        )


class RunState(BaseModel):
    certificate: dict[str, Any]
    words: list[str]


def _central(request: Request) -> Central:
    found: Central | None = request.app.state.central
    if found is None:
        raise HTTPException(404, "this service has no central model")
    return found


@router.get("", dependencies=[Public])
def get_run(request: Request) -> RunState:
    """The certificate of the model, also in plain words."""
    from graphveil.runs.load import read_certificate

    certificate = read_certificate(_central(request).run)
    return RunState(certificate=certificate.to_json(), words=str(certificate).splitlines())


@router.get("/prediction")
def get_own(request: Request, caller: Person) -> Scores:
    """The caller's own prediction, and nobody else's."""
    central = _central(request)
    assert caller.record is not None  # every token of this role names one
    try:
        with central.lock:
            if not central.model.certificate.holds:
                raise HTTPException(403, central.model.audience("own-row"))
            if caller.record not in central.places:
                raise HTTPException(404, "this person is not in the data")
            return central.scores(central.own_rows, [caller.record], "own-row")
    except GraphveilError as error:
        raise HTTPException(409, " ".join(str(error).split())) from None


@router.get("/predictions")
def get_public(
    request: Request,
    caller: RunAnalyst,
    id: Annotated[list[str] | None, Query(max_length=1000, description="Default: everybody.")] = None,
) -> Scores:
    """Predictions that were paid for as public; 403 where none were."""
    central = _central(request)
    try:
        with central.lock:
            if not central.model.certificate.holds:
                raise HTTPException(403, central.model.audience("own-row"))
            rows = central.public_rows
            names = central.ids if id is None else id
            if any(name not in central.places for name in names):
                raise HTTPException(404, "somebody of them is not in the data")
            return central.scores(rows, names, "charge")
    except PrivacyError as error:
        raise HTTPException(403, " ".join(str(error).split())) from None
    except GraphveilError as error:
        raise HTTPException(409, " ".join(str(error).split())) from None
