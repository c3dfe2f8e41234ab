"""The ``graphveil`` command: every error is one line on stderr and exit code 2.

Each command is imported when it is called, so that no command waits for another one's libraries.
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from graphveil import __version__
from graphveil.cli.flags import spread
from graphveil.errors import DataWarning, GraphveilError

UsageError: Any = typer.BadParameter.__mro__[2]  # the base of all usage errors, wherever typer keeps its parser

# name -> "module:function" (or a group of commands) below graphveil.cli, in the order of the help
COMMANDS = {
    "datasets": "datasets:datasets",
    "import": "import_graph:import_tables",
    "methods": "methods:methods",
    "train": "train:train",
    "advise": "advise:advise",
    "plan": "plan:plan",
    "forecast": "forecast:forecast",
    "predict": "predict:predict",
    "certificate": "runs:certificate",
    "verify": "runs:verify",
    "budget": "budget:budget",
    "attack": "attack:attack",
    "audit": "audit:audit",
    "privatize": "privatize:privatize",
    "collect": "collect:collect",
    "serve": "serve:serve",
    "sweep": "sweep:sweep",
    "results": "results:results",
    "compare": "compare:compare",
    "reproduce": "reproduce:reproduce",
    "report": "report:report",
    "bench": "bench:bench",
}
PLAIN: dict[str, Any] = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": None}


class HelpfulGroup(TyperGroup):
    """Called without a command, it shows its help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or ["--help"])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except UsageError as error:
            error.message += f" Known are: {', '.join(self.list_commands(ctx))}."
            raise


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


app = typer.Typer(name="graphveil", cls=AllCommands, **PLAIN)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"graphveil {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Train, release and audit graph neural networks under differential privacy that can be checked."""


def _one_line(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    if issubclass(category, DataWarning):
        print(f"graphveil: warning: {message}", file=sys.stderr)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; used by the ``graphveil`` script."""
    warnings.showwarning = _one_line
    try:
        code = app(arguments, standalone_mode=False)
    except GraphveilError as error:
        sys.exit(_fail(str(error)))
    except UsageError as error:
        sys.exit(_fail(error.format_message()))
    except (OSError, OverflowError, MemoryError) as error:
        if isinstance(error, BrokenPipeError):
            sys.stderr.close()
            sys.exit(141)
        sys.exit(_fail(f"{type(error).__name__}: {error}"))
    except typer.Exit as stop:
        code = stop.exit_code
    except (KeyboardInterrupt, typer.Abort):
        print("graphveil: stopped", file=sys.stderr)
        sys.exit(130)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str) -> int:
    print("graphveil: error: " + " ".join(message.split()), file=sys.stderr)
    return 2
