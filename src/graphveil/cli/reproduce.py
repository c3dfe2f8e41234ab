"""``graphveil reproduce``: a paper's tables beside what its method reaches here, as published, sound, and against ours."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphveil.cli import options as opt
from graphveil.cli.options import flag
from graphveil.cli.sweep import STORE, EngineFlags, Out, run_all
from graphveil.errors import InputError
from graphveil.files import write_text

if TYPE_CHECKING:
    from graphveil.experiments.papers import Entry, Paper
    from graphveil.experiments.reproduce import Reproduction
    from graphveil.experiments.tables import Table

STDOUT = Path("-")


def reproduce(
    engine: EngineFlags,
    target: Annotated[
        str | None, typer.Argument(metavar="PAPER[/TABLE|/FIGURE]", help="Such as dpdgc/table2; none: list the papers.")
    ] = None,
    datasets: Annotated[str | None, flag("--datasets NAMES", "Only these, with commas.")] = None,
    methods: Annotated[
        str | None, flag("--methods NAMES", "Only lines printed under these names, with commas.")
    ] = None,
    backbones: Annotated[str | None, flag("--backbones NAMES", "Only lines of these networks, with commas.")] = None,
    epsilons: Annotated[str | None, flag("--epsilons E", "Only lines printed at these, with commas.")] = None,
    seeds: Annotated[str, flag("--seeds N|FIRST-LAST", "How many seeds, or which.")] = "3",
    quick: Annotated[bool, flag("--quick", "One seed, few data sets, without what takes longest.")] = False,
    columns: Annotated[
        str, flag("--columns NAMES", "Of published, sound and own, with commas.")
    ] = "published,sound,own",
    entries: Annotated[bool, flag("--list", "List tables and figures; run nothing.")] = False,
    stored: Annotated[
        str | None, flag("--from FILES", "Run nothing: stores or exports (.jsonl), with commas, have the runs.")
    ] = None,
    markdown: Annotated[
        Path | None, flag("--markdown FILE", "Write the tables as Markdown, too; - prints nothing else.")
    ] = None,
    figure: Annotated[
        Path | None,
        flag("--figure FILE", "Draw accuracy against epsilon (.svg, .png, .pdf), printed points beside it."),
    ] = None,
    out: Out = STORE,
    as_json: opt.AsJson = False,
) -> None:
    """Run a table of a paper and print it beside the printed numbers; finished runs in the store are used again."""
    from graphveil.experiments.export import read_rows
    from graphveil.experiments.papers import COLUMNS, find, papers
    from graphveil.experiments.reproduce import compared, reproduction

    if target is None:
        _list_papers(papers(), as_json)
        return
    paper, chosen = find(target)
    if entries:
        _list_entries(paper, chosen, as_json)
        return
    named: Any = [name.strip() for name in columns.split(",")]
    for name in named:
        if name not in COLUMNS:
            raise InputError(f"--columns {name}: known are {', '.join(COLUMNS)}")
    sets = None if datasets is None else [name.strip() for name in datasets.split(",")]
    how: dict[str, Any] = {"seeds": int(seeds) if seeds.isdigit() else seeds, "quick": quick, "columns": named}
    only = {"methods": methods, "backbones": backbones, "epsilons": epsilons}
    for name, text in only.items():
        how[name] = None if text is None else opt.several(text)
        if how[name] == []:
            raise InputError(f"--{name} names nothing")
    if stored is not None and not opt.several(stored):
        raise InputError("--from names nothing")
    kept = None if stored is None else [row for name in opt.several(stored) for row in read_rows(Path(name))]
    opt.check_picture(figure)
    shown: list[Table] = []
    drawn: list[tuple[Reproduction, list[dict[str, Any]]]] = []
    bodies: list[dict[str, Any]] = []
    for entry in chosen:
        if not entry.runs:
            typer.echo(f"{paper.key}/{entry.id} is not run: {entry.why}", err=True)
            bodies.append({"entry": f"{paper.key}/{entry.id}", "why": entry.why})
            continue
        if entry.embeddings is not None:
            _draw_embeddings(paper, entry, figure if len(chosen) == 1 and kept is None else None)
            continue
        if entry.heat is not None:
            maps = _heat(paper, entry, sets, how, kept, out, engine, figure if len(chosen) == 1 else None)
            shown += maps
            bodies += [
                {"entry": f"{paper.key}/{entry.id}", "title": table.title, "lines": table.lines()} for table in maps
            ]
            continue
        if entry.varied:
            drawn_here, lines = _drawn(paper, entry, sets, how, kept, out, engine)
            shown += drawn_here
            bodies.append({"entry": f"{paper.key}/{entry.id}", "lines": lines})
            continue
        if entry.gap is not None or entry.gain is not None:
            averages = _gaps if entry.gap is not None else _gains
            table = averages(paper, entry, sets, how, kept, out, engine)
            shown.append(table)
            bodies.append({"entry": f"{paper.key}/{entry.id}", "lines": table.lines(), "notes": list(table.notes)})
            continue
        asked = reproduction(paper, entry, data=sets, **how)
        rows = kept if kept is not None else run_all(asked.name, asked.runs, out, engine, resume=True)[1]
        table = compared(asked, rows)
        shown.append(table)
        drawn.append((asked, rows))
        bodies.append({"entry": asked.name, "lines": table.lines(), "notes": list(table.notes)})
    if figure is not None and drawn:
        import_module("graphveil.report.reproduced").draw(drawn, figure)
    whole = "\n".join(table.markdown() for table in shown)
    if markdown is not None and markdown != STDOUT:
        write_text(markdown, whole)
    if as_json:
        opt.show(bodies)
    elif markdown == STDOUT:
        typer.echo(whole)
    else:
        typer.echo("\n\n".join(table.text() for table in shown))


def _without_columns(how: dict[str, Any]) -> dict[str, Any]:
    """What a figure without printed numbers can be asked: it has one column."""
    return {name: value for name, value in how.items() if name != "columns"}


def _drawn(
    paper: Paper, entry: Entry, sets: Any, how: dict[str, Any], kept: Any, out: Path, engine: EngineFlags
) -> tuple[list[Table], list[dict[str, str]]]:
    """The measured curves of a figure that prints no numbers."""
    from graphveil.experiments.drawn import drawn_runs, drawn_tables

    runs = drawn_runs(paper, entry, data=sets, **_without_columns(how))
    every = [run for some in runs.values() for run in some]
    rows = kept if kept is not None else run_all(f"{paper.key}/{entry.id}", every, out, engine, resume=True)[1]
    found = drawn_tables(paper, entry, runs, rows)
    return found, [line for table in found for line in table.lines()]


def _heat(
    paper: Paper,
    entry: Entry,
    sets: Any,
    how: dict[str, Any],
    kept: Any,
    out: Path,
    engine: EngineFlags,
    figure: Path | None,
) -> list[Table]:
    """The measured maps of a figure of two options, as tables and, if asked for, as a picture."""
    from graphveil.experiments.heat import heat_maps, heat_runs, heat_tables

    runs = heat_runs(paper, entry, data=sets, **_without_columns(how))
    every = [run for some in runs.values() for run in some]
    rows = kept if kept is not None else run_all(f"{paper.key}/{entry.id}", every, out, engine, resume=True)[1]
    maps = heat_maps(entry, runs, rows)
    if figure is not None:
        title = f"{paper.title}, {entry.name}: {entry.title}"
        import_module("graphveil.report.heat").draw(maps, title, figure)
    return heat_tables(paper, entry, maps)


def _gaps(
    paper: Paper, entry: Entry, sets: Any, how: dict[str, Any], kept: Any, out: Path, engine: EngineFlags
) -> Table:
    """Averages of what another table runs."""
    from graphveil.experiments.gains import entry_of
    from graphveil.experiments.gaps import gap_table
    from graphveil.experiments.reproduce import reproduction

    assert entry.gap is not None
    source = entry_of(paper, entry, entry.gap.of)
    asked = reproduction(paper, source, data=sets, **how | {"columns": ["published"]})
    rows = kept if kept is not None else run_all(asked.name, asked.runs, out, engine, resume=True)[1]
    return gap_table(paper, entry, asked, rows)


def _gains(
    paper: Paper, entry: Entry, sets: Any, how: dict[str, Any], kept: Any, out: Path, engine: EngineFlags
) -> Table:
    """Average gains of what other tables run."""
    from graphveil.experiments.gains import entry_of, gain_table
    from graphveil.experiments.reproduce import reproduction

    assert entry.gain is not None
    how = how | {"columns": ["published"]}
    asked = {
        metric: reproduction(paper, entry_of(paper, entry, name), data=sets, **how)
        for metric, name in entry.gain.of.items()
    }
    every = list({run.id: run for one in asked.values() for run in one.runs}.values())
    rows = kept if kept is not None else run_all(f"{paper.key}/{entry.id}", every, out, engine, resume=True)[1]
    return gain_table(paper, entry, asked, rows)


def _draw_embeddings(paper: Paper, entry: Entry, figure: Path | None) -> None:
    """Train the models of a figure of embeddings and draw them; it keeps no runs and prints no table."""
    if figure is None:
        told = f"'graphveil reproduce {paper.key}/{entry.id} --figure FILE' trains its models and draws it"
        typer.echo(f"{paper.key}/{entry.id} is a picture: {told}", err=True)
        return
    with opt.progress_bar() as progress:
        import_module("graphveil.report.embeddings").draw(paper, entry, figure, progress)


def _list_papers(found: dict[str, Paper], as_json: bool) -> None:
    if as_json:
        opt.show(
            [
                {"key": p.key, "title": p.title, "citation": p.citation, "entries": len(p.entries)}
                for p in found.values()
            ]
        )
        return
    for paper in found.values():
        ready = [entry.id for entry in paper.entries if entry.runs]
        typer.echo(f"{paper.key}: {paper.title} ({paper.citation})")
        typer.echo(
            f"  runs: {', '.join(ready)}; 'graphveil reproduce {paper.key} --list' has all {len(paper.entries)} entries"
        )


def _list_entries(paper: Paper, chosen: list[Entry], as_json: bool) -> None:
    if as_json:
        opt.show([{"id": e.id, "name": e.name, "title": e.title, "runs": e.runs, "why": e.why or None} for e in chosen])
        return
    typer.echo(f"{paper.title}\n{paper.citation}")
    for line in paper.stated:
        typer.echo(f"  {line}")
    for entry in chosen:
        typer.echo(f"{paper.key}/{entry.id}  {entry.title}: " + ("runs" if entry.runs else f"not run: {entry.why}"))
