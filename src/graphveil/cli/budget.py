"""``graphveil budget``: the book of a data set, what was promised, spent and left over all runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphveil.cli import options as opt
from graphveil.cli.app import PLAIN, HelpfulGroup
from graphveil.cli.flags import spread
from graphveil.cli.options import flag
from graphveil.errors import InputError

if TYPE_CHECKING:
    from graphveil.privacy.budget import Account
    from graphveil.privacy.promise import Promise

budget = typer.Typer(cls=HelpfulGroup, **PLAIN)
Book = Annotated[Path, typer.Argument(metavar="BOOK", help="The file of the book, such as book.db.")]


@dataclass(frozen=True)
class TotalFlags:
    """The total that is promised for all runs, and under which notion."""

    epsilon: Annotated[float, flag("--epsilon E", "The total of all runs.")]
    level: Annotated[str, flag("--level", "edge, k-neighbor or node.")] = "node"
    delta: Annotated[float | None, flag("--delta D", "Of the total; default: from the number of --nodes.")] = None
    nodes: Annotated[
        int | None, flag("--nodes N", "How many people there are at most; delta is 10^-ceil(log10 N) then.")
    ] = None
    k: Annotated[int | None, flag("--k K", "Edges per person protected at k-neighbor level.")] = None
    adjacency: Annotated[str | None, flag("--adjacency A", "record, bounded-degree or node (node level).")] = None
    relation: Annotated[str | None, flag("--relation R", "zero-out (default) or replace.")] = None
    max_degree: Annotated[int | None, flag("--max-degree D", "The degree promise of bounded-degree.")] = None

    def promise(self) -> Promise:
        from graphveil.privacy.promise import Promise

        asked = Promise.parse(**{name: value for name, value in vars(self).items() if name != "nodes"})
        if self.delta is None and self.nodes is None:
            raise InputError("a total needs --delta, or --nodes for the default (below one in so many people)")
        return asked if self.nodes is None else asked.with_default_delta(self.nodes)


@budget.callback()
def group() -> None:
    """Keep the budget of a data set over many runs: reserve, settle, refuse, prove."""


@budget.command("init")
@spread
def init(
    book: Book, total: TotalFlags, name: Annotated[str, flag("--name TEXT", "What the data are called.")] = ""
) -> None:
    """Promise a total for all runs on a data set, in a new book."""
    from graphveil.privacy.budget import BudgetBook

    with BudgetBook.create(book, name or book.stem, total.promise()) as made:
        typer.echo("\n".join(_lines(made.accounts())))


@budget.command("open")
@spread
def open_account(book: Book, total: TotalFlags) -> None:
    """Promise a total under one more notion, before the first run is charged."""
    from graphveil.privacy.budget import BudgetBook

    with BudgetBook(book) as known:
        known.open_account(total.promise())
        typer.echo("\n".join(_lines(known.accounts())))


@budget.command("show")
def show(
    book: Book,
    plot: Annotated[Path | None, flag("--plot FILE", "Draw spent and left over time.")] = None,
    as_json: opt.AsJson = False,
) -> None:
    """What is promised, spent and left."""
    from graphveil.privacy.budget import BudgetBook
    from graphveil.privacy.budget.statement import cautions

    opt.check_picture(plot)
    with BudgetBook(book) as known:
        accounts, entries = known.accounts(), known.entries()
        waiting = {entry.run for entry in entries if entry.kind == "reserve"} - {
            entry.run for entry in entries if entry.kind == "settle"
        }
        body: dict[str, Any] = {
            "book": known.name,
            "head": known.head,
            "accounts": [account.to_json() for account in accounts],
            "reserved": len(waiting),
            "cautions": cautions(entries),
        }
        if plot is not None:
            from graphveil.report.budget import draw

            draw(known.name, entries, plot)
    if as_json:
        opt.show(body)
        return
    typer.echo(f"budget of {body['book']}")
    typer.echo("\n".join(_lines(accounts)))
    if waiting:
        typer.echo(f"{len(waiting)} of these runs have not been settled: they count as if all was released")
    for line in body["cautions"]:
        typer.echo(f"BUT: {line}")
    typer.echo(f"head {body['head']}")


@budget.command("history")
def history(book: Book, as_json: opt.AsJson = False) -> None:
    """Every entry, and what was spent and left after it."""
    from graphveil.privacy.budget import BudgetBook
    from graphveil.privacy.budget.statement import history as replayed

    with BudgetBook(book) as known:
        told = replayed(known.entries())
    if as_json:
        opt.show(told)
        return
    for entry in told:
        what = entry.get("method") or entry.get("note") or ""
        after = "; ".join(f"{_shown(a['spent'])} of {a['promised']:g} spent" for a in entry["after"].values())
        typer.echo(
            f"{entry['number']:>4}  {entry['time'][:19]}  {entry['kind']:<8} {entry['run'][:8]:<8}  {what:<12} {after}"
        )


@budget.command("export")
def export(book: Book, out: Annotated[Path, flag("--out FILE", "A .json, .jsonl or .csv file.")]) -> None:
    """Write all entries with their digests to a file, for an archive or an auditor."""
    from graphveil.privacy.budget import BudgetBook
    from graphveil.privacy.budget.statement import exported

    with BudgetBook(book) as known:
        exported(known, out)
    typer.echo(f"wrote {out}")


@budget.command("verify")
def verify(
    book: Book,
    head: Annotated[list[str] | None, flag("--head DIGEST", "A head that was noted elsewhere; repeatable.")] = None,
    run: Annotated[list[Path] | None, flag("--run DIR", "A run folder that this book paid for; repeatable.")] = None,
) -> None:
    """Check the chain of entries and count everything again; exit code 1 if something is wrong."""
    from graphveil.files import read_json
    from graphveil.privacy.budget import BudgetBook
    from graphveil.privacy.budget.book import RECEIPT

    noted = list(head or [])
    for folder in run or []:
        noted.append(str(read_json(folder / RECEIPT)["head"]))
    with BudgetBook(book) as known:
        faults = known.verify(noted)
        accounts = known.accounts() if not faults else []
    for fault in faults:
        typer.echo(f"NOT WHOLE: {fault}")
    if faults:
        raise typer.Exit(1)
    typer.echo("\n".join(["the chain is whole, and counted again it comes to", *_lines(accounts)]))
    typer.echo("whoever can write this file can write a new chain: compare a head noted elsewhere (--head, --run)")


def _lines(accounts: Iterable[Account]) -> list[str]:
    lines = []
    for account in accounts:
        promise: Any = account.promise
        lines.append(
            f"{account.notion}: {_shown(account.spent)} of epsilon {promise.epsilon:g} spent in {len(account.charges)} runs "
            f"(delta {promise.delta:g}); a run of up to epsilon {account.left:.4g} still fits"
        )
        lines += [f"  {kind}, if always of this kind: {_shown(cost)}" for kind, cost in account.spent_by_kind.items()]
        if not account.exact:
            lines.append("  not all noise is Gaussian: this holds if no run was chosen by looking at earlier results")
    return lines


def _shown(epsilon: float | None) -> str:
    return "no finite epsilon" if epsilon is None else f"{epsilon:.4g}"
