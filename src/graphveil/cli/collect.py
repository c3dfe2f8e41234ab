"""``graphveil collect``: reports of one or several holders in, noisy data and a certificate out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from graphveil.cli import options as opt
from graphveil.cli.options import flag
from graphveil.errors import InputError


def collect(
    reports: Annotated[list[Path], typer.Argument(metavar="REPORTS...", help="Files written by 'privatize'.")],
    out: Annotated[Path, flag("--out FILE.npz", "The noisy graph to write.")],
    certificate: Annotated[Path | None, flag("--certificate FILE", "Default: the name of --out with .json.")] = None,
    broadcast: Annotated[
        Path | None, flag("--broadcast FILE.csv", "Write ids and released labels for a round on contacts.")
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Merge reports into one noisy graph file; says what it cost everybody and what was in the clear."""
    if out.suffix != ".npz":
        raise InputError(f"--out is {out}: give a name that ends in .npz")
    from graphveil.exchange.collect import collect as merge
    from graphveil.files import write_json
    from graphveil.graph.formats.npz import write_arrays

    start = time.perf_counter()
    found = merge(reports)
    if broadcast is not None:
        found.broadcast.write(broadcast)
    write_arrays(found.arrays, out)
    beside = certificate or out.with_suffix(".json")
    write_json(beside, found.certificate.to_json())
    body = {
        "vertices": len(found.ids),
        "attributes": found.certificate.facts.features,
        "labelled": int((found.labels >= 0).sum()),
        "arcs": int(found.arcs.shape[1]),
        "resent": found.resent,
        **opt.counted(found.accepted, found.refused),
        "epsilon": found.certificate.epsilon,
        "holds": found.certificate.holds,
        "warnings": list(found.certificate.warnings),
        "seconds": round(time.perf_counter() - start, 3),
        "out": str(out),
        "certificate": str(beside),
        "broadcast": None if broadcast is None else str(broadcast),
    }
    if as_json:
        opt.show(body)
    else:
        typer.echo(f"{len(found.ids)} vertices, {body['arcs']} arcs -> {out}")
        opt.show_counted(body)
        typer.echo(str(found.certificate))
