"""What an attack reached, and what it hands back: every figure from one pass over the sorted scores, with bootstrap intervals.

AUC is signed: a score that ranks the wrong way round is below 0.5 and stays there, because an attacker has to fix the
direction before seeing the answer. Ties count half (AUC) or in proportion (decisions), so a constant score has AUC 0.5.
Intervals resample positives and negatives separately; pairs that share a node are treated as independent, so for pairs
they are somewhat too narrow. Tests: ``tests/attacks/test_metrics.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from graphveil.errors import InputError
from graphveil.statistics.lower_bounds import rate_bounds

FIGURES = (
    "auc",
    "average_precision",
    "accuracy",
    "precision",
    "recall",
    "f1",
    "tpr_at_1_percent",
    "tpr_at_0.1_percent",
)
BOUND_NOTE = (
    "the epsilon lower bound is valid (95 %) only where every case is decided by its own coin, as in an audit; in one graph "
    "cases depend on each other and on degrees and labels, so scores without any model reach one, too: compare with the controls"
)
CONFIDENCE = 0.95  # of the epsilon bound
CANDIDATES = 256  # thresholds tried on the first half for the epsilon bound


@dataclass(frozen=True)
class Figure:
    """A value and its bootstrap interval (2.5 % and 97.5 % quantiles)."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Figures:
    """All figures of one score; ``epsilon`` is the lower bound of :func:`epsilon_lower_bound` at ``delta``."""

    values: dict[str, Figure]
    epsilon: float
    positives: int
    negatives: int
    delta: float = 0.0

    def __getitem__(self, name: str) -> float:
        return self.values[name].value

    def to_json(self) -> dict[str, Any]:
        figures = {name: asdict(figure) for name, figure in self.values.items()}
        sizes = {"positives": self.positives, "negatives": self.negatives}
        return figures | {"epsilon_lower_bound": self.epsilon, "delta": self.delta} | sizes


def measure(
    truth: np.ndarray,
    score: np.ndarray,
    *,
    threshold: float | None = None,
    belief: float | None = None,
    delta: float = 0.0,
    resamples: int = 200,
    seed: int = 0,
) -> Figures:
    """All figures of ``score`` against the Boolean ``truth``; larger scores mean "yes".

    "Yes" is said from ``threshold`` on (a classifier's 0.5), else to the top share ``belief`` of the scores: the share of
    positives the attacker believes in, by default the true one, which is stated knowledge. ``delta``: that of the promise
    whose epsilon is bounded.
    """
    truth, score = checked(truth, score)
    order = np.argsort(-score, kind="stable")
    hits, sorted_scores = truth[order].astype(np.float64), score[order]
    starts = np.flatnonzero(np.concatenate([[True], sorted_scores[1:] != sorted_scores[:-1]]))
    above = None if threshold is None else int(np.count_nonzero(sorted_scores[starts] >= threshold))
    share = float(truth.mean()) if belief is None else belief
    if not 0 < share < 1:
        raise InputError(f"the believed share of positives must lie between 0 and 1, got {share:g}")

    def evaluate(weights: np.ndarray) -> list[float]:
        yes = np.cumsum(np.add.reduceat(weights * hits, starts))
        no = np.cumsum(np.add.reduceat(weights * (1 - hits), starts))
        auc, average, *tails = _ranking(yes, no)
        return [auc, average, *_decisions(yes, no, above, share), *tails]

    found = evaluate(np.ones(len(hits)))
    coins = np.random.default_rng([0xB007, seed])
    draws = np.array([evaluate(_resampled(hits, coins)) for _ in range(resamples)])
    low, high = np.quantile(draws, [0.025, 0.975], axis=0) if resamples else (found, found)
    figures = (Figure(*map(float, ends)) for ends in zip(found, low, high, strict=True))
    values = dict(zip(FIGURES, figures, strict=True))
    epsilon = epsilon_lower_bound(truth, score, delta=delta, seed=seed)
    return Figures(values, epsilon, int(truth.sum()), int((~truth).sum()), delta)


def checked(truth: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Boolean truth and finite scores of equal length, with both answers present."""
    truth, score = np.asarray(truth, dtype=bool), np.asarray(score, dtype=np.float64)
    if truth.ndim != 1 or truth.shape != score.shape:
        raise InputError(f"{truth.size} answers and {score.size} scores: give one score per case")
    if not np.isfinite(score).all():
        raise InputError(f"{int((~np.isfinite(score)).sum())} scores of the attack are not finite")
    if truth.all() or not truth.any():
        raise InputError("the cases have only one answer: an attack needs positives and negatives")
    return truth, score


def _ranking(yes: np.ndarray, no: np.ndarray) -> tuple[float, float, float, float]:
    """AUC, average precision, and the largest true-positive rate at a false-positive rate of at most 1 % and 0.1 %."""
    new_yes, new_no = np.diff(yes, prepend=0.0), np.diff(no, prepend=0.0)
    area = float(np.sum(new_no * (yes - new_yes / 2)) / (yes[-1] * no[-1]))
    precision = yes / np.maximum(yes + no, 1e-300)
    at = [float(np.max(yes[no <= limit * no[-1]], initial=0.0) / yes[-1]) for limit in (0.01, 0.001)]
    return area, float(np.sum(new_yes * precision) / yes[-1]), at[0], at[1]


def _decisions(yes: np.ndarray, no: np.ndarray, above: int | None, share: float) -> tuple[float, float, float, float]:
    """Accuracy, precision, recall and F1 when the first ``above`` groups, or the top ``share`` of the weight, get "yes"."""
    positives, negatives = yes[-1], no[-1]
    if above is not None:
        true, false = (float(counts[above - 1]) if above else 0.0 for counts in (yes, no))
    else:
        total = yes + no
        wanted = share * total[-1]
        group = min(int(np.searchsorted(total, wanted)), len(total) - 1)
        before = (yes[group - 1], no[group - 1]) if group else (0.0, 0.0)
        size = total[group] - sum(before)
        part = (wanted - sum(before)) / size if size > 0 else 0.0
        true = before[0] + part * (yes[group] - before[0])
        false = before[1] + part * (no[group] - before[1])
    accuracy = (true + negatives - false) / (positives + negatives)
    precision = true / (true + false) if true + false > 0 else 0.0
    return accuracy, precision, true / positives, 2 * true / (true + false + positives)


def _resampled(hits: np.ndarray, coins: np.random.Generator) -> np.ndarray:
    """How often each case is drawn when positives and negatives are drawn anew, each among themselves."""
    weights = np.zeros(len(hits))
    for chosen in (np.flatnonzero(hits), np.flatnonzero(hits == 0)):
        weights[chosen] = np.bincount(coins.integers(0, len(chosen), len(chosen)), minlength=len(chosen))
    return weights


def epsilon_lower_bound(truth: np.ndarray, score: np.ndarray, *, delta: float = 0.0, seed: int = 0) -> float:
    """The epsilon below which no (epsilon, delta)-private release allows this attack, with 95 % confidence.

    Any test of an (epsilon, delta)-private release has TPR <= e^epsilon FPR + delta and TNR <= e^epsilon FNR + delta, so
    epsilon >= log((TPR - delta)/FPR) and log((TNR - delta)/FNR). Threshold and side are chosen on one half of the cases;
    on the other half the two rates get one-sided Clopper-Pearson limits with half of the error each, so the bound exceeds
    a true epsilon with probability at most 5 %. That needs cases decided by independent coins, one record
    each: the balanced game. Pairs of a real graph are not independent, and then the figure is only a yardstick.
    Test: ``test_the_bound_on_a_game_of_known_epsilon...``.
    """
    truth, score = checked(truth, score)
    coins = np.random.default_rng([0xE950, seed])
    first = np.zeros(len(truth), dtype=bool)
    for answer in (True, False):
        chosen = coins.permutation(np.flatnonzero(truth == answer))
        first[chosen[: len(chosen) // 2]] = True
    if not (truth[first].any() and (~truth[first]).any()):
        return 0.0
    thresholds = np.unique(score[first])
    if len(thresholds) > CANDIDATES:
        thresholds = np.unique(np.quantile(score[first], np.linspace(0, 1, CANDIDATES), method="nearest"))
    tried = _bounds(truth[first], score[first], thresholds, delta)
    side, best = np.unravel_index(int(np.argmax(tried)), tried.shape)
    kept = _bounds(truth[~first], score[~first], thresholds[best : best + 1], delta)
    return max(0.0, float(kept[side, 0]))


def _bounds(truth: np.ndarray, score: np.ndarray, thresholds: np.ndarray, delta: float) -> np.ndarray:
    """Both bounds on epsilon, one column per threshold; -inf where a rate's lower limit does not exceed delta."""
    positives, negatives = np.sort(score[truth]), np.sort(score[~truth])
    true = len(positives) - np.searchsorted(positives, thresholds)
    false = len(negatives) - np.searchsorted(negatives, thresholds)
    sides = (
        (true, len(positives), false, len(negatives)),
        (len(negatives) - false, len(negatives), len(positives) - true, len(positives)),
    )
    return np.array([rate_bounds(*side, delta, (1 - CONFIDENCE) / 2) for side in sides])


def roc(truth: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """False- and true-positive rates of every threshold, from (0, 0) to (1, 1)."""
    from sklearn.metrics import roc_curve

    false, true, _ = roc_curve(*checked(truth, score), drop_intermediate=False)
    return false, true


@dataclass(frozen=True, eq=False)
class Finding:
    """The figures of one variant of the attack, and the scores they come from."""

    name: str
    truth: np.ndarray
    score: np.ndarray
    figures: Figures

    @classmethod
    def of(cls, name: str, truth: np.ndarray, score: np.ndarray, **options: Any) -> Finding:
        return cls(name, np.asarray(truth, dtype=bool), np.asarray(score), measure(truth, score, **options))

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, **self.figures.to_json()}

    def row(self, prefix: str = "") -> tuple[str, ...]:
        """The cells of a table."""
        auc, *others = self.figures.values.values()
        rest = [*(f"{figure.value:.3f}" for figure in others), f"{self.figures.epsilon:.2f}"]
        return prefix + self.name, f"{auc.value:.3f} ({auc.low:.3f}-{auc.high:.3f})", *rest


@dataclass(frozen=True, eq=False)
class AttackResult:
    """What was guessed, what the attacker had, and one finding per variant; controls need no model, on the same cases.

    The first finding is the headline, fixed in advance and not the best one found.
    """

    attack: str
    findings: tuple[Finding, ...]
    controls: tuple[Finding, ...]
    game: str
    knowledge: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = (BOUND_NOTE,)

    @property
    def headline(self) -> Finding:
        return self.findings[0]

    @property
    def auc(self) -> float:
        """Of the headline."""
        return self.headline.figures["auc"]

    def __getitem__(self, name: str) -> Finding:
        return next(finding for finding in (*self.findings, *self.controls) if finding.name == name)

    def to_json(self) -> dict[str, Any]:
        return {
            "attack": self.attack,
            "game": self.game,
            "knowledge": self.knowledge,
            "findings": [finding.to_json() for finding in self.findings],
            "controls": [finding.to_json() for finding in self.controls],
            **self.facts,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        head = (
            "variant", "AUC (95 %)", "avg. precision", "accuracy", "precision", "recall", "F1", "TPR at 1 %", "at 0.1 %",
            f"epsilon >= (delta {self.headline.figures.delta:g})",
        )  # fmt: skip
        rows = [found.row() for found in self.findings] + [found.row("control: ") for found in self.controls]
        widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (head, *rows)]
        told = [f"{self.attack}: {self.game}", f"attacker knows: {self.knowledge}", ""]
        return "\n".join([*told, *lines, "", *(f"note: {note}" for note in self.notes)])
