"""The attack models: what an attacker trains on the cases whose answer is known.

=========  ====================================================================================
``mlp``    two layers of 128 with BatchNorm and ReLU, Adam 1e-3, batches of 256, 8 epochs (LGA-PGNN)
``rf``     random forest, 100 trees
``knn``    15 nearest neighbours
``lr``     logistic regression
``svm``    support vector machine with a Gaussian kernel (300 Nystroem features: linear in the cases)
=========  ====================================================================================

Columns are standardised with mean and deviation of the attacker's own training cases. Every model gives one score per
case, larger for "yes", with 0.5 (``svm``: 0) as its threshold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from graphveil.errors import InputError

Rows = Callable[[np.ndarray], np.ndarray]
BLOCK = 4096


class Fitted(Protocol):
    """A trained attack model."""

    threshold: float

    def score(self, rows: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True)
class AttackModel:
    """An attack model by name.

    Args:
        name: ``mlp``, ``rf``, ``knn``, ``lr`` or ``svm``.
        epochs: passes over the training cases (``mlp``).
    """

    name: str = "mlp"
    epochs: int = 8

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise InputError(f"unknown attack model {self.name!r}; known are: {', '.join(NAMES)}")
        if self.epochs < 1:
            raise InputError(f"an attack model needs at least 1 epoch, got {self.epochs}")

    def fit(self, rows: np.ndarray, answers: np.ndarray, seed: int) -> Fitted:
        """Train on the attacker's cases."""
        answers = np.asarray(answers, dtype=bool)
        if answers.all() or not answers.any():
            raise InputError("the cases the attacker knows have only one answer: nothing can be learned from them")
        if self.name == "mlp":
            return Perceptron(rows, answers, self.epochs, seed)
        return Classifier(_classical(self.name, seed, len(rows)), rows, answers)


NAMES = ("mlp", "rf", "knn", "lr", "svm")


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


class Classifier:
    """A scikit-learn model on standardised columns."""

    def __init__(self, model: Any, rows: np.ndarray, answers: np.ndarray) -> None:
        self.scale = Scale.of(rows)
        self.model = model.fit(self.scale(rows), answers)
        self.threshold = 0.5 if hasattr(model, "predict_proba") else 0.0

    def score(self, rows: np.ndarray) -> np.ndarray:
        scaled = self.scale(rows)
        if self.threshold:
            return np.asarray(self.model.predict_proba(scaled)[:, 1])
        return np.asarray(self.model.decision_function(scaled))


class Perceptron:
    """Two hidden layers of 128 with BatchNorm."""

    threshold = 0.5

    def __init__(self, rows: np.ndarray, answers: np.ndarray, epochs: int, seed: int) -> None:
        import torch
        from torch import nn

        self.scale = Scale.of(rows)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            width = rows.shape[1]
            layers = [nn.Linear(width, 128), nn.BatchNorm1d(128), nn.ReLU()]
            layers += [nn.Linear(128, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 1)]
            self.network = nn.Sequential(*layers)
            x = torch.from_numpy(self.scale(rows)).float()
            y = torch.from_numpy(answers).float()
            optimizer = torch.optim.Adam(self.network.parameters(), 1e-3)
            for _ in range(epochs):
                for batch in torch.randperm(len(x)).split(256):
                    if len(batch) < 2:  # BatchNorm has no variance of one case
                        continue
                    optimizer.zero_grad()
                    logits = self.network(x[batch]).squeeze(1)
                    nn.functional.binary_cross_entropy_with_logits(logits, y[batch]).backward()
                    optimizer.step()
        self.network.eval()

    def score(self, rows: np.ndarray) -> np.ndarray:
        import torch

        with torch.no_grad():
            logits = self.network(torch.from_numpy(self.scale(rows)).float()).squeeze(1)
        return torch.sigmoid(logits.double()).numpy()


@dataclass(frozen=True)
class Scale:
    """Mean and deviation of the training columns; constant columns are left at 0."""

    mean: np.ndarray
    deviation: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray) -> Scale:
        deviation = rows.std(axis=0)
        return cls(rows.mean(axis=0), np.where(deviation > 1e-12, deviation, np.inf))

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        scaled: np.ndarray = (rows - self.mean) / self.deviation
        return scaled


def score_in_blocks(model: Fitted, rows: Rows, cases: np.ndarray) -> np.ndarray:
    """The scores of many cases whose rows are built when needed."""
    return np.concatenate([model.score(rows(cases[i : i + BLOCK])) for i in range(0, len(cases), BLOCK)])
