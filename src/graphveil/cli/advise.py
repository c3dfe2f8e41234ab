"""``graphveil advise``: a few questions, and which promise, method and epsilon follow from the answers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphveil.cli import options as opt
from graphveil.cli.options import flag
from graphveil.errors import InputError

if TYPE_CHECKING:
    from graphveil.methods.advice import Advice


def advise(
    protect: Annotated[
        str | None,
        flag("--protect WHAT", "person, traces, contacts (with --k), contact, or reports (nobody is trusted)."),
    ] = None,
    mutual: Annotated[
        bool | None, typer.Option("--mutual/--one-sided", help="Whether a contact is in both people's lists.")
    ] = None,
    public_predictions: Annotated[
        str | None, flag("--public-predictions yes|no", "Whether others than the person will see a prediction.")
    ] = None,
    runs: Annotated[int | None, flag("--runs N", "How often a model will be trained on these people in all.")] = None,
    k: Annotated[int, flag("--k K", "With --protect contacts: friendships per person.")] = 5,
    people: Annotated[int, flag("--people N", "About how many people; decides delta.")] = 10_000,
    out: Annotated[Path | None, flag("--out FILE.md", "Write the advice as Markdown, too.")] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Say what to promise, with which method and epsilon, and what that means; reads no data."""
    from graphveil.methods.advice import WHOM, Answers
    from graphveil.methods.advice import advise as answer

    given: dict[str, Any] = {
        "protect": protect,
        "mutual": mutual,
        "public_predictions": public_predictions,
        "runs": runs,
    }
    if all(value is None for value in given.values()):
        if not sys.stdin.isatty():
            raise InputError(f"advise asks at a terminal; elsewhere give --protect ({', '.join(WHOM)})")
        given = _asked(WHOM)
    if given["public_predictions"] not in (None, "yes", "no"):
        raise InputError(f"--public-predictions takes yes or no, got {given['public_predictions']!r}")
    given["public_predictions"] = given["public_predictions"] == "yes"
    found = answer(Answers(**{name: value for name, value in given.items() if value is not None}, k=k, people=people))
    if out is not None:
        from graphveil.files import write_text

        write_text(out, as_markdown(found))
    opt.show(found.to_json() if as_json else as_text(found))


def _asked(whom: dict[str, str]) -> dict[str, Any]:
    """The answers of somebody at a terminal."""
    for name, words in whom.items():
        typer.echo(f"  {name:<9} {words}")
    protect = typer.prompt("What is to be protected?", default="person")
    mutual = typer.confirm("Is a contact in the lists of both people?", default=True)
    public = typer.confirm("Will others than the person see a prediction?", default=False)
    runs = typer.prompt("How often will a model be trained on these people in all?", default=1, type=int)
    return {"protect": protect, "mutual": mutual, "public_predictions": "yes" if public else "no", "runs": runs}


def as_text(found: Advice) -> str:
    """One screen."""
    lines = [
        f"protect   {found.protected}",
        f"promise   {found.promise} (delta {found.delta:g})",
        f"method    {found.method}: {found.why}",
        "",
        "epsilon   of all runs   of each run   an attacker who knows everybody else guesses right at most",
        *(f"          {b.total:<12g}  {b.each:<12.3g}  {100 * b.guess:.0f} % (blind: 50 %)" for b in found.budgets),
        "",
        *(f"* {line}" for line in found.consequences),
        "",
        "what an epsilon buys here, before it is spent; then the total, then the first run:",
        *(f"  {command}" for command in found.commands),
    ]
    return "\n".join(lines)


def as_markdown(found: Advice) -> str:
    rows = [f"| {b.total:g} | {b.each:.3g} | {100 * b.guess:.0f} % |" for b in found.budgets]
    lines = [
        "# What to promise",
        "",
        f"* **Protected:** {found.protected}",
        f"* **Promise:** {found.promise}, delta {found.delta:g}",
        f"* **Method:** `{found.method}`: {found.why}",
        "",
        "| epsilon of all runs | of each run | an attacker who knows everybody else guesses right at most |",
        "|---|---|---|",
        *rows,
        "",
        *(f"* {line}" for line in found.consequences),
        "",
        "```sh",
        *found.commands,
        "```",
    ]
    return "\n".join(lines) + "\n"
