"""The tables of a service. What people report is in ``reports`` and nowhere else; nothing here is a clean record."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

metadata = MetaData()

collections = Table(
    "collections",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(128), unique=True, nullable=False),
    Column("protocol", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("created", Float, nullable=False),
    Column("open", Boolean, nullable=False),  # whether records need not be enrolled: whoever reports one first owns it
)


def collection() -> Column[int]:
    return Column("collection", Integer, ForeignKey("collections.id"), primary_key=True)


tokens = Table(
    "tokens",
    metadata,
    Column("key", String(32), primary_key=True),
    Column("role", String(16), nullable=False),
    Column("holder", String(128)),
    Column("record", String(128)),  # a token for one record alone
    Column("digest", LargeBinary(32), nullable=False),  # of the secret; the secret itself is nowhere
    Column("created", Float, nullable=False),
    Column("revoked", Float),
    Column("scope", String(200)),  # the collection or run it is for; an operator's may be for everything
)

enrolled = Table(  # whose a record is, said by the operator before anybody has reported it
    "enrolled",
    metadata,
    collection(),
    Column("record", String(128), primary_key=True),
    Column("holder", String(128), nullable=False),
)

owners = Table(  # who has taken part, and for whom: a record that was not enrolled belongs to the holder who reported it first
    "owners",
    metadata,
    collection(),
    Column("record", String(128), primary_key=True),
    Column("holder", String(128), nullable=False),
)

reports = Table(
    "reports",
    metadata,
    collection(),
    Column("stage", String(64), primary_key=True),
    Column("record", String(128), primary_key=True),
    Column("holder", String(128), nullable=False),
    Column("seeded", Boolean, nullable=False),
    Column("body", LargeBinary, nullable=False),
)

arrivals = Table(  # reports taken per minute
    "arrivals",
    metadata,
    collection(),
    Column("stage", String(64), primary_key=True),
    Column("minute", Integer, primary_key=True),
    Column("reports", Integer, nullable=False),
)

refusals = Table(
    "refusals",
    metadata,
    collection(),
    Column("stage", String(64), primary_key=True),
    Column("reason", String(200), primary_key=True),
    Column("reports", Integer, nullable=False),
)

broadcasts = Table(
    "broadcasts",
    metadata,
    collection(),
    Column("stage", String(64), primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("body", LargeBinary, nullable=False),  # an Arrow stream: id, bin
    Column("created", Float, nullable=False),
)

jobs = Table(
    "jobs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("collection", Integer, ForeignKey("collections.id"), nullable=False),
    Column("seed", Integer),
    Column("state", String(16), nullable=False),
    Column("step", String(64)),
    Column("done", Integer, nullable=False, default=0),
    Column("total", Integer, nullable=False, default=0),
    Column("message", Text),
    Column("attempts", Integer, nullable=False, default=0),
    Column("worker", String(32)),
    Column("heartbeat", Float),
    Column("created", Float, nullable=False),
    Column("finished", Float),
    Column("run", Text),  # the folder of the run, below that of the service
    Column("certificate", Text),
    Column("figures", Text),
    Index("jobs_of_a_collection", "collection", "state"),
)
