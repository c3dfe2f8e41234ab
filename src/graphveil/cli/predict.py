"""``graphveil predict``: classes for the nodes of a graph, from a saved run."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Annotated

import typer

from graphveil.cli import options as opt
from graphveil.errors import InputError

OWN_ROW = "each prediction is computed from that node's own features: show it to that node, or declare features public"


def predict(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A folder written by 'train --out'.")],
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="NAME|PATH", help="The graph; not needed for scores made from reports alone."),
    ] = None,
    prepare: opt.Prepare = None,
    access: Annotated[str, typer.Option("--access", help="own-row, public-graph or charge.")] = "own-row",
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write there instead of printing.")] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Predict the class of every node; each prediction is for the eyes of that node unless its features are public."""
    from graphveil.runs.load import load_model

    model = load_model(run)
    graph = None if data is None else opt.load_data(data, model.certificate.seed, prepare)
    best = model.predict_proba(graph, access).max(dim=1)
    names = model.ids or range(len(best.indices))
    found_best = zip(names, best.indices, best.values, strict=True)
    rows = [(name, int(label), round(float(p), 6)) for name, label, p in found_best]
    if as_json:
        found = [{"node": node, "prediction": label, "probability": p} for node, label, p in rows]
        text = opt.as_json({"run": str(run), "access": access, "note": OWN_ROW, "predictions": found}) + "\n"
    else:
        table = io.StringIO()
        writer = csv.writer(table, lineterminator="\n")
        writer.writerow(("node", "prediction", "probability"))
        writer.writerows(rows)
        text = table.getvalue()
        typer.echo(f"note: {OWN_ROW}", err=True)
    if out is None:
        typer.echo(text, nl=False)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{out} cannot be written: {error.strerror}") from None
