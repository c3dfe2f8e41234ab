"""Privacy bugs that have been made before, kept as patches: every one must be caught by the conformance suite.

Each mutant is a context manager that plants one bug; ``MUTANTS`` maps its name to (patch, method, promises to check).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from unittest.mock import patch

import numpy as np

from graphveil.methods import aggregation, gap, own_predictor
from graphveil.methods.dp_mlp import DpMlp
from graphveil.methods.gap import Gap
from graphveil.methods.gap_predictor import GapPredictor
from graphveil.privacy.noise import Noise
from graphveil.privacy.promise import EdgeLevel, NodeLevel, Promise

RECORD = NodeLevel(4.0, 1e-4)
BOUNDED = NodeLevel(4.0, 1e-4, adjacency="bounded-degree", max_degree=12)
EDGE = EdgeLevel(4.0, 1e-4)


@contextmanager
def clipping_skipped() -> Iterator[None]:
    """Per-example gradients enter the sum at full length."""
    import graphveil.learn as learn

    original = learn.clipped_gradient_sum
    with patch.object(
        learn, "clipped_gradient_sum", lambda network, x, y, clip, *rest: original(network, x, y, None, *rest)
    ):
        yield


@contextmanager
def root_of_the_degree_taken_twice() -> Iterator[None]:
    """sqrt(D) where the squared sensitivity is D: the root of an already rooted bound."""
    original = aggregation.hop_sensitivity
    with patch.object(aggregation, "hop_sensitivity", lambda promise, hop: math.sqrt(original(promise, hop))):
        yield


@contextmanager
def undirected_edge_counted_once() -> Iterator[None]:
    """One friendship moves two rows, the noise covers one."""
    with patch.object(aggregation, "hop_sensitivity", lambda promise, hop: 1.0):
        yield


@contextmanager
def noise_reused_across_hops() -> Iterator[None]:
    """Every aggregation gets the same draw."""
    drawn: dict[tuple[int, ...], np.ndarray] = {}
    original = Noise.gaussian

    def gaussian(self: Noise, sigma: float, shape: tuple[int, ...]) -> np.ndarray:
        if len(np.atleast_1d(shape)) < 2:
            return original(self, sigma, shape)
        return drawn.setdefault(tuple(shape), original(self, sigma, shape)).copy()

    with patch.object(Noise, "gaussian", gaussian):
        yield


@contextmanager
def data_dependent_max_degree() -> Iterator[None]:
    """Messages are scaled by the largest degree that happens to be in the data."""
    original = aggregation.aggregate

    def aggregate(lists, rows, promise):  # type: ignore[no-untyped-def]
        largest = max(int(lists.out_degrees.max()), 1)
        return original(lists, rows, promise) * (12 / largest)

    with patch.object(gap, "aggregate", aggregate):
        yield


@contextmanager
def scale_zero() -> Iterator[None]:
    """A calibration that silently came out as no noise at all."""
    with patch.object(Noise, "gaussian", lambda self, sigma, shape: np.zeros(shape)):
        yield


@contextmanager
def nan_feature_let_through() -> Iterator[None]:
    """Non-finite rows are neither refused nor zeroed."""
    from graphveil.graph import DenseRows

    validation = import_module("graphveil.graph.validate")

    trusting = lambda x, nodes, on_bad_rows: (DenseRows(x), np.zeros(nodes, dtype=bool))
    with patch.object(validation, "_rows", trusting):
        yield


@contextmanager
def mean_instead_of_sum() -> Iterator[None]:
    """The gradient is averaged over the records that happen to be there, then scaled back by a public size."""
    import graphveil.learn as learn

    original = learn.clipped_gradient_sum

    def averaged(network, inputs, targets, clip, *rest):  # type: ignore[no-untyped-def]
        there = int((np.asarray(targets) >= 0).sum())
        return original(network, inputs, targets, clip, *rest) * (len(targets) / max(there, 1))

    with patch.object(learn, "clipped_gradient_sum", averaged):
        yield


@contextmanager
def one_draw_for_all_numbers() -> Iterator[None]:
    """A scalar draw broadcast over a vector: differences between coordinates carry no noise."""
    original = Noise.gaussian
    with patch.object(Noise, "gaussian", lambda self, sigma, shape: np.full(shape, original(self, sigma, 1))):
        yield


@contextmanager
def signs_instead_of_gaussians() -> Iterator[None]:
    """Noise of the right variance and the wrong law."""

    def signs(self: Noise, sigma: float, shape: tuple[int, ...]) -> np.ndarray:
        return self._on_grid(np.sign(self.uniform(int(np.prod(shape))) - 0.5).reshape(shape), sigma)

    with patch.object(Noise, "gaussian", signs):
        yield


@contextmanager
def noise_off_the_grid() -> Iterator[None]:
    """The value is not rounded before noise is added, so its last digits survive."""
    with patch.object(Noise, "add", lambda self, value, noise, scale: np.asarray(value, dtype=float) + noise):
        yield


@contextmanager
def batches_of_fixed_size() -> Iterator[None]:
    """Batches drawn without replacement, accounted as Poisson."""

    def coins(self: Noise, rate: float, size: int) -> np.ndarray:
        chosen = np.zeros(size, dtype=bool)
        chosen[np.argsort(self.uniform(size))[: round(rate * size)]] = True
        return chosen

    with patch.object(Noise, "coins", coins):
        yield


@contextmanager
def nodes_in_no_mask_not_charged() -> Iterator[None]:
    """The mean reads everybody, the plan charges only those in a mask."""
    original = own_predictor.mean_release

    def release(*arguments):  # type: ignore[no-untyped-def]
        honest = original(*arguments)
        return replace(honest, sensitivity={k: v for k, v in honest.sensitivity.items() if k != "other"})

    with patch.object(own_predictor, "mean_release", release):
        yield


@contextmanager
def prediction_reads_the_edges() -> Iterator[None]:
    """A prediction sums over the true neighbours, without noise."""
    original = GapPredictor.logits

    def logits(self, graph):  # type: ignore[no-untyped-def]
        own = original(self, graph)
        return own + graph.lists.aggregate(own)

    with patch.object(GapPredictor, "logits", logits):
        yield


SMALL_GAP = {"steps": 4, "hidden": 4, "epochs": 2}
SAMPLED = DpMlp(network="paper", epochs=12, hidden=4, batch_size=5)
MUTANTS: dict[str, tuple[Callable[[], object], object, list[Promise]]] = {
    "clipping skipped": (clipping_skipped, DpMlp(steps=4), [RECORD]),
    "sqrt D for D": (root_of_the_degree_taken_twice, Gap(**SMALL_GAP), [BOUNDED]),
    "undirected edge counted once": (undirected_edge_counted_once, Gap(**SMALL_GAP), [EDGE]),
    "noise reused across hops": (noise_reused_across_hops, Gap(**SMALL_GAP), [RECORD]),
    "data-dependent max degree": (data_dependent_max_degree, Gap(**SMALL_GAP), [RECORD]),
    "scale 0": (scale_zero, DpMlp(steps=4), [RECORD]),
    "NaN feature": (nan_feature_let_through, DpMlp(steps=4), [RECORD]),
    "mean instead of sum": (mean_instead_of_sum, DpMlp(steps=4), [RECORD]),
    "one draw for all numbers": (one_draw_for_all_numbers, DpMlp(steps=4), [RECORD]),
    "signs instead of Gaussians": (signs_instead_of_gaussians, DpMlp(steps=4), [RECORD]),
    "noise off the grid": (noise_off_the_grid, DpMlp(steps=4), [RECORD]),
    "batches of fixed size": (batches_of_fixed_size, SAMPLED, [RECORD]),
    "nodes in no mask not charged": (nodes_in_no_mask_not_charged, DpMlp(steps=4), [RECORD]),
    "prediction reads the edges": (prediction_reads_the_edges, Gap(**SMALL_GAP), [RECORD]),
}
