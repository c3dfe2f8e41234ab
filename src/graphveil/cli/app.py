"""The ``graphveil`` command: one thin file per verb; every error is one line on stderr and exit code 2."""

from __future__ import annotations

import sys
import warnings
from typing import Any, TextIO

import typer

from graphveil import __version__
from graphveil.cli.group import PLAIN, AllCommands
from graphveil.errors import DataWarning, GraphveilError

UsageError: Any = typer.BadParameter.__mro__[2]  # the base of all usage errors, wherever typer keeps its parser

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


def _one_line(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
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
