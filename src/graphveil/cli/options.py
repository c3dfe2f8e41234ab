"""Flags that several commands share, and what they turn into."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphveil.errors import InputError
from graphveil.methods.base import PrivateMethod, Progress
from graphveil.methods.registry import build
from graphveil.privacy.local import Local
from graphveil.privacy.promise import (
    ADJACENCIES,
    Adjacency,
    EdgeLevel,
    KNeighborLevel,
    Level,
    NodeLevel,
    NonPrivate,
    Promise,
    Relation,
    parse_name,
)

if TYPE_CHECKING:
    from torch_geometric.data import Data

MethodName = Annotated[str, typer.Argument(metavar="METHOD", help="Name of a method; 'graphveil methods' lists them.")]
DataName = Annotated[str, typer.Option("--data", metavar="NAME|PATH", help="A data set by name, or an .npz file.")]
Prepare = Annotated[
    str | None,
    typer.Option(
        "--prepare", metavar="PAPER|STEPS", help="A paper's preparation (dpdgc), or steps such as max-degree:100."
    ),
]
Split = Annotated[
    str,
    typer.Option(
        "--split",
        help="random (75/10/15), stratified, per-class, official, inductive or paper; shares as in random:50/25/25.",
    ),
]
LevelName = Annotated[str, typer.Option("--level", help="edge, k-neighbor, node, local, or none.")]
FeaturesEpsilon = Annotated[
    str | None, typer.Option("--features-epsilon", metavar="E|raw|withheld", help="Level local: of all features.")
]
LabelsEpsilon = Annotated[
    str | None, typer.Option("--labels-epsilon", metavar="E|raw|withheld", help="Level local: of the label.")
]
EdgesEpsilon = Annotated[
    str | None, typer.Option("--edges-epsilon", metavar="E|raw|withheld", help="Level local: of one contact.")
]
EpsilonValue = Annotated[float | None, typer.Option("--epsilon", metavar="E", help="The privacy budget.")]
DeltaValue = Annotated[
    float | None, typer.Option("--delta", metavar="D", help="Default: 10^-ceil(log10 n), a tenth at edge level.")
]
KValue = Annotated[int | None, typer.Option("--k", metavar="K", help="Edges per person protected at k-neighbor level.")]
AdjacencyName = Annotated[
    str | None, typer.Option("--adjacency", metavar="A", help="record, bounded-degree or node (node level).")
]
RelationName = Annotated[str, typer.Option("--relation", metavar="R", help="zero-out or replace.")]
ModeName = Annotated[str | None, typer.Option("--mode", metavar="M", help="sound (default) or published.")]
DegreeValue = Annotated[
    int | None, typer.Option("--max-degree", metavar="D", help="The degree promise of bounded-degree.")
]
Directed = Annotated[bool, typer.Option("--directed", help="Edge level: protect one directed link.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A hyper-parameter; repeatable.")
]
Seed = Annotated[
    int | None, typer.Option("--seed", metavar="S", min=0, help="Repeatable noise and split, for research only.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
BadRows = Annotated[
    str, typer.Option("--on-bad-rows", metavar="raise|zero", help="What to do with rows that hold NaN or infinity.")
]


def build_method(name: str, mode: str | None, settings: list[str] | None) -> PrivateMethod:
    """The method with its ``--mode`` and ``--set`` options."""
    values: dict[str, Any] = {"mode": mode or "sound"}
    for setting in settings or []:
        key, equals, text = setting.partition("=")
        if not equals:
            raise InputError(f"--set takes key=value, got {setting!r}")
        values[key] = _parsed(text)
    return build(name, values)


def _parsed(text: str) -> Any:
    """A number, true, false or null if it reads as one, else the text itself; the method checks the type."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def build_promise(
    method: PrivateMethod,
    level: str,
    epsilon: float | None,
    delta: float | None,
    k: int | None,
    adjacency: str | None,
    relation: str,
    max_degree: int | None,
    directed: bool,
) -> Promise:
    """The promise the flags describe; the adjacency defaults to the first one the method covers at that level."""
    wanted = parse_name(Level, level)
    parse_name(Relation, relation)
    if adjacency is not None:
        parse_name(Adjacency, adjacency)
    if directed and wanted is not Level.EDGE:
        raise InputError("--directed belongs to --level edge")
    if wanted is Level.NONE:
        if epsilon is not None:
            raise InputError("--level none takes no --epsilon: nothing is protected")
        return NonPrivate()
    if epsilon is None:
        raise InputError(f"--level {wanted} needs --epsilon")
    if wanted is not Level.K_NEIGHBOR and k is not None:
        raise InputError("--k belongs to --level k-neighbor")
    if wanted is Level.EDGE:
        if adjacency not in (None, Adjacency.EDGE_UNDIRECTED, Adjacency.EDGE_DIRECTED):
            raise InputError(f"level edge has no adjacency {adjacency}; it has: {', '.join(ADJACENCIES[wanted])}")
        if relation != Relation.ZERO_OUT:
            raise InputError("level edge adds or removes one edge; it takes no --relation")
        if directed and adjacency == Adjacency.EDGE_UNDIRECTED:
            raise InputError("--directed contradicts --adjacency edge-undirected")
        return EdgeLevel(epsilon, delta, directed or adjacency == Adjacency.EDGE_DIRECTED)
    if wanted is Level.K_NEIGHBOR:
        if adjacency not in (None, Adjacency.K_NEIGHBOR):
            raise InputError(f"level k-neighbor has no adjacency {adjacency}")
        if k is None:
            raise InputError("--level k-neighbor needs --k: how many of a person's edges are protected")
        return KNeighborLevel(k, epsilon, delta, relation)
    if adjacency is None:
        known = {g.adjacency for g in method.supports if g.level is wanted}
        order = ADJACENCIES[Level.NODE] if max_degree is None else (Adjacency.BOUNDED_DEGREE,)
        adjacency = next((a for a in order if a in known), Adjacency.RECORD)
    return NodeLevel(epsilon, delta, adjacency, max_degree, relation)


def build_local(features: str | None, labels: str | None, edges: str | None, **central: object) -> Local | None:
    """The local promise the flags describe, if ``--level local``; else None, and no local flag may be given."""
    given = [name for name, value in central.items() if value is not None and name not in ("level", "delta")]
    if central["level"] != "local":
        if any(value is not None for value in (features, labels, edges)):
            raise InputError("--features-epsilon, --labels-epsilon and --edges-epsilon belong to --level local")
        return None
    if given:
        raise InputError(f"--level local takes no --{given[0].replace('_', '-')}: give each part its own epsilon")
    delta = central.get("delta")
    budgets = (features or "withheld", labels or "withheld", edges or "withheld")
    return Local(*budgets, delta=0.0 if delta is None else float(str(delta)))


def load_data(name: str, seed: int | None, prepare: str | None = None, split: str = "random") -> Data:
    """A data set or a file, split with this seed (0 if none is given: the split is public)."""
    from graphveil.graph import load_dataset

    kind, fractions = parse_split(split)
    return load_dataset(name, seed=0 if seed is None else seed, prepare=prepare, split=kind, fractions=fractions)


def parse_split(text: str) -> tuple[str, tuple[float, float, float] | None]:
    """``random:50/25/25`` as the name of a split and its shares; without a colon the shares are the default's."""
    kind, colon, shares = text.partition(":")
    if not colon:
        return kind, None
    if kind not in ("random", "stratified", "inductive"):
        raise InputError(f"--split {text}: only random, stratified and inductive take shares")
    try:
        train, val, test = (float(share) / 100 for share in shares.split("/"))
    except ValueError:
        raise InputError(f"--split {text}: give three percentages, as in random:50/25/25") from None
    return kind, (train, val, test)


def as_json(body: Any) -> str:
    """Strict JSON: a value that is not finite is a mistake, not a number."""
    try:
        return json.dumps(body, indent=2, allow_nan=False, default=str)
    except ValueError as error:
        raise InputError(f"this cannot be written as JSON: {error}") from None


def print_json(body: Any) -> None:
    typer.echo(as_json(body))


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A bar on stderr with one line per stage; silent when stderr is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    stages: dict[str, Any] = {}
    console = Console(file=sys.stderr)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:

        def report(stage: str, done: int, total: int) -> None:
            if stage not in stages:
                stages[stage] = bar.add_task(stage, total=total)
            bar.update(stages[stage], completed=done, total=total)

        yield report
