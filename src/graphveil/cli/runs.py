"""What can be asked of a saved run: its certificate, and whether its files agree."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphveil.cli import options as opt
from graphveil.cli.options import flag

Run = Annotated[Path, typer.Argument(metavar="RUN", help="A folder written by 'train --out'.")]
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
