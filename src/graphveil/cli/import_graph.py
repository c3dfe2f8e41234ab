"""``graphveil import``: your own tables become one graph file."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from graphveil.cli import options as opt
from graphveil.cli.options import flag
from graphveil.errors import InputError


def import_tables(
    edges: Annotated[Path, flag("--edges FILE", "Table of edges: .csv, .tsv or .parquet.")],
    out: Annotated[Path, flag("--out FILE.npz|FOLDER", "The graph file to write; a folder holds graphs of any size.")],
    nodes: Annotated[Path | None, flag("--nodes FILE", "Table of nodes; one row per node.")] = None,
    source: Annotated[str | None, flag("--source", "Edge column: from. Default: the first.")] = None,
    target: Annotated[str | None, flag("--target", "Edge column: to. Default: the second.")] = None,
    identifier: Annotated[str | None, flag("--id", "Node column: identifier. Default: the first.")] = None,
    label: Annotated[
        str | None, flag("--label", "Node column: class, e.g. group=a|b|c or year=2004..2009. Empty: no label.")
    ] = None,
    features: Annotated[
        list[str] | None,
        flag("--features", "Node columns: age=0..120,sex=f|m|x,word_*=0..1; repeatable. Undeclared: warns."),
    ] = None,
    directed: Annotated[
        bool, flag("--directed", "Keep the direction: the source's own list names the target.")
    ] = False,
    delimiter: Annotated[str | None, flag("--delimiter", "Of text tables. Default: as in the first lines.")] = None,
    encoding: Annotated[str, flag("--encoding", "Of text tables.")] = "utf8",
    header: Annotated[
        bool | None,
        flag(
            "--header/--no-header",
            "Whether the edge table's first line names its columns. Default: unless it is numbers.",
        ),
    ] = None,
    on_missing: Annotated[str, flag("--on-missing raise|zero", "Empty or NaN features.")] = "raise",
    drop_unknown: Annotated[bool, flag("--drop-unknown", "Drop edges to identifiers without a node.")] = False,
    save_ids: Annotated[
        Path | None, flag("--save-ids FILE", "Write node numbers and identifiers (.csv or .parquet).")
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Import an edge table and a node table into one .npz graph file, or into a folder of Parquet files."""
    from graphveil.graph.formats.columns import parse_column, parse_columns
    from graphveil.graph.formats.importing import ImportPlan, import_graph
    from graphveil.graph.formats.streaming import import_folder
    from graphveil.graph.formats.tables import TableFile

    if on_missing not in ("raise", "zero"):
        raise InputError(f"--on-missing is {on_missing!r}: give raise or zero")
    if out.suffix not in (".npz", ""):
        raise InputError(f"--out is {out}: give a name that ends in .npz, or a folder (no ending)")
    plan = ImportPlan(
        edges=TableFile(edges, delimiter, encoding, header),
        nodes=None if nodes is None else TableFile(nodes, delimiter, encoding),
        source=source,
        target=target,
        identifier=identifier,
        label=None if label is None else parse_column(label),
        features=parse_columns(features or []),
        directed=directed,
        zero_missing=on_missing == "zero",
        drop_unknown=drop_unknown,
    )
    start = time.perf_counter()
    with opt.progress_bar() as bar:
        write = import_graph if out.suffix == ".npz" else import_folder
        result = write(plan, out, save_ids=save_ids, progress=lambda rows: bar("edges", rows, rows))
    body = asdict(result) | {"directed": directed, "seconds": round(time.perf_counter() - start, 3), "out": str(out)}
    if as_json:
        opt.show(body)
        return
    typer.echo(
        f"{result.nodes} nodes, {result.edges} edges, {result.features} features, {result.classes} classes "
        f"({result.unlabelled} nodes without label) -> {out} in {body['seconds']} s"
    )
    for line in (*result.assumed, *result.unused):
        typer.echo(line)
    for note in result.notes:
        typer.echo(f"assumption: {note}")
