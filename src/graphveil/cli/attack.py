"""``graphveil attack``: what an adversary gets out of a model, a saved run or released reports."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphveil.cli import options as opt
from graphveil.errors import InputError
from graphveil.methods.base import Progress

if TYPE_CHECKING:
    from graphveil.attacks import AttackResult

NAMES = ("link-teller", "lsa2", "link-stealing", "attribute-inference", "membership")
NEED_TARGET = ("link-teller", "lsa2", "membership")
LINK_ATTACKS = ("link-teller", "lsa2", "link-stealing")
DEFAULT_COUNT = 500
MOST_PAIRS = 5000  # link stealing learns from all edges, up to so many


@dataclass(frozen=True)
class Victim:
    """What is attacked: a method under a promise, with a trained model or one still to be trained."""

    method: Any
    promise: Any
    model: Any
    described: dict[str, Any]


def attack(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of: {', '.join(NAMES)}.")],
    data: opt.DataName,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="METHOD", help="Train this method and attack it; flags as in train."),
    ] = None,
    run: Annotated[Path | None, typer.Option("--run", metavar="RUN", help="Attack a folder of 'train --out'.")] = None,
    pairs: Annotated[
        str, typer.Option("--pairs", help="Link attacks: balanced, degree-matched or density.")
    ] = "balanced",
    nodes: Annotated[
        int | None,
        typer.Option("--nodes", metavar="N", help="So many edges and non-edges, or for density pairs among N nodes."),
    ] = None,
    reports: Annotated[
        str | None,
        typer.Option("--reports", help="The attacker holds reports: multi-bit, direction, piecewise or laplace."),
    ] = None,
    attribute: Annotated[
        str, typer.Option("--attribute", help="attribute-inference: the hidden column, by name or number.")
    ] = "Alternative",
    model: Annotated[
        str, typer.Option("--attack-model", help="mlp, rf, knn, lr, svm, several with commas, or all.")
    ] = "mlp",
    combine: Annotated[
        str,
        typer.Option(
            "--combine", help="link-stealing: hadamard-difference, concat, plus, multiply, average, several, or all."
        ),
    ] = "hadamard-difference",
    distance: Annotated[str, typer.Option("--distance", help="lsa2: the headline distance.")] = "correlation",
    no_reference: Annotated[
        bool, typer.Option("--no-reference", help="lsa2: do not train the same method without edges.")
    ] = False,
    prepare: opt.Prepare = None,
    split: opt.Split = "random",
    level: Annotated[
        str | None, typer.Option("--level", help="edge, k-neighbor, node, local; none if no epsilon is given.")
    ] = None,
    epsilon: opt.EpsilonValue = None,
    delta: opt.DeltaValue = None,
    k: opt.KValue = None,
    adjacency: opt.AdjacencyName = None,
    relation: opt.RelationName = "zero-out",
    mode: opt.ModeName = None,
    max_degree: opt.DegreeValue = None,
    directed: opt.Directed = False,
    features_epsilon: opt.FeaturesEpsilon = None,
    labels_epsilon: opt.LabelsEpsilon = None,
    edges_epsilon: opt.EdgesEpsilon = None,
    seed: opt.Seed = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Write the ROC curves on logarithmic axes.")
    ] = None,
    settings: opt.Settings = None,
    as_json: opt.AsJson = False,
) -> None:
    """Attack a model, a run or released reports, and print what the attacker reached beside controls without a model."""
    if name not in NAMES:
        raise InputError(f"unknown attack {name!r}; known are: {', '.join(NAMES)}")
    flags = {
        "level": level, "epsilon": epsilon, "delta": delta, "k": k, "adjacency": adjacency, "relation": relation,
        "mode": mode, "max_degree": max_degree, "directed": directed, "features": features_epsilon,
        "labels": labels_epsilon, "edges": edges_epsilon, "settings": settings,
    }  # fmt: skip
    _check(name, target, run, reports, flags)
    if run is not None:
        victim = _saved(run)
        seed = victim.model.certificate.seed if seed is None else seed
    else:
        victim = _asked_for(target, flags)
    graph_data = opt.load_data(data, seed, prepare, split)
    started = time.perf_counter()
    with opt.progress_bar() as progress:
        if name == "attribute-inference":
            result = _attributes(graph_data, attribute, _several(model), reports, epsilon, seed, progress)
        elif name == "link-stealing":
            choices = (_several(combine), _several(model))
            result = _stealing(graph_data, pairs, nodes, *choices, reports, epsilon, seed, progress)
        elif name == "membership":
            result = _membership(victim, graph_data, model, seed, progress)
        else:
            result = _links(name, victim, graph_data, pairs, nodes, distance, not no_reference, seed, progress)
    if plot is not None:
        _draw(result, plot)
    body = {**result.to_json(), "dataset": data, "target": victim.described if victim else None, "seed": seed}
    body |= {"pairs": pairs if name in LINK_ATTACKS else None, "seconds": round(time.perf_counter() - started, 3)}
    if as_json:
        opt.print_json(body)
        return
    if victim is not None:
        typer.echo(
            "target: " + ", ".join(f"{key} {value}" for key, value in victim.described.items() if value is not None)
        )
    typer.echo(str(result))
    if plot is not None:
        typer.echo(f"plot written to {plot}")


def _check(name: str, target: str | None, run: Path | None, reports: str | None, flags: dict[str, Any]) -> None:
    """Which options belong together."""
    if name in NEED_TARGET:
        if (target is None) == (run is None):
            raise InputError(f"{name} attacks a model: give either --target METHOD or --run RUN")
        if reports is not None:
            raise InputError("--reports belongs to link-stealing and attribute-inference")
        given = [flag for flag, value in flags.items() if value not in (None, False, "zero-out")]
        if run is not None and given:
            raise InputError(f"a saved run has its own promise and settings: leave --{given[0].replace('_', '-')} out")
        return
    if target is not None or run is not None:
        raise InputError(f"{name} queries no model: it attacks the data, or reports with --reports NAME --epsilon E")
    if (reports is None) != (flags["epsilon"] is None):
        raise InputError("--reports and --epsilon belong together: how rows were randomised, and with what budget")


def _saved(run: Path) -> Victim:
    from graphveil.runs.load import load_model

    model = load_model(run)
    promise = model.certificate.promise
    described = {
        "method": model.method.name,
        "run": str(run),
        "promise": str(promise),
        "epsilon": model.certificate.epsilon,
    }
    return Victim(model.method, promise, model, described)


def _asked_for(target: str | None, flags: dict[str, Any]) -> Victim | None:
    if target is None:
        return None
    method = opt.build_method(target, flags["mode"], flags["settings"])
    parts = (flags["features"], flags["labels"], flags["edges"])
    level = flags["level"] or ("local" if any(parts) else "none" if flags["epsilon"] is None else "node")
    central = {key: flags[key] for key in ("epsilon", "delta", "k", "adjacency", "max_degree")}
    promise = opt.build_local(*parts, level=level, **central) or opt.build_promise(
        method, level, flags["epsilon"], flags["delta"], flags["k"], flags["adjacency"], flags["relation"],
        flags["max_degree"], flags["directed"],
    )  # fmt: skip
    described = {"method": target, "mode": flags["mode"], "level": level, "epsilon": flags["epsilon"]}
    described |= dict(zip(("features_epsilon", "labels_epsilon", "edges_epsilon"), parts, strict=True))
    return Victim(method, promise, None, described)


def _links(
    name: str,
    victim: Victim,
    data: Any,
    pairs: str,
    nodes: int | None,
    distance: str,
    reference: bool,
    seed: int | None,
    progress: Progress,
) -> AttackResult:
    from graphveil.attacks import LinkTeller, Lsa2, sample_pairs
    from graphveil.attacks.target import as_graph, posteriors

    coin = seed or 0
    game = sample_pairs(as_graph(data), pairs, DEFAULT_COUNT if nodes is None else nodes, coin)
    model = victim.model or victim.method.fit(data, victim.promise, seed=seed, progress=progress)
    if name == "link-teller":
        return LinkTeller().run(model, data, game, seed=coin, progress=progress)
    without = None
    if reference and victim.model is None:
        import copy

        bare = copy.copy(data)
        bare.edge_index = data.edge_index[:, :0]
        without = posteriors(victim.method.fit(bare, victim.promise, seed=seed), bare)
    return Lsa2(distance).run(model, data, game, reference=without, seed=coin)


def _stealing(
    data: Any,
    pairs: str,
    nodes: int | None,
    combinations: tuple[str, ...],
    models: tuple[str, ...],
    reports: str | None,
    epsilon: float | None,
    seed: int | None,
    progress: Progress,
) -> AttackResult:
    from graphveil.attacks import Knowledge, LinkStealing, feature_randomizer, sample_pairs
    from graphveil.attacks.link_stealing import COMBINATIONS, KNOWN_SHARE
    from graphveil.attacks.models import NAMES as MODELS
    from graphveil.attacks.pairs import Edges
    from graphveil.attacks.target import as_graph

    graph, coin = as_graph(data), seed or 0
    if nodes is None:
        nodes = min(len(Edges(graph).keys), MOST_PAIRS) if pairs != "density" else DEFAULT_COUNT
    game = sample_pairs(graph, pairs, nodes, coin)
    if reports is None:
        known = Knowledge.of(graph, KNOWN_SHARE)
    else:
        known = Knowledge.released_by(graph, feature_randomizer(reports, epsilon, graph.features), seed, KNOWN_SHARE)
    chosen = LinkStealing(combinations or tuple(COMBINATIONS), models or MODELS)
    return chosen.run(graph, game, known, seed=coin, progress=progress)


def _attributes(
    data: Any,
    attribute: str,
    models: tuple[str, ...],
    reports: str | None,
    epsilon: float | None,
    seed: int | None,
    progress: Progress,
) -> AttackResult:
    from graphveil.attacks import AttributeInference, HiddenAttribute, feature_randomizer
    from graphveil.attacks.models import NAMES as MODELS

    game = HiddenAttribute.of(data, attribute)
    if reports is not None:
        game = game.release(feature_randomizer(reports, epsilon, game.rows.shape[1]), seed)
    return AttributeInference(models or MODELS).run(game, seed=seed or 0, progress=progress)


def _membership(victim: Victim, data: Any, model: str, seed: int | None, progress: Progress) -> AttackResult:
    from graphveil.attacks import Membership

    chosen = Membership(model)
    if victim.model is not None:
        return chosen.run_on(victim.model, victim.method, victim.promise, data, seed=seed or 0)
    return chosen.run(victim.method, victim.promise, data, seed=seed or 0, progress=progress)


def _several(text: str) -> tuple[str, ...]:
    """Names separated by commas; empty for ``all``."""
    return () if text == "all" else tuple(part.strip() for part in text.split(","))


def _draw(result: AttackResult, path: Path) -> None:
    from graphveil.report.attack_plots import roc_plot

    try:
        roc_plot(result, path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be written: {error}") from None


def register(app: typer.Typer) -> None:
    app.command()(attack)
