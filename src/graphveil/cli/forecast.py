"""``graphveil forecast``: what accuracy to expect, before any budget is spent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphveil.cli import options as opt
from graphveil.cli.flags import PromiseFlags, settled
from graphveil.cli.options import flag
from graphveil.cli.sweep import EngineFlags
from graphveil.errors import InputError

if TYPE_CHECKING:
    from graphveil.experiments.forecast import Forecast
    from graphveil.privacy.facts import PublicFacts
    from graphveil.privacy.promise import Promise

EPSILONS = "0.5,1,2,4,8"
WITHOUT_EPSILON = ("local", "none")
KNOWN_SPLITS = ("random", "official")
READS_NOTHING = "nothing private was read: no features, labels or edges, and no budget was spent"
UNSTATED = (
    "homophily is a range: graphs at the end of several ranges at once (say, strong features as well) lie outside"
)
GUESSED = "a guess, not a bound: real features and contacts have structure that generated ones lack"
CHECKED = "docs/forecast.md shows forecasts beside measured accuracies of real graphs"


def forecast(
    method: opt.MethodName,
    flags: PromiseFlags,
    engine: EngineFlags,
    epsilons: Annotated[str | None, flag("--epsilons LIST", f"With commas (default: {EPSILONS}).")] = None,
    data: Annotated[str | None, flag("--data NAME|PATH", "Take sizes from these data; nothing else is used.")] = None,
    nodes: Annotated[int | None, flag("--nodes N", "Without --data: number of nodes.")] = None,
    features: Annotated[int | None, flag("--features N", "Without --data: feature columns.")] = None,
    classes: Annotated[int | None, flag("--classes N", "Number of classes.")] = None,
    split: opt.Split = "random",
    homophily: Annotated[
        str | None, flag("--homophily H|LOW-HIGH", "Guess: share of the edges inside a class (default: a range).")
    ] = None,
    feature_strength: Annotated[
        str | None,
        flag("--feature-strength S|LOW-HIGH", "Guess: 0, features say nothing about the class, to 1, everything."),
    ] = None,
    mean_degree: Annotated[
        str | None, flag("--mean-degree D|LOW-HIGH", "Guess: contacts per person (default: a range).")
    ] = None,
    stand_in: Annotated[
        str | None, flag("--stand-in NAME", "Use this public data set as it is, instead of generated graphs.")
    ] = None,
    scenarios: Annotated[
        int | None, flag("--scenarios N", "Graphs to generate (12), or splits of --stand-in (5).", min=2)
    ] = None,
    seed: Annotated[int, flag("--seed S", "Of the generated graphs and their noise.", min=0)] = 0,
    plot: Annotated[Path | None, flag("--plot FILE", "Draw accuracy against epsilon.")] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Say what accuracy METHOD will reach, from public sizes and stated guesses alone."""
    from graphveil.experiments import forecast as room
    from graphveil.experiments.engines.choose import choose
    from graphveil.experiments.guesses import Guesses

    opt.check_picture(plot)
    chosen, promises = _promised(flags, method, epsilons)
    if plot is not None and flags.level in WITHOUT_EPSILON:
        raise InputError(f"--plot draws accuracy against epsilon; --level {flags.level} has none")
    facts, notes = _facts(data, split, nodes, features, classes, flags)
    stated = {"homophily": homophily, "feature_strength": feature_strength, "mean_degree": mean_degree}
    where = choose(engine.engine, engine.workers, engine.threads, engine.address)
    with opt.progress_bar(lines=True) as progress:
        how: dict[str, Any] = {"seed": seed, "progress": progress}
        if stand_in is not None:
            given = [f"--{name.replace('_', '-')}" for name, value in stated.items() if value is not None]
            if given:
                raise InputError(f"{given[0]} is a guess about generated graphs; --stand-in has its own")
            if data is not None and Path(stand_in).resolve() == Path(data).resolve():
                raise InputError(
                    "--stand-in is used with its labels and edges: name another, public data set than --data"
                )
            found = room.forecast_from(
                chosen, promises, stand_in, where, facts=facts, splits=scenarios or room.SPLITS, **how
            )
        elif facts is None:
            raise InputError("forecast needs --data, or --nodes, --features and --classes, or --stand-in NAME")
        else:
            guesses = Guesses.about(facts, **stated)
            found = room.forecast(chosen, promises, facts, guesses, where, scenarios=scenarios or room.SCENARIOS, **how)
    trust = [*notes, *_trust(found)]
    if plot is not None:
        from graphveil.report.forecast import draw

        draw(found, plot)
    if as_json:
        opt.show(found.to_json() | {"seed": seed, "notes": trust})
        return
    typer.echo(_table(found))
    for line in trust:
        typer.echo(f"note: {line}")
    if plot is not None:
        typer.echo(f"written to {plot}")


def _promised(flags: PromiseFlags, name: str, epsilons: str | None) -> tuple[Any, list[Promise]]:
    """The method and its promises, one per epsilon; at levels without an epsilon one."""
    if epsilons is not None and flags.epsilon is not None:
        raise InputError("give --epsilons or --epsilon, not both")
    chosen = flags.method(name)
    if flags.level in WITHOUT_EPSILON:
        if epsilons is not None:
            raise InputError(f"--level {flags.level} takes no --epsilons")
        asked: list[float | None] = [flags.epsilon]
    else:
        asked = (
            [opt.number(text, "--epsilons") for text in opt.several(epsilons or EPSILONS)]
            if flags.epsilon is None
            else [flags.epsilon]
        )
    if len(set(asked)) < len(asked) or not asked:
        raise InputError("--epsilons: name each epsilon once, and at least one")
    promises = [replace(flags, epsilon=epsilon).promise(chosen) for epsilon in asked]
    return settled(chosen, promises[0]), promises


def _facts(
    data: str | None, split: str, nodes: int | None, features: int | None, classes: int | None, flags: PromiseFlags
) -> tuple[PublicFacts | None, tuple[str, ...]]:
    """Public sizes, and what was assumed about them."""
    from graphveil.privacy.facts import PublicFacts

    if split.partition(":")[0] not in KNOWN_SPLITS:
        raise InputError(f"--split {split} reads labels or edges: a forecast takes {' or '.join(KNOWN_SPLITS)}")
    if data is not None:
        if nodes is not None or features is not None:
            raise InputError("--nodes and --features are for graphs without --data")
        from graphveil.experiments.forecast import public_facts

        loaded = opt.load_data(data, 0, None, split)
        if classes is not None:
            loaded.num_classes = classes
        return public_facts(loaded)
    if nodes is None or features is None or classes is None:
        if any(size is not None for size in (nodes, features, classes)):
            raise InputError("give all of --nodes, --features and --classes, or --data")
        return None, ()
    return PublicFacts(nodes, features, classes, flags.directed), ()


def _table(found: Forecast) -> str:
    from graphveil.experiments.forecast import QUANTILES, THIRDS
    from graphveil.experiments.summary import Group
    from graphveil.experiments.tables import Table, promise_title

    low, high = (f"{100 * share:g}" for share in QUANTILES)
    parts = [third for third in THIRDS if all(third in band.by_strength for band in found.bands)]
    head = ("budget", "median", f"{low} to {high} %", *(f"{third} features" for third in parts))
    body = tuple(
        (
            band.budget,
            f"{100 * band.median:.1f}",
            f"{100 * band.low:.1f} to {100 * band.high:.1f}",
            *(f"{100 * band.by_strength[third]:.1f}" for third in parts),
        )
        for band in found.bands
    )
    title = f"forecast of test accuracy: {found.method.name}, {promise_title(Group((found.rows[0],)))}"
    return Table(title, head, body).text()


def _trust(found: Forecast) -> list[str]:
    """What it rests on, and how far it goes."""
    from graphveil.experiments.forecast import MATTERS

    lines = [READS_NOTHING]
    if found.facts is not None:
        kinds = ", ".join(f"{count} {kind}" for kind, count in found.facts.kinds.items() if count)
        lines.append(
            f"sizes: {found.facts.nodes} nodes ({kinds}), {found.facts.features} features, {found.facts.classes} classes"
        )
    if found.guesses is not None:
        told = ", ".join(f"{name.replace('_', ' ')} {guess}" for name, guess in vars(found.guesses).items())
        lines.append(
            f"guesses: {told}; one generated graph for each of {len({row['seed'] for row in found.rows})} combinations"
        )
        lines += [] if found.guesses.homophily.known else [UNSTATED]
    if found.stand_in is not None:
        lines.append(f"{found.stand_in} as it is stands in, sizes included: trust it as far as your data resemble it")
    strongest = next(iter(found.matters.items()), None)
    if strongest is not None and abs(strongest[1]) >= MATTERS:
        name = strongest[0].replace("_", "-")
        lines.append(f"{name.replace('-', ' ')} moves it most: if you can say more about it, give --{name}")
    if any(row["status"] == "done" and row["epsilon_target"] is not None and not row["holds"] for row in found.rows):
        lines.append("the promise would not hold: this mode has known gaps, 'graphveil plan' names them")
    if found.failed:
        lines.append(f"{found.failed} of {len(found.rows)} runs failed and are left out")
    return [*lines, f"{GUESSED}; {CHECKED}"]
