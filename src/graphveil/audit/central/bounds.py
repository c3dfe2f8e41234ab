"""Lower bounds on the audited graph: histories in lock step, models that show data outright, and the declared worst pair.

*Declared pair*: each release is taken at the declared sensitivity of the record that pays most, and the pair of worlds that the
proofs call worst is sampled. That is the accounting itself, computed by drawing instead of by formula: a bound above the
accounted epsilon means that the accountant understates. Tests: ``tests/audit/test_lock_step.py``.
"""

from __future__ import annotations

import math
from typing import Any

from graphveil.audit.central.histories import History, World
from graphveil.audit.central.lock_step import affordable_samples, realised_mu, sample_scores
from graphveil.audit.central.noise_checks import correlations
from graphveil.audit.result import Evidence, Failure
from graphveil.methods.base import PrivateMethod
from graphveil.privacy.laws import Law, Shift
from graphveil.privacy.noise import Noise
from graphveil.privacy.plan import Plan, Release
from graphveil.progress import Progress
from graphveil.statistics.lower_bounds import CONFIDENCE, clopper_pearson, epsilon_lower_bound, likelihood_lower_bound

LOOKS = 3  # histories on which unaccounted reads are looked for, at least


def lock_step(
    method: PrivateMethod,
    plan: Plan,
    data: Any,
    names: dict[str, int],
    runs: int,
    samples: int | None,
    seed: int,
    tell: Progress,
) -> tuple[list[Evidence], list[Failure]]:
    """The best sampled bound over ``runs`` histories, and an infinite one if the model shows private data outright."""
    evidence: list[Evidence] = []
    failures: list[Failure] = []
    shown: dict[str, int] = {}
    looked = runs
    for number in range(runs):
        tell("lock step", number, runs)
        history = History.of(method, plan, data, seed + number)
        failures += correlations(history.recorder.events)
        worlds = list(history.worlds(names))
        _note(worlds, shown)
        worst = max(worlds, key=lambda world: world.guide, default=None)
        if worst is not None and worst.guide > 0:
            history.expand(worst)
            failures += _occurrences(worst)
            evidence += _sampled(worst, plan, runs, samples, seed + number)
        if history.left is not None:
            looked = max(runs, LOOKS)
    for number in range(runs, looked):
        _note(History.of(method, plan, data, seed + number).worlds(names), shown)
    tell("lock step", runs, runs)
    readings = dict.fromkeys(entry.name for entry in evidence)
    best = [max((e for e in evidence if e.name == name), key=lambda e: e.epsilon) for name in readings]
    return best + _outright(shown, looked, len(names), plan.promise.target_delta), failures


def _note(worlds: Any, shown: dict[str, int]) -> None:
    for world in worlds:
        if world.seen:
            shown[world.neighbour.story] = shown.get(world.neighbour.story, 0) + 1


def _sampled(worst: World, plan: Plan, runs: int, samples: int | None, seed: int) -> list[Evidence]:
    """Both readings of the scores of one pair of worlds; their errors are shared among the histories."""
    draws = samples or affordable_samples(worst.laws)
    here, there = sample_scores(worst.laws, draws, Noise(1_000_003 * (seed + 1)), plan.sampled)
    delta, confidence, story = plan.promise.target_delta, 1 - (1 - CONFIDENCE) / runs, worst.neighbour.story
    bound = epsilon_lower_bound(here, there, delta, confidence)
    how = f"likelihood ratios of all releases on one history, {draws} draws per world: {story}"
    found = [Evidence("lock step", bound.epsilon, how, CONFIDENCE, details={"bound": bound.to_json()})]
    if all(law.exact for law in worst.laws):
        bound = likelihood_lower_bound(here, there, delta, seed, confidence)
        how = f"the same draws, read as exact ratios (the law of the noise is checked apart): {story}"
        found.append(Evidence("lock step, exact ratios", bound.epsilon, how, CONFIDENCE))
    return found


def _outright(shown: dict[str, int], runs: int, stories: int, delta: float) -> list[Evidence]:
    """Equal releases and different models: no epsilon at any delta below the share of such histories."""
    if not shown:
        return []
    story, count = max(shown.items(), key=lambda item: item[1])
    least = float(clopper_pearson(count, runs, (1 - CONFIDENCE) / (4 * stories))[0])
    if least <= delta:
        return []
    how = (
        f"in {count} of {runs} histories the model differs although all releases are equal ({story}): "
        f"no epsilon at delta below {least:.2g}"
    )
    return [Evidence("model in the clear", math.inf, how, CONFIDENCE)]


def _occurrences(world: World) -> list[Failure]:
    found = []
    for name, touched in world.touched.items():
        steps = world.sampled[name]
        if not touched.within(steps):
            detail = f"{touched.group} rows before and after, declared {steps.rows} ({world.neighbour.story})"
            found.append(Failure("occurrence", name, detail))
        if touched.longest > steps.clip * (1 + 1e-9):
            found.append(Failure("clipping", name, f"a row of norm {touched.longest:.4g}, clip {steps.clip:g}"))
    return found


def declared_pair(plan: Plan, samples: int | None, seed: int) -> tuple[list[Evidence], list[Failure]]:
    """A sampled lower bound for the pair of worlds that the plan's own proofs call worst, against its accounted epsilon."""
    if not plan.provable or not plan.steps:
        return [], []
    laws: list[Law] = [Shift(1.0, plan.mu)]
    if not plan.adaptive:
        laws = max((declared_laws(plan, kind) for kind in plan.kinds), key=realised_mu, default=[])
    if not laws:
        return [], []
    draws = samples or affordable_samples(laws)
    here, there = sample_scores(laws, draws, Noise(7_000_001 * (seed + 1)), plan.sampled)
    bound = likelihood_lower_bound(here, there, plan.promise.target_delta, seed)
    accounted = plan.epsilon()
    how = f"{draws} draws per world from the worst pair of the declared sensitivities; accounted {accounted:.4g}"
    failures = []
    if bound.epsilon > accounted * (1 + 1e-6):
        detail = f"the declared releases cost at least epsilon {bound.epsilon:.4g}, accounted {accounted:.4g}"
        failures.append(Failure("accounting", "", detail))
    return [Evidence("declared pair", bound.epsilon, how, CONFIDENCE)], failures


def declared_laws(plan: Plan, kind: str) -> list[Law]:
    """The dominating pairs of all releases for a record of this kind; choices by Gumbel noise have none and are left out."""
    releases = [step for step in plan.steps if isinstance(step, Release) and step.bound(kind)]
    return [law for release in releases for law in release.mechanism.worst_pair(release.bound(kind))]
