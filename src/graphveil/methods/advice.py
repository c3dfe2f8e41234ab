"""Which promise, method and epsilon fit what somebody wants to protect: rules from answers, never from data.

The table of answers is in ``docs/choosing.md``; tests hold the two together (``tests/methods/test_advice.py``).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from graphveil.errors import InputError
from graphveil.methods.auto import Auto
from graphveil.privacy.accounting.loss import gaussian_epsilon, gaussian_mu
from graphveil.privacy.local import Local
from graphveil.privacy.promise import EdgeLevel, KNeighborLevel, NodeLevel, Promise

Protect = Literal["person", "traces", "contacts", "contact", "reports"]
TOTALS = (1.0, 2.0, 4.0, 8.0)  # epsilons of everything together that are worth weighing
WHOM = {
    "person": "one person's features, label and own contact list",
    "traces": "a person altogether: the record, and every mention of the person in other people's lists",
    "contacts": "a person's record and up to k of the person's friendships, in both lists",
    "contact": "one friendship or payment; features and labels are known to everybody",
    "reports": "everything people report: no curator is trusted, not even you",
}


@dataclass(frozen=True)
class Answers:
    """What is asked. ``people``: about how many; ``runs``: how often a model will be trained on them in all."""

    protect: Protect = "person"
    mutual: bool = True
    public_predictions: bool = False
    runs: int = 1
    k: int = 5
    people: int = 10_000

    def __post_init__(self) -> None:
        if self.protect not in get_args(Protect):
            raise InputError(f"--protect takes {', '.join(get_args(Protect))}, got {self.protect!r}")
        for name in ("runs", "k", "people"):
            if not (isinstance(getattr(self, name), int) and getattr(self, name) >= 1):
                raise InputError(f"{name} must be a whole number of at least 1, got {getattr(self, name)}")


@dataclass(frozen=True)
class Budget:
    """What a total means: the epsilon of each of equally large runs, and what the best attacker guesses right."""

    total: float
    each: float
    guess: float


@dataclass(frozen=True)
class Advice:
    """The answer: what to promise, with what, for how much, what that means, and what to type."""

    protected: str
    promise: str
    method: str
    why: str
    delta: float
    budgets: tuple[Budget, ...]
    consequences: tuple[str, ...]
    commands: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def advise(answers: Answers) -> Advice:
    """What to do for these answers."""
    if answers.protect == "reports":
        return _local(answers)
    promise = _promise(answers).with_default_delta(answers.people)
    choice = Auto(cover_edges="released").choose(promise)
    method, why, options = choice.method.name, choice.why, ""
    if answers.public_predictions and answers.protect != "contact":
        method, options = "ballot", " --set publish=noisy"
        why = "everybody will see predictions, so they are released with noise of their own, out of the same epsilon"
    budgets = tuple(_budget(total, promise.target_delta, answers.runs) for total in TOTALS)
    shown = _flags(promise, answers)
    spend = _down(budgets[2].each)
    return Advice(
        protected=WHOM[answers.protect],
        promise=str(promise.guarantee) + (f", k = {promise.k}" if promise.k else ""),
        method=method,
        why=why,
        delta=promise.target_delta,
        budgets=budgets,
        consequences=_consequences(answers, method),
        commands=(
            f"graphveil forecast {method} --data mine.npz --epsilons {','.join(_down(b.each) for b in budgets)}{shown}",
            f"graphveil budget init book.db --epsilon {TOTALS[2]:g} --nodes {answers.people}{shown}",
            f"graphveil train {method} --data mine.npz --epsilon {spend}{shown}{options} --budget book.db --out runs/1",
        ),
    )


def _promise(answers: Answers) -> Promise:
    match answers.protect:
        case "traces":
            return NodeLevel(1.0, adjacency="node")
        case "contacts":
            return KNeighborLevel(answers.k, 1.0)
        case "contact":
            return EdgeLevel(1.0, directed=not answers.mutual)
    return NodeLevel(1.0, adjacency="record")


def _flags(promise: Promise, answers: Answers) -> str:
    match answers.protect:
        case "contacts":
            return f" --level k-neighbor --k {promise.k}"
        case "contact":
            return " --level edge" + ("" if answers.mutual else f" --adjacency {promise.adjacency}")
    return f" --adjacency {promise.adjacency}"


def _budget(total: float, delta: float, runs: int) -> Budget:
    """Equal Gaussian runs share mu^2; whoever tells two neighbouring data sets apart is right with Phi(mu / 2) at most."""
    mu = gaussian_mu(total, delta)
    each = gaussian_epsilon(mu / math.sqrt(runs), delta)
    return Budget(total, each, 0.5 * (1 + math.erf(mu / 2 / math.sqrt(2))))


def _down(epsilon: float) -> str:
    """Two digits, rounded down: as many runs of it as were asked for still fit into the total."""
    cell = 10.0 ** (math.floor(math.log10(epsilon)) - 1)
    return f"{math.floor(epsilon / cell * (1 + 1e-9)) * cell:.2g}"


def _consequences(answers: Answers, method: str) -> tuple[str, ...]:
    found = []
    if method == "roster":
        found.append(
            "a prediction reads its node's own contact list and can reveal it: show it to that node and nobody else"
        )
        edge = (
            "one friendship costs no more than one record in everything released"
            if answers.mutual
            else ("a link is covered as part of the record of whoever lists it, not of whoever is listed")
        )
        found.append(edge)
    if method == "ballot" and not answers.public_predictions and answers.protect != "contact":
        found.append("a prediction reads its node's own features: show it to that node, or declare features public")
    match answers.protect:
        case "person":
            found.append("that others list this person is not hidden; ask for --protect traces if it must be")
        case "traces":
            found.append(
                "calibration and query people are covered as records only, and it costs accuracy: weigh --protect person"
            )
        case "contacts":
            found.append(
                f"who has more than {answers.k} friendships at stake is covered for {answers.k} of them at a time"
            )
        case "contact":
            found.append("nothing about features and labels is hidden; predictions may be shown to anybody")
    if answers.public_predictions and answers.protect != "contact":
        found.append("published predictions are noisy, and the more people are asked about the less each can be told")
    if answers.runs > 1:
        found.append(
            f"the total holds for whoever is in all {answers.runs} runs; a budget book refuses what would exceed it"
        )
    return tuple(found)


def _local(answers: Answers) -> Advice:
    promise = Local(features="withheld", labels=1.0, edges="raw")
    choice = Auto().choose(promise)
    budgets = tuple(Budget(total, total, 1 / (1 + math.exp(-total))) for total in TOTALS)
    flags = "--level local --labels-epsilon 4 --edges-epsilon raw"
    return Advice(
        protected="the label people report; contact lists are sent in the clear and not protected, features are withheld",
        promise="local / local / replace",
        method=choice.method.name,
        why=choice.why,
        delta=0.0,
        budgets=budgets,
        consequences=(
            "every part of a record has its own epsilon, is sent raw, or is withheld: who collects sees raw parts",
            "scores are computed from reports alone and may be shown to anybody, unless a part was sent raw",
            "a report is drawn once and sent again as it was: asking again costs nothing and tells nothing",
        ),
        commands=(
            f"graphveil plan {choice.method.name} --nodes {answers.people} --features 10 --classes 3 {flags}",
            "graphveil privatize people.csv --labels-epsilon 4 --edges-epsilon raw --out reports.csv",
            f"graphveil train {choice.method.name} --reports reports.csv --out runs/1",
        ),
    )
