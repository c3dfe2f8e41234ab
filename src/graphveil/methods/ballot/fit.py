"""Weights of own prediction and evidence, fitted on public calibration labels (edge level): post-processing of releases."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import log_softmax, softmax

from graphveil.privacy.noise import Array

RIDGE, OFFSET_RIDGE = 5.0, 1.0


def fit_votes(z: Array, evidence: Array, noise: float, known: np.ndarray, labels: np.ndarray) -> Array:
    """``a z + b1 S + b2 S / sqrt(||S||^2 + C noise^2)``: linear evidence, and evidence that does not grow with the degree."""
    length = np.sqrt(np.square(evidence).sum(axis=1, keepdims=True) + evidence.shape[1] * noise**2 + 1e-12)
    channels = np.stack([z, evidence, evidence / length])

    def logits(weights: Array, rows: slice | np.ndarray) -> Array:
        return np.asarray(np.einsum("f,fij->ij", weights, channels[:, rows]))

    def loss(weights: Array) -> tuple[float, np.ndarray]:
        value, error = _cross_entropy(logits(weights, known), labels)
        return value, np.einsum("ij,fij->f", error, channels[:, known])

    return logits(_minimise(loss, np.array([1.0, 0.0, 0.0])), slice(None))


def fit_structural(z: Array, table: Array, known: np.ndarray, labels: np.ndarray) -> Array:
    """``a z + S U + z_c M / 2 + c`` with S = [table, signed root of table], ridge on U, M, a - 1 and c."""
    classes = z.shape[1]
    features = np.hstack([table, np.sign(table) * np.sqrt(np.abs(table)), (z - z.mean(axis=1, keepdims=True)) / 2])
    width = features.shape[1]
    ridge = np.concatenate([[OFFSET_RIDGE], np.full(width * classes, RIDGE), np.full(classes, OFFSET_RIDGE)])
    start = np.zeros(len(ridge))
    start[0] = 1.0

    def logits(weights: Array, rows: slice | np.ndarray) -> Array:
        matrix = weights[1 : 1 + width * classes].reshape(width, classes)
        return np.asarray(weights[0] * z[rows] + features[rows] @ matrix + weights[1 + width * classes :])

    def loss(weights: Array) -> tuple[float, np.ndarray]:
        value, error = _cross_entropy(logits(weights, known), labels)
        slope = np.concatenate([[np.sum(error * z[known])], (features[known].T @ error).ravel(), error.sum(axis=0)])
        away = weights - start
        return value + 0.5 * float(ridge @ away**2), slope + ridge * away

    return logits(_minimise(loss, start), slice(None))


def _cross_entropy(logits: Array, labels: np.ndarray) -> tuple[float, np.ndarray]:
    """Summed loss and its gradient at the logits."""
    rows = np.arange(len(labels))
    value = -float(log_softmax(logits, axis=1)[rows, labels].sum())
    error: Array = softmax(logits, axis=1)
    error[rows, labels] -= 1.0
    return value, error


def _minimise(loss: Callable[[np.ndarray], tuple[float, np.ndarray]], start: Array) -> Array:
    from scipy.optimize import minimize

    result: Array = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 200}).x
    return result
