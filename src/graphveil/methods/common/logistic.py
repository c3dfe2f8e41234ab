"""Softmax regression by L-BFGS: a strictly convex loss, so there is one answer and no coins.

Tests: ``tests/methods/test_own_classes.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from graphveil.privacy.noise import Array

STEPS = 200
FLAT = 1e-3  # slope of the mean loss at which a regression has been fitted


def cross_entropy(logits: Array, labels: np.ndarray) -> tuple[float, np.ndarray]:
    """Summed loss and its gradient at the logits."""
    rows = np.arange(len(labels))
    value = -float(log_softmax(logits, axis=1)[rows, labels].sum())
    error: Array = softmax(logits, axis=1)
    error[rows, labels] -= 1.0
    return value, error


def minimise(loss: Callable[[np.ndarray], tuple[float, np.ndarray]], start: Array, flat: float = 1e-5) -> Array:
    """Where the loss, given with its gradient, is least: no slope is above ``flat``."""
    options = {"maxiter": STEPS, "gtol": flat}
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x)


def softmax_regression(rows: Any, labels: np.ndarray, classes: int, ridge: float) -> Callable[[Any], Array]:
    """Rows (dense or sparse) to the log-probabilities of their classes.

    Least summed cross-entropy + ridge/2 |weights|^2; a tiny ridge keeps the offsets finite where a class has no row.
    """
    width = rows.shape[1]
    turned = rows.T.tocsr() if hasattr(rows, "tocsr") else rows.T
    pull = np.concatenate([np.full((width, classes), ridge), np.full((1, classes), 1e-3)])

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights = flat.reshape(width + 1, classes)
        value, error = cross_entropy(rows @ weights[:-1] + weights[-1], labels)
        slope = np.concatenate([turned @ error, error.sum(axis=0)[None]]) + pull * weights
        return value + 0.5 * float((pull * weights**2).sum()), slope.ravel()

    start = np.zeros((width + 1) * classes)
    found = minimise(loss, start, FLAT * len(labels)).reshape(width + 1, classes)
    return lambda others: np.asarray(log_softmax(others @ found[:-1] + found[-1], axis=1))
