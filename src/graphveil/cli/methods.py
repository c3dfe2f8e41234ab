"""``graphveil methods``: what there is, whom to trust, what is proved."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from graphveil.cli import options as opt

WIDE = 120  # columns that the table needs


def methods(
    name: Annotated[str | None, typer.Argument(help="Show one method's card.")] = None, as_json: opt.AsJson = False
) -> None:
    """List the methods, or show one method's card."""
    from graphveil.methods import registry

    if name == registry.AUTO:
        _rules(as_json)
        return
    found = registry.methods() if name is None else registry.describe(name)
    if as_json:
        opt.show(found)
    elif isinstance(found, dict):
        _card(found)
    else:
        _table(found)


def _table(found: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    if Console().width < WIDE:
        for card in found:
            levels, modes = ", ".join(card["levels"]) or "none", ", ".join(card["modes"])
            typer.echo(f"{card['name']} ({levels}; {modes})")
            typer.echo(_filled(card["summary"]))
        typer.echo("\n'graphveil methods NAME' shows what each protects and proves")
        return
    table = Table(title="methods")
    for column in ("name", "levels", "modes", "what it does", "protects"):
        table.add_column(column)
    for card in found:
        levels, modes = ", ".join(card["levels"]) or "none", ", ".join(card["modes"])
        table.add_row(card["name"], levels, modes, card["summary"], card["protects"])
    Console().print(table)


def _filled(text: str) -> str:
    import shutil
    import textwrap

    width = max(shutil.get_terminal_size().columns, 40)
    return textwrap.fill(text, width, initial_indent="  ", subsequent_indent="  ")


def _rules(as_json: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    from graphveil.methods.auto import rules

    if as_json:
        opt.show({"name": "auto", "rules": rules()})
        return
    table = Table(title="auto: chosen by the promise, never by the data")
    for column in ("promise", "method", "why"):
        table.add_column(column)
    for rule in rules():
        table.add_row(*rule.values())
    Console().print(table)


def _card(card: dict[str, Any]) -> None:
    from graphveil.methods.registry import VERBS

    typer.echo(f"{card['name']}: {card['summary']}")
    for key in ("paper", "trust", "formula", "protects", "public", "when", "readings"):
        if card[key]:
            typer.echo(f"  {key:<9} {card[key]}")
    for mode, guarantees in card["supports"].items():
        typer.echo(f"  {mode} {VERBS[mode]}:")
        for found in guarantees:
            typer.echo("    " + ", ".join(f"{key} {found[key]}" for key in ("level", "adjacency", "relation")))
    for gap in card["gaps"]:
        typer.echo(f"  gap {gap['code']} (published): {gap['text']}")
    for data, options in card["presets"].items():
        typer.echo(f"  preset {data}: " + ", ".join(f"{key}={value}" for key, value in options.items()))
    for defaults in filter(None, (card["defaults"], card["published_defaults"])):
        typer.echo("  defaults  " + ", ".join(f"{key}={value}" for key, value in defaults.items()))
