"""Versions of the tables, by Alembic: ``versions`` has one file for each, and every one says how to get there."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine


def upgrade(engine: Engine) -> None:
    """Bring the tables of this database to the newest version; safe to run again."""
    config = _config()
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        connection.commit()


def versions(engine: Engine) -> tuple[str | None, str | None]:
    """The version the database has, and the newest one."""
    with engine.connect() as connection:
        have = MigrationContext.configure(connection).get_current_revision()
    return have, ScriptDirectory.from_config(_config()).get_current_head()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.set_main_option("path_separator", "os")
    return config
