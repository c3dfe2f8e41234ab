"""``graphveil bench``: side-by-side measurements in one run, as ratios."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from graphveil.cli import options as opt

bench = typer.Typer(help="Measure speed side by side, in one run.", no_args_is_help=True, rich_markup_mode=None)


@bench.callback()
def group() -> None:
    """Measure speed side by side, in one run."""


@bench.command("dp-gradients")
def dp_gradients(
    repeats: Annotated[int, typer.Option("--repeats", help="Timed rounds per variant.")] = 30,
    as_json: opt.AsJson = False,
) -> None:
    """CPU time of a private gradient step against plain training and Opacus."""
    from graphveil.bench import dp_gradients as benchmark

    with opt.progress_bar() as progress:
        result = benchmark.run(repeats=repeats, progress=lambda done, total: progress("dp-gradients", done, total))
    if as_json:
        opt.print_json(result)
    else:
        _show(result)


def _show(result: dict[str, Any]) -> None:
    typer.echo(benchmark_text(result))


def benchmark_text(result: dict[str, Any]) -> str:
    from graphveil.bench.dp_gradients import as_text

    return as_text(result)


def register(app: typer.Typer) -> None:
    app.add_typer(bench, name="bench")
