"""What Alembic runs: the migrations, on the connection it was given."""

from __future__ import annotations

from alembic import context

from graphveil.service.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
