"""``graphveil datasets``: what there is to learn from, and what one graph looks like."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphveil.cli import options as opt
from graphveil.cli.options import flag
from graphveil.errors import InputError

if TYPE_CHECKING:
    from graphveil.graph.data.registry import DatasetCard

PRINTED = ("nodes", "edges", "features", "classes", "homophily", "class_homophily", "mean_degree", "isolated")
EXACT = "exact figures: publish them only if the graph is public"


def datasets(
    name: Annotated[str | None, typer.Argument(metavar="[NAME|PATH]", help="Show one data set or .npz file.")] = None,
    prepare: Annotated[
        str | None, flag("--prepare", "A paper's preparation, or steps such as largest-component.")
    ] = None,
    plot: Annotated[Path | None, flag("--plot FILE", "Save degree distribution and class mixing as a picture.")] = None,
    download: Annotated[bool, flag("--download", "Fetch the data set if it is not on this machine.")] = False,
    as_json: opt.AsJson = False,
) -> None:
    """List the data sets, or show one: origin, statistics, preparations of the papers."""
    if name is None:
        if prepare or plot or download:
            raise InputError("--prepare, --plot and --download need the name of a data set")
        _list(as_json)
        return
    body = _one(name, prepare, plot, download)
    if as_json:
        opt.show(body)
    else:
        _show(body)


def _list(as_json: bool) -> None:
    from graphveil.graph.data.places import availability
    from graphveil.graph.data.registry import GENERATED, cards

    rows = [_card(card) | {"available": availability(name)} for name, card in cards().items()]
    rows += [{"name": name, "summary": text, "available": "generated"} for name, text in GENERATED.items()]
    if as_json:
        opt.show({"datasets": rows})
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    figures = ("nodes", "edges", "features", "classes", "homophily")
    title = "edges: each pair once; homophily: share of edges inside a class"
    table = Table(box=box.SIMPLE_HEAD, title=title, padding=(0, 0), pad_edge=False)
    for column in ("name", *figures, "where"):
        table.add_column(column, justify="right" if column in figures else "left", no_wrap=True)
    for row in rows:
        table.add_row(row["name"], *(_figure(row.get(key)) for key in figures), row["available"])
    Console().print(table)


def _one(name: str, prepare: str | None, plot: Path | None, download: bool) -> dict[str, Any]:
    from graphveil.graph.data.places import availability
    from graphveil.graph.data.registry import GENERATED, cards

    card = cards().get(name)
    where = availability(name) if card or name in GENERATED else "here"
    body: dict[str, Any] = {"name": name, "available": where} | (_card(card) if card else {})
    if where in ("download", "by hand") and not download:
        if prepare or plot:
            raise InputError(f"{name} is not on this machine: add --download")
        return body | {"measured": False, "statistics": {key: body[key] for key in PRINTED}}
    from graphveil.graph.data.load import load_dataset
    from graphveil.graph.data.measures import degree_histogram, statistics

    with opt.progress_bar() as bar:
        data = load_dataset(name, prepare=prepare, progress=bar)
    figures = statistics(data)
    body |= {
        "measured": True,
        "prepared": prepare,
        "directed": bool(data.directed),
        "statistics": asdict(figures),
        "degree_histogram": degree_histogram(data),
        "notes_on_data": list(data.get("notes") or ()),
    }
    if plot is not None:
        from graphveil.report.graph_glance import plot_graph

        body["plot"] = str(plot_graph(data, plot, title=name if prepare is None else f"{name}, {prepare}"))
    return body


def _card(card: DatasetCard) -> dict[str, Any]:
    """The card's fields for people and programs: without what only loading needs, and with the mean degree."""
    body = asdict(card) | {"mean_degree": card.mean_degree, "official_splits": card.splits}
    body["prepare"] = {key: _without(variant, "name") for key, variant in body["variants"].items()}
    if card.pyg is not None:
        body["pyg"] = {"class": card.pyg.dataset, "name": card.pyg.name, "features": card.pyg.features}
    return _without(body, "variants", "splits", "file", "unlabelled")


def _without(body: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in names}


def _show(body: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    console.print(f"[bold]{body['name']}[/bold]  {body.get('summary', '')}")
    for key in ("licence", "citation", "origin"):
        if key in body:
            console.print(f"  {key:<9} {body[key]}")
    for note in body.get("notes", ()):
        console.print(f"  note      {note}")
    for name, variant in body.get("prepare", {}).items():
        console.print(f"  prepare   {name}: {', '.join(variant['steps']) or 'nothing to do'}")
        for key, text in variant["differences"].items():
            console.print(f"            printed {key} {variant['printed'][key]}: {text}")
    title = EXACT if body["measured"] else "printed figures (the data are not on this machine)"
    table = Table(show_header=False, title=title)
    figures = dict(body["statistics"])
    quantiles, sizes = figures.pop("degree_quantiles", None), figures.pop("class_sizes", None)
    for key, value in figures.items():
        table.add_row(key.replace("_", " "), _figure(value))
    if quantiles is not None:
        table.add_row("degree quantiles", ", ".join(f"{key}: {value}" for key, value in quantiles.items()))
        table.add_row("class sizes", ", ".join(map(str, sizes)) or "-")
    console.print(table)
    if body["measured"]:
        most = max([row["nodes"] for row in body["degree_histogram"]], default=1)
        console.print("degree distribution")
        for row in body["degree_histogram"]:
            label = str(row["from"]) if row["from"] == row["to"] else f"{row['from']}-{row['to']}"
            console.print(f"  {label:>13} {row['nodes']:>9} {'█' * round(40 * row['nodes'] / most)}")
        for note in body["notes_on_data"]:
            console.print(f"  note      {note}")
    if "plot" in body:
        console.print(f"picture: {body['plot']}")


def _figure(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
