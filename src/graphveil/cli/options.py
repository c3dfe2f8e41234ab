"""Flags that several commands share, and what commands print."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphveil.errors import InputError

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from graphveil.exchange.report import Refusal
    from graphveil.progress import Progress

SHOWN = 20  # reasons printed, of reports that are refused


def flag(shown: str, help: str, **limits: Any) -> Any:
    """An option, written as the help shows it: ``flag("--seed S", "Repeatable noise.")``."""
    name, _, metavar = shown.partition(" ")
    return typer.Option(name, metavar=metavar or None, help=help, **limits)


MethodName = Annotated[str, typer.Argument(metavar="METHOD", help="Name of a method; 'graphveil methods' lists them.")]
DataName = Annotated[str, flag("--data NAME|PATH", "A data set by name, or an .npz file.")]
Prepare = Annotated[
    str | None, flag("--prepare PAPER|STEPS", "A paper's preparation (dpdgc), or steps such as max-degree:100.")
]
Split = Annotated[
    str,
    flag(
        "--split",
        "random (75/10/15), stratified, per-class, official, inductive or paper; shares as in random:50/25/25.",
    ),
]
Seed = Annotated[int | None, flag("--seed S", "Repeatable noise and split, for research only.", min=0)]
AsJson = Annotated[bool, flag("--json", "Print one JSON object instead of text.")]
BadRows = Annotated[str, flag("--on-bad-rows raise|zero", "What to do with rows that hold NaN or infinity.")]


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


def counted(accepted: int, refused: Sequence[Refusal]) -> dict[str, Any]:
    """How many reports were taken and how many not, with the first reasons."""
    return {"accepted": accepted, "refused": len(refused), "refusals": [str(one) for one in refused[:SHOWN]]}


def show_counted(body: dict[str, Any]) -> None:
    """The same in words."""
    typer.echo(f"{body['accepted']} reports accepted, {body['refused']} refused{':' if body['refused'] else ''}")
    for line in body["refusals"]:
        typer.echo(f"  {line}")
    if body["refused"] > len(body["refusals"]):
        typer.echo(f"  and {body['refused'] - len(body['refusals'])} more")


def show(found: Any) -> None:
    """Print text as it is, anything else as one JSON object."""
    typer.echo(found if isinstance(found, str) else as_json(found))


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A bar on stderr with one line per stage; silent when stderr is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    stages: dict[str, Any] = {}
    console = Console(file=sys.stderr)
    with Bars(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:

        def report(stage: str, done: int, total: int) -> None:
            if stage not in stages:
                stages[stage] = bar.add_task(stage, total=total)
            bar.update(stages[stage], completed=done, total=total)

        yield report
