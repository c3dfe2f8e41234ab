"""Flags that several commands share, and what commands print."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphveil.errors import InputError

if TYPE_CHECKING:
    from graphveil.exchange.report import Refusal
    from graphveil.progress import Progress

PICTURES = (".svg", ".png", ".pdf")
SHOWN = 20  # reasons printed, of reports that are refused
SECONDS_BETWEEN_LINES = 10.0  # of progress, where stderr is no terminal


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
        "random (75/10/15), stratified, per-class, official, inductive, labelled or paper; shares as in random:50/25/25. "
        "auto: of an .npz file in which most nodes have no label, those with one teach and the others are asked about "
        "(labelled), which the command says; otherwise random.",
    ),
]
Seed = Annotated[int | None, flag("--seed S", "Repeatable noise and split, for research only.", min=0)]
AsJson = Annotated[bool, flag("--json", "Print one JSON object instead of text.")]
BadRows = Annotated[str, flag("--on-bad-rows raise|zero", "What to do with rows that hold NaN or infinity.")]


def load_data(name: str, seed: int | None, prepare: str | None = None, split: str = "random") -> Any:
    """A data set, a file or a folder, split with this seed (0 if none is given: the split is public)."""
    from graphveil.graph import load_dataset

    if Path(name).is_dir():
        from graphveil.graph.data.load import load_folder

        if prepare is not None:
            raise InputError(f"--prepare reads a whole graph; {name} is a folder that is read block by block")
        return load_folder(Path(name), 0 if seed is None else seed, split=split)
    return load_dataset(name, seed=0 if seed is None else seed, prepare=prepare, split=split)


def several(text: str) -> list[str]:
    """The parts of a list with commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def number(text: str, of: str) -> float:
    """A number that the flag ``of`` takes."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{of} takes numbers, and {text!r} is not a number") from None


def check_picture(path: Path | None) -> None:
    """Refuse a picture in a form that nobody draws, before anything runs."""
    if path is not None and path.suffix.lower() not in PICTURES:
        raise InputError(f"--plot writes {', '.join(PICTURES)}, got {path.name!r}")


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


def say(line: str) -> None:
    """A line for the operator, beside what the command prints."""
    typer.echo(line, err=True)


def show(found: Any) -> None:
    """Print text as it is, anything else as one JSON object."""
    typer.echo(found if isinstance(found, str) else as_json(found))


@contextmanager
def progress_bar(lines: bool = False) -> Iterator[Progress]:
    """A bar on stderr with one line per stage and the time left; where stderr is no terminal nothing, or plain ``lines``."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    stages: dict[str, Any] = {}
    console = Console(file=sys.stderr)
    if lines and not console.is_terminal:
        yield _plain_lines()
        return
    remaining = (TimeRemainingColumn(),) if lines else ()
    with Bars(*columns, *remaining, console=console, transient=True, disable=not console.is_terminal) as bar:

        def report(stage: str, done: int, total: int) -> None:
            if stage not in stages:
                stages[stage] = bar.add_task(stage, total=total)
            bar.update(stages[stage], completed=done, total=total)

        yield report


def _plain_lines() -> Progress:
    """One line a stage at its start and end, and in between at most one every few seconds."""
    started: dict[str, float] = {}
    last: dict[str, float] = {}

    def report(stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        begun = started.setdefault(stage, now)
        if 0 < done < total and now - last.get(stage, begun) < SECONDS_BETWEEN_LINES:
            return
        last[stage] = now
        left = f", about {_duration((now - begun) / done * (total - done))} left" if 0 < done < total else ""
        print(f"{stage}: {done} of {total} in {_duration(now - begun)}{left}", file=sys.stderr, flush=True)

    return report


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return (
        f"{minutes // 60} h {minutes % 60} min"
        if minutes >= 60
        else f"{minutes} min {rest} s"
        if minutes
        else f"{rest} s"
    )
