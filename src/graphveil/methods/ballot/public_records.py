"""The own predictor of the edge level, where features and labels are public: an average of ordinary classifiers.

A network on unit rows, a network on tf-idf rows and, up to 6000 nodes, a kernel machine and nearest neighbours on
tf-idf rows. Their mean replaces the first network unless its likelihood on the calibration labels is worse. Reads no
edges.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.special import log_softmax, softmax

from graphveil import learn
from graphveil.graph import DenseRows, Graph, SparseRows
from graphveil.graph.unit import unit_rows
from graphveil.privacy.noise import Array
from graphveil.progress import Progress

SMALL = 6000  # nodes up to which kernels and nearest neighbours are affordable
HIDDEN = 64
RATE, DECAY = 0.01, 1e-3
LARGE_RATE, LARGE_DECAY, LARGE_EPOCHS = 0.03, 1e-4, 100  # above SMALL nodes


def public_log_probabilities(
    records: Graph, masks: dict[str, np.ndarray], epochs: int, coins: np.random.Generator, progress: Progress
) -> Array:
    """log p(class | own features) for every node, from the labels of training nodes."""
    import scipy.sparse as sp
    from sklearn.feature_extraction.text import TfidfTransformer

    targets = np.where(masks["train"], records.labels, -1)
    known = np.flatnonzero(masks["calibration"] & (records.labels >= 0))
    seen = np.unique(targets[targets >= 0])
    if not records.features or len(seen) < 2:
        counts = np.bincount(targets[targets >= 0], minlength=records.classes) + 1.0
        return np.tile(np.log(counts / counts.sum()), (records.nodes, 1))
    rows = sp.csr_matrix(records.rows.values)  # type: ignore[attr-defined]
    plain = _network(_unit(rows), targets, records.classes, 0.5, epochs, coins, progress)
    weighted = _unit(TfidfTransformer(norm=None).fit_transform(rows))
    members = [plain, _network(weighted, targets, records.classes, 0.7, epochs, coins, progress)]
    if records.nodes <= SMALL:
        members += [_kernel_machine(weighted, targets, known, records), _neighbours(weighted, targets, records.classes)]
    average = np.mean(members, axis=0)
    if len(known) and best_likelihood(plain, known, records) < best_likelihood(average, known, records):
        average = plain
    return np.asarray(np.log(np.maximum(average, 1e-9)))


def best_likelihood(probabilities: Array, known: np.ndarray, records: Graph) -> float:
    """Mean negative log-likelihood at the best temperature."""
    z, labels = np.log(np.maximum(probabilities[known], 1e-9)), records.labels[known]
    chosen = np.arange(len(labels)), labels
    return min(-float(np.mean(log_softmax(scale * z, axis=1)[chosen])) for scale in np.geomspace(0.2, 5, 25))


def _unit(rows: Any) -> Any:
    return unit_rows(SparseRows(rows)).values  # type: ignore[attr-defined]


def _network(
    rows: Any,
    targets: np.ndarray,
    classes: int,
    dropout: float,
    epochs: int,
    coins: np.random.Generator,
    progress: Progress,
) -> Array:
    import torch

    large = rows.shape[0] > SMALL
    dense = rows.nnz > 0.2 * np.prod(rows.shape)
    stored = DenseRows(torch.from_numpy(rows.toarray())) if dense else SparseRows(rows)
    inputs = learn.CentredRows(stored, np.zeros(rows.shape[1]), bias=0.1)
    network = learn.MLP((rows.shape[1] + 1, HIDDEN, classes), torch.relu).initialise(coins)
    learn.train_plainly(
        network,
        inputs,
        targets,
        epochs=min(epochs, LARGE_EPOCHS) if large else epochs,
        coins=coins,
        optimizer=learn.Adam(LARGE_RATE if large else RATE),
        weight_decay=LARGE_DECAY if large else DECAY,
        dropout=dropout,
        progress=partial(progress, "own predictor"),
    )
    return np.asarray(softmax(network(inputs).numpy(), axis=1))


def _kernel_machine(rows: Any, targets: np.ndarray, known: np.ndarray, records: Graph) -> Array:
    """Softmax of a support vector machine's decision values, the temperature chosen on calibration labels."""
    from sklearn.svm import SVC

    chosen = np.flatnonzero(targets >= 0)
    machine = SVC(C=2.0, gamma=1.0, decision_function_shape="ovr").fit(rows[chosen], targets[chosen])
    values = machine.decision_function(rows)
    if values.ndim == 1:
        values = np.stack([-values, values], axis=1)
    decisions = np.full((records.nodes, records.classes), values.min() - 1.0)
    decisions[:, machine.classes_] = values
    scales = np.geomspace(0.3, 10, 20) if len(known) else [1.0]
    candidates: list[Array] = [softmax(decisions * scale, axis=1) for scale in scales]
    return min(candidates, key=lambda found: likelihood(found, known, records) if len(known) else 0.0)


def likelihood(probabilities: Array, known: np.ndarray, records: Graph) -> float:
    """Mean negative log-likelihood."""
    return -float(np.mean(np.log(np.maximum(probabilities[known, records.labels[known]], 1e-9))))


def _neighbours(rows: Any, targets: np.ndarray, classes: int) -> Array:
    from sklearn.neighbors import KNeighborsClassifier

    chosen = np.flatnonzero(targets >= 0)
    count = min(20, len(chosen))
    nearest = KNeighborsClassifier(n_neighbors=count, weights="distance", metric="cosine").fit(
        rows[chosen], targets[chosen]
    )
    probabilities = np.zeros((rows.shape[0], classes))
    probabilities[:, nearest.classes_] = nearest.predict_proba(rows)
    return 0.95 * probabilities + 0.05 / classes
