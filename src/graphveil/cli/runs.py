"""What can be asked of a saved run: its certificate, whether its files agree, and predictions."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Annotated, Any

import typer

from graphveil.cli import options as opt
from graphveil.cli.options import flag
from graphveil.errors import InputError

Run = Annotated[Path, typer.Argument(metavar="RUN", help="A folder written by 'train --out'.")]
BY_ID, OWN_FEATURES = "aligned by id", "each prediction reads its own row of features only, in any order"
PARTLY = 3  # exit code: what could be checked agrees, but that was not all


def certificate(
    run: Run,
    html: Annotated[Path | None, flag("--html FILE.html", "Write it as one plain page for a privacy officer.")] = None,
    pdf: Annotated[Path | None, flag("--pdf FILE.pdf", "The same page as PDF; needs an installed chromium.")] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Print the certificate of a saved run, or write it as a page, checked as by 'verify'."""
    from graphveil.runs.load import read_certificate

    found = read_certificate(run)
    if html is None and pdf is None:
        opt.show(found.to_json() if as_json else str(found))
        return
    from graphveil.files import write_text
    from graphveil.report.browser import print_pdf
    from graphveil.report.certificate_page import certificate_page
    from graphveil.runs.verify import check_run

    page = certificate_page(found, check_run(run), run.name)
    if html is not None:
        write_text(html, page)
    if pdf is not None:
        print_pdf(page, pdf)
    written = {kind: str(path) for kind, path in (("html", html), ("pdf", pdf)) if path is not None}
    opt.show({"run": str(run), **written} if as_json else "\n".join(written.values()))


def verify(
    run: Run,
    signer: Annotated[
        Path | None, flag("--signer KEY.pub", "The public key (PEM) that must have signed the run.")
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Check a saved run against its method's own plan, without the data.

    Exit code 1: something disagrees. 3: the method is not installed, only the arithmetic could be checked.
    """
    from graphveil.runs.verify import SCOPE, check_run

    verdict = check_run(run, signer)
    found, epsilon = verdict.disagreements, verdict.epsilon
    if as_json:
        body = {"run": str(run), "consistent": not found, "disagreements": found, "epsilon": epsilon}
        body |= {"rebuilt": verdict.rebuilt, "signed_by": verdict.signed_by, "unknown": verdict.unknown, "scope": SCOPE}
        opt.show(body)
    elif not found:
        shown = "no finite value" if epsilon is None else f"{epsilon:.9g}"
        checked = "consistent" if verdict.rebuilt else "ARITHMETIC ONLY"
        opt.show(f"{checked}: epsilon {shown} follows from the ledger. Note: {SCOPE}.")
        if verdict.signed_by:
            opt.show(f"signed by {verdict.signed_by}")
        for line in verdict.unknown:
            opt.show(f"cannot be known: {line}")
    else:
        for line in found:
            typer.echo(f"graphveil: {run}: {line}", err=True)
    if found:
        raise typer.Exit(1)
    if not verdict.rebuilt:
        raise typer.Exit(PARTLY)


def predict(
    run: Run,
    data: Annotated[
        str | None, flag("--data NAME|PATH", "The graph; not needed for scores made from reports alone.")
    ] = None,
    prepare: opt.Prepare = None,
    access: Annotated[str, flag("--access", "own-row, public-graph or charge.")] = "own-row",
    in_order: Annotated[bool, flag("--in-order", "Ignore ids: rows are in the order of training.")] = False,
    out: Annotated[Path | None, flag("--out FILE", "Write there instead of printing.")] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Predict the class of every node; each prediction is for the eyes of that node unless its features are public."""
    from graphveil.graph.ids import read_ids
    from graphveil.methods.alignment import IN_ORDER
    from graphveil.runs.load import load_model

    model = load_model(run)
    graph = None if data is None else opt.load_data(data, model.certificate.seed, prepare)
    if graph is not None and in_order:
        graph.ids = None
    best = model.predict_proba(graph, access).max(dim=1)
    ids = None if graph is None else read_ids(graph.get("ids"), len(best.indices))
    names: Any = (model.ids or range(len(best.indices))) if ids is None else ids.tolist()
    scored = zip(names, best.indices, best.values, strict=True)
    rows = [(name, int(label), round(float(p), 6)) for name, label, p in scored]
    columns, note = ("node", "prediction", "probability"), model.audience(access if graph is not None else "charge")
    if as_json:
        found = [dict(zip(columns, row, strict=True)) for row in rows]
        order = BY_ID if ids is not None or graph is None else IN_ORDER
        order = order if model.reads_slots else OWN_FEATURES
        told = {"run": str(run), "access": access, "note": note, "rows": order, "predictions": found}
        text = opt.as_json(told) + "\n"
    else:
        table = io.StringIO()
        csv.writer(table, lineterminator="\n").writerows([columns, *rows])
        text = table.getvalue()
        typer.echo(f"note: {note}", err=True)
    if out is None:
        typer.echo(text, nl=False)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{out} cannot be written: {error.strerror}") from None
