"""Privacy bugs that have been made before, kept as patches: every one must be caught by the conformance suite.

Each mutant is a context manager that plants one bug; ``MUTANTS`` maps its name to (patch, method, promises to check).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from unittest.mock import patch

import numpy as np

from graphveil.methods import gap
from graphveil.methods.common import aggregation, own_predictor
from graphveil.methods.dp_mlp import DpMlp
from graphveil.methods.dp_sage import DpSage
from graphveil.methods.dpar import Dpar
from graphveil.methods.gap import Gap
from graphveil.methods.gap.predictor import GapPredictor
from graphveil.methods.local import LocalRecipe
from graphveil.methods.lpgnn import Lpgnn
from graphveil.privacy.accounting.loss import epsilon_of
from graphveil.privacy.local import Local
from graphveil.privacy.noise import Noise, grid
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
    with patch.object(aggregation, "hop_sensitivity", lambda *args: math.sqrt(original(*args))):
        yield


@contextmanager
def undirected_edge_counted_once() -> Iterator[None]:
    """One friendship moves two rows, the noise covers one."""
    with patch.object(aggregation, "hop_sensitivity", lambda *args: 1.0):
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


def on_grid(standard: np.ndarray, sigma: float) -> np.ndarray:
    return np.rint(standard * (sigma / grid(sigma))) * grid(sigma)


@contextmanager
def signs_instead_of_gaussians() -> Iterator[None]:
    """Noise of the right variance and the wrong law."""

    def signs(self: Noise, sigma: float, shape: tuple[int, ...]) -> np.ndarray:
        return on_grid(np.sign(self.uniform(int(np.prod(shape))) - 0.5).reshape(shape), sigma)

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
SAMPLED = DpMlp(network="paper", epochs=5, hidden=4, batch_size=5)
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


# Mutants of sampling, accounting and local randomizers: caught by the audit (tests/audit/test_audit_mutants.py).


@contextmanager
def group_counted_as_one_row() -> Iterator[None]:
    """Lemma G forgotten: the noise covers one row, a person touches several."""
    from graphveil.methods.dp_sage import DpSage

    with patch.object(DpSage, "group", lambda self, promise: (1, 0)):
        yield


@contextmanager
def one_batch_for_all_steps() -> Iterator[None]:
    """The coins of a batch are drawn once and kept."""
    drawn: dict[tuple[float, int], np.ndarray] = {}
    original = Noise.coins

    def coins(self: Noise, rate: float, size: int) -> np.ndarray:
        return drawn.setdefault((rate, size), original(self, rate, size))

    with patch.object(Noise, "coins", coins):
        yield


@contextmanager
def noise_that_remembers() -> Iterator[None]:
    """Every draw of a shape leans on the one before: right law, wrong dependence."""
    last: dict[tuple[int, ...], np.ndarray] = {}
    original = Noise.gaussian

    def gaussian(self: Noise, sigma: float, shape: tuple[int, ...]) -> np.ndarray:
        fresh = original(self, sigma, shape) / sigma
        key = tuple(np.atleast_1d(shape))
        mixed = 0.6 * last.get(key, fresh) + 0.8 * fresh if key in last else fresh
        last[key] = mixed
        return on_grid(mixed, sigma)

    with patch.object(Noise, "gaussian", gaussian):
        yield


@contextmanager
def _accounting(**changes: object) -> Iterator[None]:
    """``graphveil.privacy.accounting.loss`` with other functions and without what it remembers."""
    import graphveil.privacy.accounting.loss as loss

    remembered = (loss._epsilon_by_pld, loss._distribution)
    with ExitStack() as stack:
        for name, value in changes.items():
            stack.enter_context(patch.object(loss, name, value))
        for function in remembered:
            function.cache_clear()
        yield
    for function in remembered:
        function.cache_clear()


@contextmanager
def replacing_accounted_as_removing() -> Iterator[None]:
    """One row changes into another; the accountant thinks that it vanishes."""
    import graphveil.privacy.accounting.loss as loss

    original = loss._distribution.__wrapped__
    removing = lambda found: original(
        replace(found, replace=False) if isinstance(found, loss.SampledGaussian) else found
    )
    with _accounting(_distribution=lru_cache(removing)):
        yield


@contextmanager
def sampling_rate_halved_in_the_accounting() -> Iterator[None]:
    """The accountant is told half of the rate at which batches are drawn."""
    import graphveil.privacy.accounting.loss as loss

    original = loss._distribution.__wrapped__
    halved = lambda found: original(
        replace(found, rate=found.rate / 2) if isinstance(found, loss.SampledGaussian) else found
    )
    with _accounting(_distribution=lru_cache(halved)):
        yield


@contextmanager
def gaussians_added_like_their_maximum() -> Iterator[None]:
    """Composition forgets all but the largest Gaussian parameter."""
    import graphveil.privacy.accounting.loss as loss

    original = loss.compose

    def compose(losses):  # type: ignore[no-untyped-def]
        listed = list(losses)
        mus = [found.mu for found in listed if isinstance(found, loss.Gdp)]
        return original([*(f for f in listed if not isinstance(f, loss.Gdp)), *([loss.Gdp(max(mus))] if mus else [])])

    with _accounting(compose=compose):
        yield


@contextmanager
def linear_amplification() -> Iterator[None]:
    """Sampled slots are said to cost rate times epsilon."""
    import graphveil.privacy.promise as promise

    linear = lambda losses, delta, rate: rate * epsilon_of(losses, delta / rate)
    check = patch("graphveil.audit.accountants.amplified_epsilon", linear)
    with patch.object(promise, "amplified_epsilon", linear), _accounting(amplified_epsilon=linear), check:
        yield


@contextmanager
def bits_at_the_whole_budget() -> Iterator[None]:
    """Every sampled attribute of the multi-bit mechanism gets the whole epsilon."""
    from graphveil.exchange.randomizers import MultiBit

    with patch.object(MultiBit, "q", property(lambda self: 1 / (math.exp(self.budget) + 1))):
        yield


@contextmanager
def labels_kept_too_often() -> Iterator[None]:
    """The sampler keeps labels more often than its stated probabilities say."""
    from graphveil.exchange.randomizers import LabelResponse

    original = LabelResponse.randomize

    def randomize(self, records, broadcast, rng):  # type: ignore[no-untyped-def]
        drawn = np.asarray(original(self, records, broadcast, rng))
        return np.where(rng.coins(0.3, drawn.size).reshape(drawn.shape), records, drawn)

    with patch.object(LabelResponse, "randomize", randomize):
        yield


@contextmanager
def counts_with_half_the_noise() -> Iterator[None]:
    """Swapping a contact moves two counts; the Laplace noise is for one."""
    from graphveil.exchange.randomizers import LabelHistogram

    with patch.object(LabelHistogram, "scale", property(lambda self: 1 / self.budget)):
        yield


@contextmanager
def second_answer_with_fresh_noise() -> Iterator[None]:
    """A client forgets what it has sent."""
    from graphveil.exchange.client import Client

    original = Client.report

    def report(self, name, broadcast=None):  # type: ignore[no-untyped-def]
        self._sent.pop(name, None)
        return original(self, name, broadcast)

    with patch.object(Client, "report", report):
        yield


def inside(server):  # type: ignore[no-untyped-def]
    """The clients behind the answers of a server, which only a planted bug reaches for."""
    answers = server.answers
    while not hasattr(answers, "clients"):
        answers = answers.answers
    return answers


@contextmanager
def second_broadcast_of_clean_labels() -> Iterator[None]:
    """The server sends round what the clients hold instead of what it has inferred from reports."""
    from graphveil.methods.local import algorithm
    from graphveil.privacy.local import Part

    original = algorithm.from_histograms

    def from_histograms(session, *rest):  # type: ignore[no-untyped-def]
        ask = session.ask

        def asked(name, broadcast=None):  # type: ignore[no-untyped-def]
            clean = np.concatenate([client._records[Part.LABELS] for client in inside(session).clients])
            return ask(name, np.maximum(clean, 0) if name == "histogram-2" else broadcast)

        session.ask = asked
        return original(session, *rest)

    with patch.object(algorithm, "from_histograms", from_histograms):
        yield


@contextmanager
def true_degrees_where_they_are_hidden() -> Iterator[None]:
    """The certificate says that lengths of lists are hidden, and the server takes them from the lists."""
    from graphveil.methods.local import algorithm
    from graphveil.privacy.local import Part

    def list_lengths(session, rounds, public):  # type: ignore[no-untyped-def]
        lists = [client._records[Part.EDGES].degrees for client in inside(session).clients]
        return np.concatenate(lists).astype(np.float64)

    with patch.object(algorithm, "list_lengths", list_lengths):
        yield


REPLACED = NodeLevel(4.0, 1e-4, relation="replace")
NODE = NodeLevel(4.0, 1e-4, adjacency="node")
SAGE = {"steps": 6, "hidden": 3, "max_degree": 3, "batch_rate": 0.5}
SLOTS = {"steps": 3, "sources": 6, "hidden": 4, "projection": 3, "graph_rate": 0.1}
ACCOUNTING = {
    "replacing accounted as removing": replacing_accounted_as_removing,
    "sampling rate halved": sampling_rate_halved_in_the_accounting,
    "Gaussians added like their maximum": gaussians_added_like_their_maximum,
    "linear amplification": linear_amplification,
}
MORE_MUTANTS: dict[str, tuple[Callable[[], object], Callable[[], object], object]] = {
    "group counted as one row": (group_counted_as_one_row, lambda: DpSage(**SAGE), RECORD),
    "one batch for all steps": (one_batch_for_all_steps, lambda: DpMlp(**SAMPLED.get_params()), RECORD),
    "noise that remembers": (noise_that_remembers, lambda: Gap(**SMALL_GAP), RECORD),
    "replacing accounted as removing": (
        replacing_accounted_as_removing,
        lambda: DpMlp(network="paper", epochs=2, hidden=4, batch_size=5),
        REPLACED,
    ),
    "linear amplification": (linear_amplification, lambda: Dpar(**SLOTS), NODE),
    "bits at the whole budget": (bits_at_the_whole_budget, lambda: Lpgnn(), Local(6.0, 1.0, "raw")),
    "labels kept too often": (labels_kept_too_often, lambda: Lpgnn(), Local(1.0, 1.0, "raw")),
    "counts with half the noise": (counts_with_half_the_noise, lambda: LocalRecipe(), Local("withheld", 1.0, 1.0)),
    "second broadcast of clean labels": (
        second_broadcast_of_clean_labels,
        lambda: LocalRecipe(histogram_rounds=2),
        Local("withheld", 1.0, 2.0),
    ),
    "true degrees where they are hidden": (
        true_degrees_where_they_are_hidden,
        lambda: LocalRecipe(degrees="noisy"),
        Local("withheld", 1.0, 1.0),
    ),
    "second answer with fresh noise": (second_answer_with_fresh_noise, lambda: Lpgnn(), Local(1.0, 1.0, "raw")),
}
