"""The commands by name; each is imported when it is called, so that no command waits for another one's libraries."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from graphveil.cli.flags import spread

# name -> "module:function" (or a group of commands) below graphveil.cli, in the order of the help
COMMANDS = {
    "datasets": "datasets:datasets",
    "import": "import_graph:import_tables",
    "methods": "methods:methods",
    "train": "train:train",
    "plan": "plan:plan",
    "predict": "predict:predict",
    "certificate": "certificate:certificate",
    "verify": "verify:verify",
    "attack": "attack:attack",
    "audit": "audit:audit",
    "privatize": "privatize:privatize",
    "collect": "collect:collect",
    "bench": "bench:bench",
}
PLAIN: dict[str, Any] = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": None}


class HelpfulGroup(TyperGroup):
    """Called without a command, it shows its help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or ["--help"])


class AllCommands(HelpfulGroup):
    """The commands of ``graphveil``."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        unloaded: Any = dict.fromkeys(COMMANDS)
        self.commands.update(unloaded)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        found = getattr(import_module(f"graphveil.cli.{module}"), attribute)
        if isinstance(found, typer.Typer):
            return get_command(found)
        alone = typer.Typer(**PLAIN)
        alone.command(cmd_name)(spread(found))
        return get_command(alone)
