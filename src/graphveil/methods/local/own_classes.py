"""Classes from public features alone: softmax regression, out of fold for whoever has a label.

Two views of the features are tried, both of unit length: as they are, and with rare columns weighted up (mostly empty columns,
as words are) or columns brought to one scale (others). The one with the least loss out of fold is kept. Features and labels
are public here, so nothing of this costs anything. Tests: ``tests/methods/test_own_classes.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from graphveil.graph.rows import SparseRows
from graphveil.graph.unit import unit_array, unit_rows
from graphveil.methods.common.logistic import cross_entropy, softmax_regression
from graphveil.privacy.noise import Array

RIDGE = 0.3
SHARPER = (
    1.0,
    1.5,
    2.0,
    3.0,
)  # a regression with a ridge is too modest: its heads make up for that, so views are compared so
MOSTLY_EMPTY = 0.5  # share of entries that are not 0 below which rare columns are weighted up


def own_scores(
    rows: Any, known: np.ndarray, labels: np.ndarray, classes: int, folds: int, coins: np.random.Generator
) -> Array:
    """Log-probabilities of everybody's class; who is ``known`` gets them from models that did not see their label."""
    part = coins.permutation(len(known)) % folds
    best: tuple[float, Any, Array] | None = None
    for view in views(rows):
        scores = np.empty((len(known), classes))
        for fold in range(folds):
            fit, left = part != fold, part == fold
            model = softmax_regression(view[known[fit]], labels[fit], classes, RIDGE)
            scores[left] = model(view[known[left]])
        loss = min(cross_entropy(sharpness * scores, labels)[0] for sharpness in SHARPER)
        if best is None or loss < best[0]:
            best = loss, view, scores
    assert best is not None  # there are always two views
    _, view, scores = best
    found = softmax_regression(view[known], labels, classes, RIDGE)(view)
    found[known] = scores
    return found


def views(rows: Any) -> tuple[Any, Any]:
    """Unit rows of the features, and unit rows with columns weighted."""
    matrix = sp.csr_matrix(rows if sp.issparse(rows) else np.asarray(rows), dtype=np.float64)
    filled = np.bincount(matrix.indices, minlength=matrix.shape[1]) if matrix.nnz else np.zeros(matrix.shape[1])
    if matrix.nnz < MOSTLY_EMPTY * matrix.shape[0] * matrix.shape[1]:
        rare = np.log((matrix.shape[0] + 1) / (filled + 1))
        return _unit(matrix), _unit(sp.csr_matrix(matrix @ sp.diags(rare)))
    dense = matrix.toarray()
    spread = dense.std(axis=0)
    scaled = (dense - dense.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return unit_array(dense), unit_array(scaled)


def _unit(matrix: sp.csr_matrix) -> sp.csr_matrix:
    found: Any = unit_rows(SparseRows(matrix))
    return found.values
