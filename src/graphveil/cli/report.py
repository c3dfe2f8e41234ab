"""``graphveil report``: one page from results, with every picture and table beside it."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphveil.cli import options as opt
from graphveil.cli.options import flag
from graphveil.errors import InputError

if TYPE_CHECKING:
    from graphveil.report.pages import Outcome
    from graphveil.report.printed import Printed
    from graphveil.report.rows import Row


def report(
    results: Annotated[
        Path,
        typer.Argument(metavar="RESULTS", help="A store of experiments, its export (.jsonl), or a folder of pages."),
    ],
    out: Annotated[Path, flag("--out FILE.html", "The page.")] = Path("report.html"),
    assets: Annotated[
        Path | None,
        flag("--assets DIR", "Pictures (SVG, PNG) and tables (CSV, Markdown); default: NAME-files beside the page."),
    ] = None,
    no_assets: Annotated[bool, flag("--no-assets", "Write the page alone.")] = False,
    figure: Annotated[
        Path | None,
        flag("--figure FILE", "Draw accuracy against epsilon as one picture (.svg, .png, .pdf) and write no page."),
    ] = None,
    printed: Annotated[
        Path | None,
        flag("--printed FILE.csv", "Figures out of papers: dataset, level, method, epsilon, accuracy, source."),
    ] = None,
    metric: Annotated[
        list[str] | None,
        flag(
            "--metric NAME",
            "With --figure: draw this against epsilon (test_accuracy), such as link-teller.auc; repeatable.",
        ),
    ] = None,
    data: Annotated[list[str] | None, flag("--data NAME", "Only this data set; repeatable.")] = None,
    method: Annotated[
        list[str] | None, flag("--method NAME", "Only this method, by name or label; repeatable.")
    ] = None,
    level: Annotated[str | None, flag("--level L", "Only runs of this level, and those without noise.")] = None,
    relation: Annotated[str | None, flag("--relation R", "Only runs under zero-out, or under replace.")] = None,
    title: Annotated[str, flag("--title TEXT", "What the page is called.")] = "Privacy and accuracy",
    as_json: opt.AsJson = False,
) -> None:
    """Write one self-contained HTML page: accuracy, epsilon needed, attacks, budgets, costs, certificates and methods.

    Of a folder, make the tables and pictures of its Markdown pages again, by the commands that stand there.
    """
    from graphveil.report.rows import done, read_rows

    if results.is_dir():
        _pages(results, as_json)
        return
    if out.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"--out {out}: the page is HTML, give a name that ends in .html")
    wanted = {"dataset": data, "level": level and [level, "none"], "relation": relation and [relation]}
    rows = [
        row
        for row in read_rows(results)
        if all(not some or row[field] in some for field, some in wanted.items())
        and (not method or row["method"] in method or row["label"] in method)
    ]
    if not rows:
        raise InputError(f"{results} has no run of these data, level and relation")
    if figure is None and not done(rows):
        told = "there is nothing to report (--figure draws audits; 'graphveil results' prints audits and forecasts)"
        raise InputError(f"{results}: none of its {len(rows)} runs is a finished training: {told}")
    from graphveil.report.printed import read_printed

    papers = [] if printed is None else read_printed(printed)
    if figure is not None:
        _draw(rows, figure, papers, title, metric)
        opt.show({"figure": str(figure), "runs": len(rows)} if as_json else str(figure))
        return
    from graphveil.report.report import write_report

    folder = None if no_assets else assets or out.with_name(f"{out.stem}-files")
    written = write_report(rows, out, folder, title=title, source=results.name, printed=papers)
    body = {
        "out": str(out),
        "assets": None if folder is None else str(folder),
        "files": len(written),
        "runs": len(rows),
    }
    opt.show(
        body
        if as_json
        else f"{out}: {len(rows)} runs" + ("" if folder is None else f"; pictures and tables in {folder}")
    )


def _draw(rows: Sequence[Row], path: Path, papers: Sequence[Printed], title: str, metric: list[str] | None) -> None:
    """Audits as their chart, anything else as curves."""
    from graphveil.experiments.run import AUDIT

    audits = [row for row in rows if row["kind"] == AUDIT]
    if audits and metric is None:
        from graphveil.report.audit_chart import audit_plot, bodies

        audit_plot(bodies(audits), path)
        return
    from graphveil.report.curves import draw

    draw(rows, path, papers, title, metric or ("test_accuracy",))


def _pages(folder: Path, as_json: bool) -> None:
    from graphveil.report.pages import refresh

    with opt.progress_bar() as progress:
        found = refresh(folder, _here, progress)
    if not found:
        raise InputError(f"{folder}: no page has a table or picture with the command that makes it")
    opt.show(found if as_json else "\n".join(f"{page}: {count} made again" for page, count in found.items()))


def _here(words: Sequence[str], folder: Path) -> Outcome:
    """Another command of this program, in this process: what it would have printed in that folder."""
    from graphveil.cli.app import main
    from graphveil.report.pages import Outcome

    out, error, code = io.StringIO(), io.StringIO(), 0
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            main(list(words))
        except SystemExit as stop:
            code = int(stop.code or 0)
    return Outcome(code, out.getvalue(), error.getvalue())
