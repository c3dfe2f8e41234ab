"""Lock-step audit: both worlds on one history, every release sampled with real noise, log-likelihood ratios added up.

A recorded run fixes the history. On it, each release is a known mechanism around one clean value on the graph and another on
its neighbour, so the log-likelihood ratio of everything released is a sum over releases of known functions; the noise is drawn
by the same code that protects real runs. Poisson batches: the history is recorded with every row in every batch, each touched
row is measured alone, and its coin is tossed anew; the score is the likelihood ratio of the mixture (Lemma G's pair with the
measured sizes), projected on the direction in which the sums differ. A history in which every coin shows is one that the
accounting must cover (it holds for any history) but that real batches hardly ever produce: for Poisson batches the figure refutes
the accounting on this one history, not the law of the histories of real runs. Slots sampled for a whole run (DPAR) mix the two
worlds once. The adversary is told the coins of the others, as the accounting allows.

*Declared pair*: each release is taken at the declared sensitivity of the record that pays most, and the pair of worlds that the
proofs call worst is sampled. That is the accounting itself, computed by drawing instead of by formula: a bound above the
accounted epsilon means that the accountant understates; it must be found twice, with fresh draws, so that chance does so with
probability 1e-8 and not 1e-4. Tests: ``tests/audit/test_lock_step.py``.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from graphveil.audit.central.histories import History, World
from graphveil.audit.central.noise_checks import correlations
from graphveil.audit.result import Evidence, Failure
from graphveil.methods.base import PrivateMethod
from graphveil.privacy.laws import Law, Shift, realised_mu
from graphveil.privacy.noise import Array, Noise
from graphveil.privacy.plan import Plan, Release
from graphveil.progress import Progress
from graphveil.statistics.lower_bounds import CONFIDENCE, clopper_pearson, epsilon_lower_bound, likelihood_lower_bound

CHUNK = 4_000_000  # numbers held at a time
BUDGET, LEAST, MOST = 20_000_000, 50_000, 2_000_000
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
    shown: Counter[str] = Counter()
    looked = runs
    for number in range(runs):
        tell("lock step", number, runs)
        history = History.of(method, plan, data, seed + number)
        failures += correlations(history.recorder.events)
        worlds = list(history.worlds(names))
        shown.update(world.neighbour.story for world in worlds if world.seen)
        worst = max(worlds, key=lambda world: world.guide, default=None)
        if worst is not None and worst.guide > 0:
            history.expand(worst)
            failures += _occurrences(worst)
            evidence += _sampled(worst, plan, runs, samples, seed + number)
        if history.left is not None:
            looked = max(runs, LOOKS)
    for number in range(runs, looked):
        worlds = list(History.of(method, plan, data, seed + number).worlds(names))
        shown.update(world.neighbour.story for world in worlds if world.seen)
    tell("lock step", runs, runs)
    readings = dict.fromkeys(entry.name for entry in evidence)
    best = [max((e for e in evidence if e.name == name), key=lambda e: e.epsilon) for name in readings]
    return best + _outright(shown, looked, len(names), plan.promise.target_delta), failures


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


def _outright(shown: Counter[str], runs: int, stories: int, delta: float) -> list[Evidence]:
    """Equal releases and different models: no epsilon at any delta below the share of such histories."""
    if not shown:
        return []
    ((story, count),) = shown.most_common(1)
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
    draws, accounted = samples or affordable_samples(laws), plan.epsilon()
    for coins in (7_000_001 * (seed + 1), 7_000_003 * (seed + 1)):  # what refutes the accounting must do so twice
        scores = sample_scores(laws, draws, Noise(coins), plan.sampled)
        bound = likelihood_lower_bound(*scores, plan.promise.target_delta, seed)
        if bound.epsilon <= accounted * (1 + 1e-6):
            break
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


def merged(laws: list[Law]) -> list[Law]:
    """Gaussian steps of one scale taken together: their scores have the law of one step of root-sum-square distance."""
    squares: dict[float, float] = {}
    rest: list[Law] = []
    for law in laws:
        if isinstance(law, Shift):
            squares[law.sigma] = squares.get(law.sigma, 0.0) + law.distance**2
        else:
            rest.append(law)
    return [*(Shift(sigma, math.sqrt(square)) for sigma, square in squares.items()), *rest]


def sample_scores(laws: list[Law], samples: int, noise: Noise, sampled: float = 1.0) -> tuple[Array, Array]:
    """Scores (log-likelihood ratios) of the whole transcript in either world; ``sampled``: the record's slot takes part in the
    first world with this probability and is blank otherwise."""
    here, there, mixed = np.zeros(samples), np.zeros(samples), np.zeros(samples)
    block = max(1000, CHUNK // 64)
    for law in merged(laws):
        for start in range(0, samples, block):
            chosen = slice(start, min(start + block, samples))
            size = chosen.stop - chosen.start
            here[chosen] += law.scores(True, size, noise)
            there[chosen] += law.scores(False, size, noise)
            if sampled < 1:
                mixed[chosen] += law.scores(False, size, noise)
    if sampled == 1:
        return here, there
    first = np.where(noise.coins(sampled, samples), here, mixed)
    first, second = (np.logaddexp(math.log1p(-sampled), math.log(sampled) + scores) for scores in (first, there))
    return first, second


def affordable_samples(laws: list[Law]) -> int:
    """As many draws as ``BUDGET`` random numbers allow, within reason."""
    cost = sum(law.cost for law in merged(laws))
    return int(min(max(BUDGET // max(cost, 1), LEAST), MOST))
