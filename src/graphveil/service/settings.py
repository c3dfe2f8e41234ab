"""How a service runs: where it keeps things and what it allows anybody to do to it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """``url``: PostgreSQL instead of SQLite in ``folder``. Rates are requests per second of one token (or address)."""

    folder: Path
    url: str | None = None
    run: Path | None = None  # a central model to be served
    data: str | None = None  # the graph it was trained on, for everybody's own prediction
    largest_body: int = 8 << 20
    most_records: int = 10_000
    rate: float = 200.0
    burst: float = 400.0
    stranger_rate: float = 20.0  # of an address without a good token
    stranger_burst: float = 60.0
    largest_question: int = 1 << 20  # of a body that asks for predictions
    slowest_head: float = 10.0  # seconds until a request must be there up to its body
    slowest_body: float = 30.0  # seconds until its body must be there
    most_connections: int = 512  # at once; whoever is beyond hears 503 and tries again
    proxy: str | None = None  # the address of a proxy that says from where a request comes; nobody else is believed
    trains: bool = True  # whether this process starts training jobs
