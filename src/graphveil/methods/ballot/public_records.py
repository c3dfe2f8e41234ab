"""The own predictor of the edge level, where features and labels are public: an average of ordinary classifiers.

A network on unit rows, a network on tf-idf rows and, up to 6000 nodes, a kernel machine and nearest neighbours on
tf-idf rows. Their mean replaces the first network unless its likelihood on the calibration labels is worse. Reads no
edges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphveil.methods.ballot.combiner import log_softmax, softmax
from graphveil.methods.base import Progress

if TYPE_CHECKING:
    from graphveil.graph import Graph

SMALL = 6000  # nodes up to which kernels and nearest neighbours are affordable
HIDDEN = 64
RATE, DECAY = 0.01, 1e-3
LARGE_RATE, LARGE_DECAY, LARGE_EPOCHS = 0.03, 1e-4, 100  # above SMALL nodes


def public_log_probabilities(
    records: Graph, masks: dict[str, np.ndarray], epochs: int, coins: np.random.Generator, progress: Progress | None
) -> np.ndarray:
    """log p(class | own features) for every node, from the labels of training nodes."""
    import scipy.sparse as sp

    targets = np.where(masks["train"], records.labels, -1)
    known = np.flatnonzero(masks["calibration"] & (records.labels >= 0))
    seen = np.unique(targets[targets >= 0])
    if not records.features or len(seen) < 2:
        counts = np.bincount(targets[targets >= 0], minlength=records.classes) + 1.0
        return np.tile(np.log(counts / counts.sum()), (records.nodes, 1))
    rows = sp.csr_matrix(records.rows.values)
    network = lambda inputs, dropout: _network(inputs, targets, records.classes, dropout, epochs, coins, progress)
    plain = network(_unit(rows), 0.5)
    weighted = _unit(tf_idf(rows))
    members = [plain, network(weighted, 0.7)]
    if records.nodes <= SMALL:
        members += [_kernel_machine(weighted, targets, known, records), _neighbours(weighted, targets, records.classes)]
    average = np.mean(members, axis=0)
    if len(known) and best_likelihood(plain, known, records) < best_likelihood(average, known, records):
        average = plain
    return np.log(np.maximum(average, 1e-9))


def tf_idf(rows: Any) -> Any:
    """Columns weighted by log((1 + n) / (1 + count)) + 1."""
    import scipy.sparse as sp

    counts = np.asarray((rows != 0).sum(axis=0)).ravel()
    return rows @ sp.diags_array(np.log((1 + rows.shape[0]) / (1 + counts)) + 1)


def best_likelihood(probabilities: np.ndarray, known: np.ndarray, records: Graph) -> float:
    """Mean negative log-likelihood at the best temperature."""
    z, labels = np.log(np.maximum(probabilities[known], 1e-9)), records.labels[known]
    at = lambda scale: -float(np.mean(log_softmax(scale * z)[np.arange(len(labels)), labels]))
    return min(at(scale) for scale in np.geomspace(0.2, 5, 25))


def _unit(rows: Any) -> Any:
    from graphveil.graph import SparseRows
    from graphveil.graph.unit import unit_rows

    return unit_rows(SparseRows(rows)).values  # type: ignore[attr-defined]


def _network(
    rows: Any,
    targets: np.ndarray,
    classes: int,
    dropout: float,
    epochs: int,
    coins: np.random.Generator,
    progress: Progress | None,
) -> np.ndarray:
    import torch

    from graphveil.graph import DenseRows, SparseRows
    from graphveil.learn import MLP, Activation, Adam, CentredRows, train_plainly

    large = rows.shape[0] > SMALL
    dense = rows.nnz > 0.2 * np.prod(rows.shape)
    stored = DenseRows(torch.from_numpy(rows.toarray())) if dense else SparseRows(rows)
    inputs = CentredRows(stored, np.zeros(rows.shape[1]), bias=0.1)
    network = MLP((rows.shape[1] + 1, HIDDEN, classes), Activation.RELU).initialise(coins)
    report = None if progress is None else lambda done, total: progress("own predictor", done, total)
    train_plainly(
        network,
        inputs,
        targets,
        epochs=min(epochs, LARGE_EPOCHS) if large else epochs,
        coins=coins,
        optimizer=Adam(LARGE_RATE if large else RATE),
        weight_decay=LARGE_DECAY if large else DECAY,
        dropout=dropout,
        progress=report,
    )
    return softmax(network(inputs).numpy())


def _kernel_machine(rows: Any, targets: np.ndarray, known: np.ndarray, records: Graph) -> np.ndarray:
    """Softmax of a support vector machine's decision values, the temperature chosen on calibration labels."""
    from sklearn.svm import SVC

    chosen = np.flatnonzero(targets >= 0)
    machine = SVC(C=2.0, gamma=1.0, decision_function_shape="ovr").fit(rows[chosen], targets[chosen])
    values = machine.decision_function(rows)
    if values.ndim == 1:
        values = np.stack([-values, values], axis=1)
    decisions = np.full((records.nodes, records.classes), values.min() - 1.0)
    decisions[:, machine.classes_] = values
    if not len(known):
        return softmax(decisions)
    scales = np.geomspace(0.3, 10, 20)
    return softmax(
        decisions * min(scales, key=lambda scale: best_likelihood_at(softmax(decisions * scale), known, records))
    )


def best_likelihood_at(probabilities: np.ndarray, known: np.ndarray, records: Graph) -> float:
    return -float(np.mean(np.log(np.maximum(probabilities[known, records.labels[known]], 1e-9))))


def _neighbours(rows: Any, targets: np.ndarray, classes: int) -> np.ndarray:
    from sklearn.neighbors import KNeighborsClassifier

    chosen = np.flatnonzero(targets >= 0)
    count = min(20, len(chosen))
    nearest = KNeighborsClassifier(n_neighbors=count, weights="distance", metric="cosine").fit(
        rows[chosen], targets[chosen]
    )
    probabilities = np.zeros((rows.shape[0], classes))
    probabilities[:, nearest.classes_] = nearest.predict_proba(rows)
    return 0.95 * probabilities + 0.05 / classes
