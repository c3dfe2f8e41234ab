"""``graphveil verify``: recompute epsilon from the ledger alone; exit code 1 if anything disagrees."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphveil.cli import options as opt


def verify(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A folder written by 'train --out'.")],
    as_json: opt.AsJson = False,
) -> None:
    """Check that certificate, ledger and plan of a saved run agree; needs no data."""
    from graphveil.runs.verify import SCOPE, verify_run

    found, epsilon = verify_run(run)
    if as_json:
        opt.print_json(
            {"run": str(run), "consistent": not found, "disagreements": found, "epsilon": epsilon, "scope": SCOPE}
        )
    elif found:
        for line in found:
            typer.echo(f"graphveil: {run}: {line}", err=True)
    else:
        shown = "no finite value" if epsilon is None else f"{epsilon:.9g}"
        typer.echo(f"consistent: epsilon {shown} follows from the ledger. Note: {SCOPE}.")
    if found:
        raise typer.Exit(1)
