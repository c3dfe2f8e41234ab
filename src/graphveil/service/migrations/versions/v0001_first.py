"""The first version of the tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "v0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "collections",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("name", sa.String(128), nullable=False, unique=True),
        sa.Column("protocol", sa.Text(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
    )
    op.create_table(
        "tokens",
        sa.Column("key", sa.String(32), primary_key=True),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("holder", sa.String(128)),
        sa.Column("record", sa.String(128)),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("revoked", sa.Float()),
    )
    op.create_table(
        "arrivals",
        sa.Column("collection", sa.Integer(), sa.ForeignKey("collections.id"), primary_key=True),
        sa.Column("stage", sa.String(64), primary_key=True),
        sa.Column("minute", sa.Integer(), primary_key=True),
        sa.Column("reports", sa.Integer(), nullable=False),
    )
    op.create_table(
        "broadcasts",
        sa.Column("collection", sa.Integer(), sa.ForeignKey("collections.id"), primary_key=True),
        sa.Column("stage", sa.String(64), primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("collection", sa.Integer(), sa.ForeignKey("collections.id"), nullable=False),
        sa.Column("seed", sa.Integer()),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("step", sa.String(64)),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("message", sa.Text()),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("worker", sa.String(32)),
        sa.Column("heartbeat", sa.Float()),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("finished", sa.Float()),
        sa.Column("run", sa.Text()),
        sa.Column("certificate", sa.Text()),
        sa.Column("figures", sa.Text()),
    )
    op.create_index("jobs_of_a_collection", "jobs", ["collection", "state"])
    op.create_table(
        "owners",
        sa.Column("collection", sa.Integer(), sa.ForeignKey("collections.id"), primary_key=True),
        sa.Column("record", sa.String(128), primary_key=True),
        sa.Column("holder", sa.String(128), nullable=False),
    )
    op.create_table(
        "refusals",
        sa.Column("collection", sa.Integer(), sa.ForeignKey("collections.id"), primary_key=True),
        sa.Column("stage", sa.String(64), primary_key=True),
        sa.Column("reason", sa.String(200), primary_key=True),
        sa.Column("reports", sa.Integer(), nullable=False),
    )
    op.create_table(
        "reports",
        sa.Column("collection", sa.Integer(), sa.ForeignKey("collections.id"), primary_key=True),
        sa.Column("stage", sa.String(64), primary_key=True),
        sa.Column("record", sa.String(128), primary_key=True),
        sa.Column("holder", sa.String(128), nullable=False),
        sa.Column("seeded", sa.Boolean(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
    )


def downgrade() -> None:
    op.drop_table("reports")
    op.drop_table("refusals")
    op.drop_table("owners")
    op.drop_table("jobs")
    op.drop_table("broadcasts")
    op.drop_table("arrivals")
    op.drop_table("tokens")
    op.drop_table("collections")
