"""``graphveil attack``: what an adversary gets out of a model, a saved run or released reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from graphveil import attacks
from graphveil.cli import options as opt
from graphveil.cli.flags import PromiseFlags, given_options
from graphveil.cli.options import flag
from graphveil.errors import InputError
from graphveil.progress import Progress

DEFAULT_COUNT = 500


@dataclass(frozen=True)
class TargetFlags(PromiseFlags):
    """The flags of a promise; without a level it follows from the budgets that are given."""

    level: Annotated[str | None, flag("--level", "edge, k-neighbor, node, local; none if no epsilon is given.")] = None
    settings: Annotated[
        list[str] | None,
        flag(
            "--set KEY=VALUE", "A hyper-parameter of --target, or of --reports (per_dimension=eps_over_m); repeatable."
        ),
    ] = None


@dataclass(frozen=True)
class GameFlags:
    """What is guessed, from what, and how."""

    pairs: Annotated[str, flag("--pairs", "Link attacks: balanced, degree-matched or density.")] = "balanced"
    nodes: Annotated[
        int | None,
        flag("--nodes N", "So many edges and non-edges (lists: victims), or for density pairs among N nodes."),
    ] = None
    reports: Annotated[
        str | None,
        flag(
            "--reports",
            "The attacker holds reports: multi-bit, direction, laplace, piecewise[-algorithm|-raw|-zero[:m]].",
        ),
    ] = None
    attribute: Annotated[str, flag("--attribute", "attribute-inference: the hidden column, by name or number.")] = (
        "Alternative"
    )
    model: Annotated[str, flag("--attack-model", "mlp, rf, knn, lr, svm, random, several with commas, or all.")] = "mlp"
    combine: Annotated[
        str, flag("--combine", "link-stealing: hadamard-difference, concat, plus, multiply, average, several, or all.")
    ] = "hadamard-difference"
    both_orders: Annotated[
        bool,
        flag(
            "--both-orders",
            "link-stealing: (u, v) and (v, u) are cases of their own, so known answers are asked again.",
        ),
    ] = False
    distance: Annotated[str, flag("--distance", "lsa2: the headline distance.")] = "correlation"
    no_reference: Annotated[bool, flag("--no-reference", "lsa2: do not train the same method without edges.")] = False


def _several(text: str, known: Iterable[str]) -> tuple[str, ...]:
    """Names separated by commas, or all that are known."""
    return tuple(known) if text == "all" else tuple(part.strip() for part in text.split(","))


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
        method, promise = flags.settled(target)
        described = {"method": method.name, "mode": flags.mode, "level": str(promise.level), "epsilon": flags.epsilon}
        parts = ("features_epsilon", "labels_epsilon", "edges_epsilon")
        return cls(method, promise, described | {part: getattr(flags, part) for part in parts})


@dataclass(frozen=True)
class Attempt:
    """One attack to run: its flags, whom it is on, and the coins; one method per attack."""

    game: GameFlags
    victim: Victim
    epsilon: float | None
    data: Any
    seed: int | None
    progress: Progress
    options: Mapping[str, Any]  # of the reports

    @property
    def coins(self) -> dict[str, Any]:
        return {"seed": self.seed or 0, "progress": self.progress}

    def randomizer(self, width: int) -> Any:
        """The randomizer of the reports the attacker holds, or None for clean rows."""
        if self.game.reports is None or self.epsilon is None:
            return None
        return attacks.feature_randomizer(self.game.reports, self.epsilon, width, self.options)

    def pairs(self, default: int = DEFAULT_COUNT) -> attacks.Pairs:
        """The pairs whose edges are to be guessed."""
        count = default if self.game.nodes is None else self.game.nodes
        return attacks.sample_pairs(self.data, self.game.pairs, count, self.seed or 0)

    def model(self) -> Any:
        """The victim's model, trained now unless it was saved."""
        victim = self.victim
        return victim.model or victim.method.fit(self.data, victim.promise, seed=self.seed, progress=self.progress)

    def link_teller(self) -> attacks.AttackResult:
        pairs, model = self.pairs(), self.model()
        if attacks.has_published_api(model):
            return attacks.published_link_teller(model, pairs, **self.coins)
        return attacks.LinkTeller().run(model, self.data, pairs, **self.coins)

    def lsa2(self) -> attacks.AttackResult:
        pairs, model, victim = self.pairs(), self.model(), self.victim
        if attacks.has_published_api(model):
            return attacks.published_lsa2(model, pairs, self.game.distance, seed=self.seed or 0)
        reference = None
        if not self.game.no_reference and victim.model is None:
            reference = attacks.posteriors_without_edges(victim.method, victim.promise, self.data, self.seed)
        return attacks.Lsa2(self.game.distance).run(model, self.data, pairs, reference=reference, seed=self.seed or 0)

    def link_stealing(self) -> attacks.AttackResult:
        graph = attacks.as_graph(self.data)
        pairs = self.pairs(DEFAULT_COUNT if self.game.pairs == "density" else attacks.most_pairs(graph))
        pairs = pairs.both_orders() if self.game.both_orders else pairs
        randomizer, known = self.randomizer(graph.features), None
        if randomizer is not None:
            known = attacks.Knowledge.released_by(graph, randomizer, self.seed, attacks.KNOWN_SHARE)
        combinations = _several(self.game.combine, attacks.COMBINATIONS)
        chosen = attacks.LinkStealing(combinations, _several(self.game.model, attacks.MODELS))
        return chosen.run(graph, pairs, known, **self.coins)

    def attribute_inference(self) -> attacks.AttackResult:
        hidden = attacks.HiddenAttribute.of(self.data, self.game.attribute)
        randomizer = self.randomizer(hidden.rows.shape[1])
        if randomizer is not None:
            hidden = hidden.release(randomizer, self.seed)
        return attacks.AttributeInference(_several(self.game.model, attacks.MODELS)).run(hidden, **self.coins)

    def lists(self) -> attacks.AttackResult:
        victims = (
            attacks.ListReconstruction() if self.game.nodes is None else attacks.ListReconstruction(self.game.nodes)
        )
        return victims.run(self.model(), self.data, **self.coins)

    def membership(self) -> attacks.AttackResult:
        chosen, victim = attacks.Membership(self.game.model), self.victim
        if victim.model is not None:
            return chosen.run_on(victim.model, victim.method, victim.promise, self.data, seed=self.seed or 0)
        return chosen.run(victim.method, victim.promise, self.data, **self.coins)


ATTACKS: dict[str, Callable[[Attempt], attacks.AttackResult]] = {
    "link-teller": Attempt.link_teller,
    "lsa2": Attempt.lsa2,
    "link-stealing": Attempt.link_stealing,
    "attribute-inference": Attempt.attribute_inference,
    "membership": Attempt.membership,
    "lists": Attempt.lists,
}
ON_MODELS = ("link-teller", "lsa2", "membership", "lists")
ON_LINKS = ("link-teller", "lsa2", "link-stealing")


def attack(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of: {', '.join(ATTACKS)}.")],
    data: opt.DataName,
    game: GameFlags,
    flags: TargetFlags,
    target: Annotated[
        str | None, flag("--target METHOD", "Train this method and attack it; flags as in train.")
    ] = None,
    run: Annotated[Path | None, flag("--run RUN", "Attack a folder of 'train --out'.")] = None,
    prepare: opt.Prepare = None,
    split: opt.Split = "random",
    seed: opt.Seed = None,
    plot: Annotated[Path | None, flag("--plot FILE", "Write the ROC curves on logarithmic axes.")] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Attack a model, a run or released reports, and print what the attacker reached beside controls without a model."""
    victim = _victim(name, target, run, game.reports, flags)
    if victim.model is not None and seed is None:
        seed = victim.model.certificate.seed
    graph = opt.load_data(data, seed, prepare, split)
    started = time.perf_counter()
    options = given_options(flags.settings)
    with opt.progress_bar() as progress:
        result = ATTACKS[name](Attempt(game, victim, flags.epsilon, graph, seed, progress, options))
    seconds = round(time.perf_counter() - started, 3)
    if plot is not None:
        from graphveil.report.roc import roc_plot

        roc_plot(result, plot)
    if as_json:
        pairs = game.pairs if name in ON_LINKS else None
        about = {"dataset": data, "target": victim.described or None, "seed": seed, "pairs": pairs, "seconds": seconds}
        opt.show(result.to_json() | about)
        return
    if victim.described:
        known = (f"{key} {value}" for key, value in victim.described.items() if value is not None)
        typer.echo(f"target: {', '.join(known)}")
    typer.echo(str(result))
    if plot is not None:
        typer.echo(f"plot written to {plot}")


def _victim(name: str, target: str | None, run: Path | None, reports: str | None, flags: TargetFlags) -> Victim:
    """Whom this attack is on (nobody, if on no model); refuses options that do not belong together."""
    if name not in ATTACKS:
        raise InputError(f"unknown attack {name!r}; known are: {', '.join(ATTACKS)}")
    if name not in ON_MODELS:
        if target is not None or run is not None:
            raise InputError(
                f"{name} queries no model: it attacks the data, or reports with --reports NAME --epsilon E"
            )
        if (reports is None) != (flags.epsilon is None):
            raise InputError("--reports and --epsilon belong together: how rows were randomised, and with what budget")
        if reports is None and flags.settings:
            raise InputError(f"{name} on clean rows has nothing to --set: options are those of --reports NAME")
        return Victim(None, None, {})
    if (target is None) == (run is None):
        raise InputError(f"{name} attacks a model: give either --target METHOD or --run RUN")
    if reports is not None:
        raise InputError("--reports belongs to link-stealing and attribute-inference")
    if run is None:
        return Victim.asked_for(str(target), flags)
    if flags.given():
        raise InputError(f"a saved run has its own promise and settings: leave {flags.given()[0]} out")
    return Victim.saved(run)
