"""``graphveil collect``: reports of one or several holders in, noisy data and a certificate out."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from graphveil.cli import options as opt
from graphveil.errors import InputError


def collect(
    reports: Annotated[list[Path], typer.Argument(metavar="REPORTS...", help="Files written by 'privatize'.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE.npz", help="The noisy graph to write.")],
    certificate: Annotated[
        Path | None, typer.Option("--certificate", metavar="FILE", help="Default: the name of --out with .json.")
    ] = None,
    broadcast: Annotated[
        Path | None,
        typer.Option("--broadcast", metavar="FILE.csv", help="Write ids and released labels for a round on contacts."),
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Merge reports into one noisy graph file; says what it cost everybody and what was in the clear."""
    if out.suffix != ".npz":
        raise InputError(f"--out is {out}: give a name that ends in .npz")
    from graphveil.exchange.collecting import collect as merge
    from graphveil.exchange.edge_tables import Broadcast
    from graphveil.graph import write_npz

    start = time.perf_counter()
    found = merge(reports)
    if broadcast is not None:
        if not bool((found.data.y >= 0).any()):
            raise InputError("--broadcast needs reports on labels: collect them first")
        Broadcast.of_labels(found.ids, found.data.y.numpy(), int(found.data.num_classes)).write(broadcast)
    write_npz(found.data, out)
    beside = certificate or out.with_suffix(".json")
    try:
        beside.write_text(json.dumps(found.certificate.to_json(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{beside} cannot be written: {error.strerror}") from None
    body = {
        "vertices": len(found.ids),
        "attributes": found.certificate.facts.features,
        "labelled": int((found.data.y >= 0).sum()),
        "arcs": int(found.data.edge_index.shape[1]),
        "resent": found.resent,
        "epsilon": found.certificate.epsilon,
        "holds": found.certificate.holds,
        "warnings": list(found.certificate.warnings),
        "seconds": round(time.perf_counter() - start, 3),
        "out": str(out),
        "certificate": str(beside),
        "broadcast": None if broadcast is None else str(broadcast),
    }
    if as_json:
        opt.print_json(body)
    else:
        typer.echo(f"{len(found.ids)} vertices, {body['arcs']} arcs -> {out}")
        typer.echo(str(found.certificate))
