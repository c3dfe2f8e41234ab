"""``graphveil bench``: side-by-side measurements in one run, as ratios."""

from __future__ import annotations

from typing import Annotated

import typer

from graphveil.cli import options as opt
from graphveil.cli.app import PLAIN, HelpfulGroup
from graphveil.cli.options import flag

bench = typer.Typer(cls=HelpfulGroup, **PLAIN)


@bench.callback()
def group() -> None:
    """Measure speed side by side, in one run."""


@bench.command("dp-gradients")
def dp_gradients(
    repeats: Annotated[int, flag("--repeats", "Timed rounds per variant.")] = 30,
    as_json: opt.AsJson = False,
) -> None:
    """CPU time of a private gradient step against plain training and Opacus."""
    from graphveil.bench import dp_gradients as benchmark

    with opt.progress_bar() as progress:
        result = benchmark.run(repeats=repeats, progress=progress)
    opt.show(result if as_json else benchmark.as_text(result))
