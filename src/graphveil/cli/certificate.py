"""``graphveil certificate``: what a saved run promises."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphveil.cli import options as opt
from graphveil.privacy.certificate import Certificate
from graphveil.privacy.verify import read_json


def certificate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A folder written by 'train --out'.")],
    as_json: opt.AsJson = False,
) -> None:
    """Print the certificate of a saved run."""
    body = read_json(run / "certificate.json")
    if as_json:
        opt.print_json(body)
    else:
        typer.echo(str(Certificate.from_json(body)))


def register(app: typer.Typer) -> None:
    app.command()(certificate)
