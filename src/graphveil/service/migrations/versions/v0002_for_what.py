"""Tokens say what they are for, and records are enrolled for their holders before anybody reports.

Collections that were there stay open to whoever has a token. Tokens of holders and analysts that were made before say nothing
about what they are for: they open nothing and are made again.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "v0002"
down_revision = "v0001"


def upgrade() -> None:
    op.add_column("tokens", sa.Column("scope", sa.String(200)))
    op.add_column("collections", sa.Column("open", sa.Boolean(), nullable=False, server_default=sa.true()))
    op.create_table(
        "enrolled",
        sa.Column("collection", sa.Integer(), sa.ForeignKey("collections.id"), primary_key=True),
        sa.Column("record", sa.String(128), primary_key=True),
        sa.Column("holder", sa.String(128), nullable=False),
    )


def downgrade() -> None:
    op.drop_table("enrolled")
    with op.batch_alter_table("collections") as table:
        table.drop_column("open")
    with op.batch_alter_table("tokens") as table:
        table.drop_column("scope")
