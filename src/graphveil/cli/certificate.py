"""``graphveil certificate``: what a saved run promises."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphveil.cli import options as opt


def certificate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A folder written by 'train --out'.")],
    as_json: opt.AsJson = False,
) -> None:
    """Print the certificate of a saved run."""
    from graphveil.runs.load import read_certificate

    found = read_certificate(run)
    if as_json:
        opt.print_json(found.to_json())
    else:
        typer.echo(str(found))
