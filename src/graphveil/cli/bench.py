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


@bench.command("end-to-end")
def end_to_end(
    data: Annotated[str, flag("--data NAME", "A data set by name.")] = "facebook-pages",
    epsilon: Annotated[float, flag("--epsilon E", "Of node level: record adjacency, zero-out.")] = 8.0,
    seeds: Annotated[int, flag("--seeds N", "Runs of ours per method.", min=1)] = 3,
    peer_seeds: Annotated[int | None, flag("--peer-seeds N", "Runs of the peer; as many unless given.", min=1)] = None,
    first_seed: Annotated[int, flag("--first-seed S", "Settings were chosen on 0 to 5.", min=0)] = 30,
    methods: Annotated[str, flag("--methods LIST", "gap, dpdgc or both.")] = "gap,dpdgc",
    clipping: Annotated[
        str, flag("--clipping ghost|hooks", "How Opacus clips; hooks is its default, ghost faster.")
    ] = "ghost",
    as_json: opt.AsJson = False,
) -> None:
    """CPU time and accuracy of whole runs against PyG and Opacus, at one promise."""
    from graphveil.bench import end_to_end as benchmark

    ours = range(first_seed, first_seed + seeds)
    peer = range(first_seed, first_seed + (seeds if peer_seeds is None else peer_seeds))
    with opt.progress_bar() as progress:
        result = benchmark.run(data, epsilon, ours, peer, opt.several(methods), clipping, progress)
    opt.show(result if as_json else benchmark.as_text(result))


@bench.command("aggregate")
def aggregate(
    nodes: Annotated[int, flag("--nodes N", "Lists, and rows of the table.", min=1)] = 1_000_000,
    edges: Annotated[int, flag("--edges M", "Entries of all lists.", min=1)] = 10_000_000,
    width: Annotated[int, flag("--width W", "Numbers per row.", min=1)] = 16,
    repeats: Annotated[int, flag("--repeats", "Timed rounds.", min=1)] = 5,
    as_json: opt.AsJson = False,
) -> None:
    """CPU time of sums along lists against scipy's product and the memory's bandwidth."""
    from graphveil.bench import aggregate as benchmark

    with opt.progress_bar() as progress:
        result = benchmark.run(nodes, edges, width, repeats, progress)
    opt.show(result if as_json else benchmark.as_text(result))
