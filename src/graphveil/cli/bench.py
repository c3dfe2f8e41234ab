"""``graphveil bench``: side-by-side measurements in one run, as ratios."""

from __future__ import annotations

from pathlib import Path
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


@bench.command()
def scale(
    methods: Annotated[str, flag("--methods NAMES", "With commas.")] = "ballot,roster",
    sizes: Annotated[
        str | None,
        flag(
            "--sizes N:M[:D],...",
            "People, undirected edges and features. Default: each varied around 200,000, 2,000,000, 32.",
        ),
    ] = None,
    forms: Annotated[str, flag("--forms NAMES", "Where records are: folder, memory.")] = "folder,memory",
    threads: Annotated[int, flag("--threads N", "Of every run.", min=1)] = 1,
    keep: Annotated[
        Path | None, flag("--keep DIR", "Keep tables and imported graphs here, and use those that are.")
    ] = None,
    plot: Annotated[Path | None, flag("--plot FILE", "Draw the curves (.svg, .png, .pdf).")] = None,
    as_json: opt.AsJson = False,
) -> None:
    """CPU time and peak memory from tables to predictions, against people, edges and features."""
    from graphveil.bench import scale as benchmark

    opt.check_picture(plot)
    asked = [benchmark.Size.read(text) for text in opt.several(sizes)] if sizes else []
    with opt.progress_bar() as progress:
        result = benchmark.run(opt.several(methods), asked, opt.several(forms), threads, keep, progress)
    if plot is not None:
        from graphveil.bench.scale_plot import draw

        draw(result, plot)
    opt.show(result if as_json else benchmark.as_text(result))
