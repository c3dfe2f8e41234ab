"""``graphveil privatize``: people's own records in, randomised reports out; runs where the records are."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from graphveil.cli import options as opt
from graphveil.errors import InputError


def privatize(
    records: Annotated[
        Path, typer.Argument(metavar="RECORDS", help="Table of records (.csv, .tsv, .parquet), or a graph file (.npz).")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The reports to write: .parquet or .csv.")],
    features_epsilon: Annotated[str, typer.Option("--features-epsilon", metavar="E|raw|withheld")] = "withheld",
    labels_epsilon: Annotated[str, typer.Option("--labels-epsilon", metavar="E|raw|withheld")] = "withheld",
    edges_epsilon: Annotated[
        str, typer.Option("--edges-epsilon", metavar="E|raw|withheld", help="Of one entry of a contact list.")
    ] = "withheld",
    identifier: Annotated[str | None, typer.Option("--id", help="Column: identifier. Default: the first.")] = None,
    features: Annotated[
        list[str] | None, typer.Option("--features", help="Columns: names or patterns such as word_*; repeatable.")
    ] = None,
    label: Annotated[str | None, typer.Option("--label", help="Column: class from 0; empty means none.")] = None,
    classes: Annotated[int | None, typer.Option("--classes", help="The public number of classes.")] = None,
    contacts: Annotated[
        str | None, typer.Option("--contacts", help="Column: ids of contacts, separated by spaces.")
    ] = None,
    edge_mechanism: Annotated[
        str, typer.Option("--edge-mechanism", help="histogram, bucket or list (edges with an epsilon).")
    ] = "histogram",
    broadcast: Annotated[
        Path | None,
        typer.Option(
            "--broadcast", metavar="FILE.csv", help="Who takes part and their released labels, from 'collect'."
        ),
    ] = None,
    span: Annotated[
        str, typer.Option("--range", metavar="LOW..HIGH", help="Public range of every attribute.")
    ] = "0..1",
    mechanism: Annotated[
        str, typer.Option("--mechanism", help="multi-bit, piecewise, direction or laplace.")
    ] = "multi-bit",
    on_outside: Annotated[
        str, typer.Option("--on-outside", metavar="clip|raise", help="Attributes outside the range.")
    ] = "clip",
    holder: Annotated[str, typer.Option("--holder", help="Who keeps these records.")] = "all",
    seed: opt.Seed = None,
    as_json: opt.AsJson = False,
) -> None:
    """Randomise every record of a table once; the reports may leave, the records stay."""
    from graphveil.exchange.collecting import openness_note
    from graphveil.exchange.edge_tables import Broadcast, EdgeReporter
    from graphveil.exchange.graph_source import GraphSource
    from graphveil.exchange.tables import Privatizer
    from graphveil.graph.formats.tables import TableFile
    from graphveil.privacy.local import Local, Openness
    from graphveil.privacy.noise import Noise

    promise = Local(features_epsilon, labels_epsilon, edges_epsilon)
    edges = None
    if not isinstance(promise.edges, Openness):
        if broadcast is None:
            raise InputError(
                "edges with an epsilon need --broadcast FILE: who takes part and their released labels; "
                "'graphveil collect --broadcast' writes it after a round of labels"
            )
        edges = EdgeReporter(edge_mechanism, promise.edges, Broadcast.read(broadcast))
    elif broadcast is not None:
        raise InputError("--broadcast belongs to an --edges-epsilon that is a number")
    if on_outside not in ("clip", "raise"):
        raise InputError(f"--on-outside is {on_outside!r}: give clip or raise")
    lower, upper = _range(span)
    source: TableFile | GraphSource = TableFile(records)
    if records.suffix == ".npz":
        source = GraphSource(records)
        identifier, label, contacts = "id", "label", "contacts"
        classes = source.classes if classes is None else classes
    job = Privatizer(
        source, promise, identifier, tuple(features or ["*"]), label, contacts, classes, lower, upper,
        mechanism, on_outside == "raise", holder, edges,
    )  # fmt: skip
    start = time.perf_counter()
    with opt.progress_bar() as bar:
        done = job.run(out, Noise(seed), progress=lambda rows: bar("records", rows, rows))
    body = done | {
        "promise": promise.to_json(),
        "mechanism": mechanism,
        "edge_mechanism": None if edges is None else edge_mechanism,
        "holder": holder,
        "raw": [part.value for part in promise.raw],
        "seeded": seed is not None,
        "seconds": round(time.perf_counter() - start, 3),
        "out": str(out),
    }
    if as_json:
        opt.print_json(body)
        return
    typer.echo(f"{done['vertices']} records -> {out} in {body['seconds']} s; epsilon {done['epsilon']:.6g} each")
    if promise.raw or openness_note(promise):
        typer.echo(openness_note(promise))
    if done["outside"]:
        typer.echo(f"{done['outside']} attributes lay outside {lower:g}..{upper:g} and were clipped (keep this number)")


def _range(text: str) -> tuple[float, float]:
    low, dots, high = text.partition("..")
    try:
        lower, upper = float(low), float(high)
    except ValueError:
        dots = ""
        lower = upper = 0.0
    if not dots or not lower < upper or upper - lower == float("inf"):
        raise InputError(f"--range is {text!r}: give two finite numbers such as 0..1")
    return lower, upper
