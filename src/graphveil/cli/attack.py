"""``graphveil attack``: what an adversary gets out of a model, a saved run or released reports."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphveil.cli import options as opt
from graphveil.cli.flags import PromiseFlags
from graphveil.errors import InputError

if TYPE_CHECKING:
    from graphveil.attacks import AttackResult, Pairs
    from graphveil.progress import Progress

DEFAULT_COUNT = 500
MOST_PAIRS = 5000  # link stealing learns from all edges, up to so many


@dataclass(frozen=True)
class TargetFlags(PromiseFlags):
    """The flags of a promise; without a level it follows from the budgets that are given."""

    level: Annotated[
        str | None, typer.Option("--level", help="edge, k-neighbor, node, local; none if no epsilon is given.")
    ] = None


@dataclass(frozen=True)
class GameFlags:
    """What is guessed, from what, and how."""

    pairs: Annotated[str, typer.Option("--pairs", help="Link attacks: balanced, degree-matched or density.")] = (
        "balanced"
    )
    nodes: Annotated[
        int | None,
        typer.Option("--nodes", metavar="N", help="So many edges and non-edges, or for density pairs among N nodes."),
    ] = None
    reports: Annotated[
        str | None,
        typer.Option("--reports", help="The attacker holds reports: multi-bit, direction, piecewise or laplace."),
    ] = None
    attribute: Annotated[
        str, typer.Option("--attribute", help="attribute-inference: the hidden column, by name or number.")
    ] = "Alternative"
    model: Annotated[
        str, typer.Option("--attack-model", help="mlp, rf, knn, lr, svm, several with commas, or all.")
    ] = "mlp"
    combine: Annotated[
        str,
        typer.Option(
            "--combine", help="link-stealing: hadamard-difference, concat, plus, multiply, average, several, or all."
        ),
    ] = "hadamard-difference"
    distance: Annotated[str, typer.Option("--distance", help="lsa2: the headline distance.")] = "correlation"
    no_reference: Annotated[
        bool, typer.Option("--no-reference", help="lsa2: do not train the same method without edges.")
    ] = False

    def models(self) -> tuple[str, ...]:
        from graphveil.attacks.models import NAMES

        return _several(self.model) or NAMES

    def combinations(self) -> tuple[str, ...]:
        from graphveil.attacks.link_stealing import COMBINATIONS

        return _several(self.combine) or tuple(COMBINATIONS)


def _several(text: str) -> tuple[str, ...]:
    """Names separated by commas; empty for ``all``."""
    return () if text == "all" else tuple(part.strip() for part in text.split(","))


@dataclass(frozen=True)
class Victim:
    """A method under a promise, and its trained model or a way to train one."""

    method: Any
    promise: Any
    described: dict[str, Any]
    model: Any = None

    @classmethod
    def saved(cls, run: Path) -> Victim:
        from graphveil.runs.load import load_model

        model = load_model(run)
        promise, epsilon = model.certificate.promise, model.certificate.epsilon
        described = {"method": model.method.name, "run": str(run), "promise": str(promise), "epsilon": epsilon}
        return cls(model.method, promise, described, model)

    @classmethod
    def asked_for(cls, target: str, flags: TargetFlags) -> Victim:
        method = flags.method(target)
        promise = flags.promise(method)
        described = {"method": target, "mode": flags.mode, "level": str(promise.level), "epsilon": flags.epsilon}
        parts = ("features_epsilon", "labels_epsilon", "edges_epsilon")
        return cls(method, promise, described | {part: getattr(flags, part) for part in parts})


@dataclass(frozen=True)
class Attempt:
    """One attack to run: its flags, whom it is on, and the coins."""

    game: GameFlags
    victim: Victim | None
    epsilon: float | None
    data: Any
    seed: int | None
    progress: Progress

    @property
    def coin(self) -> int:
        return self.seed or 0

    def randomizer(self, width: int) -> Any:
        """The randomizer of the reports the attacker holds, or None for clean rows."""
        from graphveil.attacks import feature_randomizer

        if self.game.reports is None or self.epsilon is None:
            return None
        return feature_randomizer(self.game.reports, self.epsilon, width)

    def pairs(self, default: int = DEFAULT_COUNT) -> Pairs:
        """The pairs whose edges are to be guessed."""
        from graphveil.attacks import sample_pairs

        count = default if self.game.nodes is None else self.game.nodes
        return sample_pairs(self.data, self.game.pairs, count, self.coin)

    def target(self) -> tuple[Victim, Any]:
        """The victim and its model, trained now unless it was saved."""
        assert self.victim is not None
        victim = self.victim
        model = victim.model or victim.method.fit(self.data, victim.promise, seed=self.seed, progress=self.progress)
        return victim, model


def _link_teller(attempt: Attempt) -> AttackResult:
    from graphveil.attacks import LinkTeller

    pairs = attempt.pairs()
    _, model = attempt.target()
    return LinkTeller().run(model, attempt.data, pairs, seed=attempt.coin, progress=attempt.progress)


def _lsa2(attempt: Attempt) -> AttackResult:
    from graphveil.attacks import Lsa2
    from graphveil.attacks.lsa2 import posteriors_without_edges

    pairs = attempt.pairs()
    victim, model = attempt.target()
    reference = None
    if not attempt.game.no_reference and victim.model is None:
        reference = posteriors_without_edges(victim.method, victim.promise, attempt.data, attempt.seed)
    return Lsa2(attempt.game.distance).run(model, attempt.data, pairs, reference=reference, seed=attempt.coin)


def _link_stealing(attempt: Attempt) -> AttackResult:
    from graphveil.attacks import Knowledge, LinkStealing
    from graphveil.attacks.link_stealing import KNOWN_SHARE
    from graphveil.attacks.pairs import Edges
    from graphveil.attacks.target import as_graph

    game, graph = attempt.game, as_graph(attempt.data)
    most = DEFAULT_COUNT if game.pairs == "density" else min(len(Edges(graph).keys), MOST_PAIRS)
    pairs = attempt.pairs(most)
    randomizer = attempt.randomizer(graph.features)
    known = (
        Knowledge.of(graph, KNOWN_SHARE)
        if randomizer is None
        else Knowledge.released_by(graph, randomizer, attempt.seed, KNOWN_SHARE)
    )
    chosen = LinkStealing(game.combinations(), game.models())
    return chosen.run(graph, pairs, known, seed=attempt.coin, progress=attempt.progress)


def _attribute_inference(attempt: Attempt) -> AttackResult:
    from graphveil.attacks import AttributeInference, HiddenAttribute

    hidden = HiddenAttribute.of(attempt.data, attempt.game.attribute)
    randomizer = attempt.randomizer(hidden.rows.shape[1])
    if randomizer is not None:
        hidden = hidden.release(randomizer, attempt.seed)
    return AttributeInference(attempt.game.models()).run(hidden, seed=attempt.coin, progress=attempt.progress)


def _membership(attempt: Attempt) -> AttackResult:
    from graphveil.attacks import Membership

    assert attempt.victim is not None
    chosen, victim = Membership(attempt.game.model), attempt.victim
    if victim.model is not None:
        return chosen.run_on(victim.model, victim.method, victim.promise, attempt.data, seed=attempt.coin)
    return chosen.run(victim.method, victim.promise, attempt.data, seed=attempt.coin, progress=attempt.progress)


ATTACKS: dict[str, Callable[[Attempt], AttackResult]] = {
    "link-teller": _link_teller,
    "lsa2": _lsa2,
    "link-stealing": _link_stealing,
    "attribute-inference": _attribute_inference,
    "membership": _membership,
}
ON_MODELS = ("link-teller", "lsa2", "membership")
ON_LINKS = ("link-teller", "lsa2", "link-stealing")


def attack(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of: {', '.join(ATTACKS)}.")],
    data: opt.DataName,
    game: GameFlags,
    flags: TargetFlags,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="METHOD", help="Train this method and attack it; flags as in train."),
    ] = None,
    run: Annotated[Path | None, typer.Option("--run", metavar="RUN", help="Attack a folder of 'train --out'.")] = None,
    prepare: opt.Prepare = None,
    split: opt.Split = "random",
    seed: opt.Seed = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Write the ROC curves on logarithmic axes.")
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Attack a model, a run or released reports, and print what the attacker reached beside controls without a model."""
    victim = _victim(name, target, run, game.reports, flags)
    if victim is not None and victim.model is not None and seed is None:
        seed = victim.model.certificate.seed
    graph = opt.load_data(data, seed, prepare, split)
    started = time.perf_counter()
    with opt.progress_bar() as progress:
        result = ATTACKS[name](Attempt(game, victim, flags.epsilon, graph, seed, progress))
    seconds = round(time.perf_counter() - started, 3)
    if plot is not None:
        _draw(result, plot)
    if as_json:
        described = victim.described if victim else None
        pairs = game.pairs if name in ON_LINKS else None
        about = {"dataset": data, "target": described, "seed": seed, "pairs": pairs, "seconds": seconds}
        opt.print_json(result.to_json() | about)
        return
    if victim is not None:
        known = (f"{key} {value}" for key, value in victim.described.items() if value is not None)
        typer.echo(f"target: {', '.join(known)}")
    typer.echo(str(result))
    if plot is not None:
        typer.echo(f"plot written to {plot}")


def _victim(name: str, target: str | None, run: Path | None, reports: str | None, flags: TargetFlags) -> Victim | None:
    """Whom this attack is on, if it is on a model; refuses options that do not belong together."""
    if name not in ATTACKS:
        raise InputError(f"unknown attack {name!r}; known are: {', '.join(ATTACKS)}")
    if name not in ON_MODELS:
        if target is not None or run is not None:
            raise InputError(
                f"{name} queries no model: it attacks the data, or reports with --reports NAME --epsilon E"
            )
        if (reports is None) != (flags.epsilon is None):
            raise InputError("--reports and --epsilon belong together: how rows were randomised, and with what budget")
        return None
    if (target is None) == (run is None):
        raise InputError(f"{name} attacks a model: give either --target METHOD or --run RUN")
    if reports is not None:
        raise InputError("--reports belongs to link-stealing and attribute-inference")
    if run is None:
        return Victim.asked_for(str(target), flags)
    if flags.given():
        raise InputError(f"a saved run has its own promise and settings: leave {flags.given()[0]} out")
    return Victim.saved(run)


def _draw(result: AttackResult, path: Path) -> None:
    from graphveil.report.attack_plots import roc_plot

    try:
        roc_plot(result, path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be written: {error}") from None
