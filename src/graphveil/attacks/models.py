"""The attack models: what an attacker trains on the cases whose answer is known.

========== ====================================================================================
``mlp``    two layers of 128 with BatchNorm and ReLU, Adam 1e-3, batches of 256, 8 epochs (LGA-PGNN)
``rf``     random forest, 100 trees
``knn``    15 nearest neighbours
``lr``     logistic regression
``svm``    support vector machine with a Gaussian kernel (300 Nystroem features: linear in the cases)
``random`` a coin for every case (RAN-LSA of LGA-PGNN): what an attack must beat; not among ``all``
========== ====================================================================================

Columns are standardised with mean and deviation of the attacker's own training cases. Every model gives one score per
case, larger for "yes", with 0.5 (``svm``: 0) as its threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from graphveil.attacks.metrics import Finding
from graphveil.errors import InputError
from graphveil.progress import Progress

Rows = Callable[[np.ndarray], np.ndarray]
MODELS = ("mlp", "rf", "knn", "lr", "svm")
RANDOM = "random"
BLOCK = 4096  # cases whose rows are held at once


class Fitted(NamedTuple):
    """A trained attack model: a score for every row, and from where on it says "yes"."""

    score: Rows
    threshold: float


@dataclass(frozen=True)
class AttackModel:
    """An attack model by name (:data:`MODELS`); ``epochs`` are those of the ``mlp``."""

    name: str = "mlp"
    epochs: int = 8

    def __post_init__(self) -> None:
        if self.name not in (*MODELS, RANDOM):
            raise InputError(f"unknown attack model {self.name!r}; known are: {', '.join((*MODELS, RANDOM))}")
        if self.epochs < 1:
            raise InputError(f"an attack model needs at least 1 epoch, got {self.epochs}")

    def fit(self, rows: np.ndarray, answers: np.ndarray, seed: int) -> Fitted:
        """Train on the attacker's cases; columns that are constant there are left at 0."""
        answers = np.asarray(answers, dtype=bool)
        if answers.all() or not answers.any():
            raise InputError("the cases the attacker knows have only one answer: nothing can be learned from them")
        if self.name == RANDOM:
            coins = np.random.default_rng([0xC015, seed])
            return Fitted(lambda asked: coins.random(len(asked)), 0.5)
        mean, deviation = rows.mean(axis=0), rows.std(axis=0)
        deviation = np.where(deviation > 1e-12, deviation, np.inf)
        scaled = (rows - mean) / deviation
        threshold = 0.0 if self.name == "svm" else 0.5
        if self.name == "mlp":
            score = _perceptron(scaled, answers, self.epochs, seed)
        else:
            model = _classical(self.name, seed, len(rows)).fit(scaled, answers)
            score = model.decision_function if self.name == "svm" else lambda x: model.predict_proba(x)[:, 1]
        return Fitted(lambda asked: np.asarray(score((asked - mean) / deviation)), threshold)


def _classical(name: str, seed: int, cases: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    if name == "rf":
        return RandomForestClassifier(100, random_state=seed)
    if name == "knn":
        return KNeighborsClassifier(min(15, cases))
    if name == "lr":
        return LogisticRegression(max_iter=300, random_state=seed)
    kernel = Nystroem(n_components=min(300, cases), random_state=seed)
    return make_pipeline(kernel, LinearSVC(random_state=seed, dual=False))


def _perceptron(rows: np.ndarray, answers: np.ndarray, epochs: int, seed: int) -> Rows:
    import torch
    from torch import nn

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = [nn.Linear(rows.shape[1], 128), nn.BatchNorm1d(128), nn.ReLU()]
        layers += [nn.Linear(128, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 1)]
        network = nn.Sequential(*layers)
        x, y = torch.from_numpy(rows).float(), torch.from_numpy(answers).float()
        optimizer = torch.optim.Adam(network.parameters(), 1e-3)
        for _ in range(epochs):
            for batch in torch.randperm(len(x)).split(256):
                if len(batch) < 2:  # BatchNorm has no variance of one case
                    continue
                optimizer.zero_grad()
                logits = network(x[batch]).squeeze(1)
                nn.functional.binary_cross_entropy_with_logits(logits, y[batch]).backward()
                optimizer.step()
    network.eval()

    def score(asked: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return torch.sigmoid(network(torch.from_numpy(asked).float()).squeeze(1).double()).numpy()

    return score


def split_cases(answers: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Cases whose answer the attacker knows, and the others; yes and no are split in the same share."""
    coins = np.random.default_rng([0x5917, seed])
    known = np.zeros(len(answers), dtype=bool)
    for answer in (True, False):
        chosen = coins.permutation(np.flatnonzero(answers == answer))
        known[chosen[: round(share * len(chosen))]] = True
    taught, asked = np.flatnonzero(known), np.flatnonzero(~known)
    if len(np.unique(answers[taught])) < 2 or len(np.unique(answers[asked])) < 2:
        raise InputError("too few cases: the attacker's share and the rest need edges and non-edges; raise --nodes")
    return taught, asked


def guesses(
    variants: Mapping[str, tuple[AttackModel, Rows]],
    answers: np.ndarray,
    split: tuple[np.ndarray, np.ndarray],
    seed: int,
    progress: Progress,
) -> tuple[Finding, ...]:
    """A finding per variant, which is a model and the rows of cases: learned from one part of the cases, on the other."""
    taught, asked = split
    findings = []
    for number, (name, (model, rows)) in enumerate(variants.items()):
        fitted = model.fit(rows(taught), answers[taught], seed)
        score = np.concatenate([fitted.score(rows(asked[i : i + BLOCK])) for i in range(0, len(asked), BLOCK)])
        findings.append(Finding.of(name, answers[asked], score, threshold=fitted.threshold, seed=seed))
        progress("attack models", number + 1, len(variants))
    return tuple(findings)
