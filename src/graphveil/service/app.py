"""The service: one FastAPI application over a store, a writer and a runner of jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from graphveil import __version__
from graphveil.service import central_api, collections_api, dashboard, predict_api, reports_api
from graphveil.service.access import Door, Operator
from graphveil.service.intake import Writer
from graphveil.service.jobs import UNFINISHED, Runner
from graphveil.service.limits import Limited
from graphveil.service.migrations import versions
from graphveil.service.predict_api import Models
from graphveil.service.registry import Registry
from graphveil.service.schema import jobs
from graphveil.service.settings import Settings
from graphveil.service.store import Store
from graphveil.service.watch import Metrics, Observed


def create_app(settings: Settings) -> FastAPI:
    """An application that is ready when it has started, and has finished its writing when it has stopped."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        store = Store(settings.folder, settings.url)
        store.upgrade()
        runner = Runner(store)
        app.state.store, app.state.writer = store, Writer(store)
        app.state.registry, app.state.models, app.state.door = Registry(store), Models(store), Door(store, settings)
        if settings.trains:
            runner.start()
        app.state.ready = True
        yield
        app.state.ready = False
        app.state.writer.stop()
        if settings.trains:
            runner.stop()
        store.close()

    app = FastAPI(
        docs_url=None,  # these pages would load scripts from elsewhere
        redoc_url=None,
        title="graphveil",
        version=__version__,
        summary="Local differential privacy as a service",
        lifespan=lifespan,
    )
    app.state.central = None if settings.run is None else central_api.Central(settings.run, settings.data)
    app.state.settings, app.state.metrics, app.state.ready = settings, Metrics(), False
    for part in (collections_api, reports_api, predict_api, central_api, dashboard):
        app.include_router(part.router)

    app.add_middleware(Limited, most=settings.largest_body, seconds=settings.slowest_body)
    app.add_middleware(Observed, metrics=app.state.metrics)

    @app.exception_handler(SQLAlchemyError)
    async def away(request: Request, error: SQLAlchemyError) -> JSONResponse:
        return JSONResponse({"detail": "the store is away: try again"}, 503, {"Retry-After": "2"})

    @app.get("/healthz", tags=["operation"])
    def health() -> dict[str, str]:
        """Whether the process lives."""
        return {"status": "alive", "version": __version__}

    @app.get("/readyz", tags=["operation"], responses={503: {"description": "Not yet, or no longer."}})
    def readiness(response: Response) -> dict[str, str]:
        """Whether the store answers and its tables are of this version."""
        try:
            have, newest = versions(app.state.store.engine)
        except SQLAlchemyError:
            have, newest = None, "unknown"
        ready = app.state.ready and have == newest
        response.status_code = 200 if ready else 503
        return {"status": "ready" if ready else "not ready"}

    @app.get("/metrics", tags=["operation"], response_class=Response)
    def metrics(caller: Operator) -> Response:
        """Counters for Prometheus."""
        with app.state.store.reading() as connection:
            unfinished = connection.execute(select(jobs.c.id).where(jobs.c.state.in_(UNFINISHED))).all()
        app.state.metrics.jobs.set(len(unfinished))
        return Response(app.state.metrics.text(), media_type="text/plain; version=0.0.4")

    return app
