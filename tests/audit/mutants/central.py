"""Bugs of central methods: sensitivities, clipping, and choices that read private data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib import import_module
from unittest.mock import patch

import numpy as np
import torch

from graphveil import learn
from graphveil.learn.centred_sums import CentredSums
from graphveil.learn.engine.kept import Kept
from graphveil.learn.grids import MOST_BITS
from graphveil.methods import dp_mlp, gap, nip_gnn
from graphveil.methods.ballot import algorithm as ballot
from graphveil.methods.ballot.combiner import Combiner
from graphveil.methods.common import aggregation, block_training, own_predictor, trainer
from tests.audit.mutants.planting import planted


@contextmanager
def epoch_chosen_on_validation_labels() -> Iterator[None]:
    """Of all epochs the one with the best accuracy on true validation labels is kept, as the published modes declare."""
    original = trainer.descend_privately

    def chosen(curator, name, network, inputs, optimizer, progress, **others):  # type: ignore[no-untyped-def]
        look = lambda question: question(curator._private)
        best = trainer.BestEpoch(trainer.validation_accuracy(look, inputs))
        original(curator, name, network, inputs, optimizer, progress, **{**others, "after_epoch": best})
        best.restore(network)

    with ExitStack() as stack:
        for module in (trainer, nip_gnn):
            stack.enter_context(patch.object(module, "descend_privately", chosen))
        stack.enter_context(block_weights_chosen(lambda seen: seen))
        stack.enter_context(own_weights_chosen(lambda seen: seen))
        yield


@contextmanager
def block_weights_chosen(candidates: Callable[[list[torch.Tensor]], list[torch.Tensor]]) -> Iterator[None]:
    """Training block by block keeps those weights, of candidates among all it had, that are best on true validation labels."""
    original = block_training.descend_in_blocks

    def chosen(curator, name, network, inputs, optimizer, progress):  # type: ignore[no-untyped-def]
        seen: list[torch.Tensor] = []
        original(curator, name, network, inputs, optimizer, progress, lambda one: seen.append(one.parameters.clone()))
        private = curator._private
        asked = private.masks["calibration"] & (private.labels >= 0)
        held = Kept(block_training.Chosen(inputs, asked, MOST_BITS))

        def right(parameters: torch.Tensor) -> float:
            network.parameters.copy_(parameters)
            return block_training.accuracy(private, network, held)

        network.parameters.copy_(max(candidates(seen), key=right))

    with patch.object(block_training, "descend_in_blocks", chosen):
        yield


@contextmanager
def own_weights_chosen(candidates: Callable[[list[np.ndarray]], list[np.ndarray]]) -> Iterator[None]:
    """The own predictor keeps those weights, of candidates among all it had, that are best on true validation labels."""
    learn_own, step = own_predictor.learn_own, learn.GlobalMoment.step
    seen: list[np.ndarray] = []

    def remembering(self, parameters, *others):  # type: ignore[no-untyped-def]
        step(self, parameters, *others)
        seen.append(parameters.numpy().copy())

    def chosen(curator, *arguments):  # type: ignore[no-untyped-def]
        seen.clear()
        with patch.object(learn.GlobalMoment, "step", remembering):
            found = learn_own(curator, *arguments)
        private = curator._private
        asked = private.masks["calibration"] & (private.labels >= 0)

        def right(weights: np.ndarray) -> float:
            guess = replace(found, weights=weights.reshape(found.weights.shape)).logits(private).argmax(axis=1)
            return float(np.mean(guess[asked] == private.labels[asked]))

        best = max(candidates(seen), key=right)
        return replace(found, weights=best.reshape(found.weights.shape))

    with patch.object(ballot, "learn_own", chosen), patch.object(dp_mlp, "learn_own", chosen):
        yield


@contextmanager
def weights_chosen_on_validation_labels() -> Iterator[None]:
    """Of the last weights and their average over the epochs, the better on true validation labels is kept."""
    original = trainer.descend_privately

    def chosen(curator, name, network, inputs, optimizer, progress, **others):  # type: ignore[no-untyped-def]
        seen: list[torch.Tensor] = []
        keep = lambda one: seen.append(one.parameters.clone())
        original(curator, name, network, inputs, optimizer, progress, **{**others, "after_epoch": keep})
        private = curator._private
        rows = np.flatnonzero(private.masks["calibration"] & (private.labels >= 0))
        features, labels = learn.take(inputs(private), rows), private.labels[rows]

        def right(parameters: torch.Tensor) -> float:
            network.parameters.copy_(parameters)
            return float(np.mean(network(features).argmax(dim=1).numpy() == labels))

        last, mean = network.parameters.clone(), sum(seen) / len(seen)
        network.parameters.copy_(mean if right(mean) > right(last) else last)

    with ExitStack() as stack:
        for module in (trainer, nip_gnn):
            stack.enter_context(patch.object(module, "descend_privately", chosen))
        stack.enter_context(block_weights_chosen(lambda seen: [seen[-1], sum(seen) / len(seen)]))
        stack.enter_context(own_weights_chosen(lambda seen: [seen[-1], sum(seen) / len(seen)]))
        yield


@planted(ballot.Election, "chosen_mode")
def mode_chosen_on_true_labels(original):
    """Ballot looks at the classes themselves instead of at its noisy test."""

    def chosen(self, poll):
        labels = self.curator._private.labels[self.curator.masks["calibration"]]
        return ballot.Mode.FEATURES if np.mean(labels) > 0.5 else ballot.Mode.HOMOPHILOUS

    return chosen


@planted(ballot.tally, "ballot_sum")
def ballots_weigh_too_much(original):
    return lambda *arguments: 1.5 * original(*arguments)


@planted(Combiner, "gradient_sum")
def combiner_not_clipped(original):
    return lambda self, z, table, labels, clip: original(self, z, 30 * table, labels, None)


@planted(own_predictor, "unit_rows")
def rows_at_full_length(original):
    """The mean is taken of rows that were never brought to length 1."""
    return lambda rows: rows


@planted(own_predictor, "release_centre")
def mean_over_the_true_count(original):
    """The noisy sum is divided by how many people really have features."""

    def centre(curator, *arguments, **named):
        present = int(curator._private.rows.occupied().sum())
        return original(curator, *arguments, **named) * (curator.facts.nodes / max(present, 1))

    return centre


@contextmanager
def clipping_skipped() -> Iterator[None]:
    """Per-example gradients enter the sum at full length."""
    original, exact, in_blocks = learn.clipped_gradient_sum, CentredSums.gradients, learn.exact_gradient_sum
    whole = lambda network, x, y, clip, *rest, **to: original(network, x, y, None, *rest, **to)
    of_own = lambda self, rows, labels, clip, grid: exact(self, rows, labels, math.inf, grid)
    of_block = lambda network, x, y, clip, *rest: in_blocks(network, x, y, math.inf, *rest)
    with (
        patch.object(learn, "clipped_gradient_sum", whole),
        patch.object(CentredSums, "gradients", of_own),
        patch.object(learn, "exact_gradient_sum", of_block),
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
def data_dependent_max_degree() -> Iterator[None]:
    """Messages are scaled by the largest degree that happens to be in the data."""
    original = aggregation.aggregate_blocks

    def aggregate(private, sent, promise):  # type: ignore[no-untyped-def]
        largest = max(int(private.lists.out_degrees.max()), 1)
        return original(private, sent, promise) * (12 / largest)

    with patch.object(gap, "aggregate_blocks", aggregate):
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
    original, exact, in_blocks = learn.clipped_gradient_sum, CentredSums.gradients, learn.exact_gradient_sum

    def averaged(network, inputs, targets, clip, *rest, **to):  # type: ignore[no-untyped-def]
        there = int((np.asarray(targets) >= 0).sum())
        return original(network, inputs, targets, clip, *rest, **to) * (len(targets) / max(there, 1))

    def of_own(self, rows, labels, clip, grid):  # type: ignore[no-untyped-def]
        there = int((labels >= 0).sum())
        return exact(self, rows, labels, clip, grid) * (len(labels) / max(there, 1))

    def of_block(network, inputs, labels, *rest):  # type: ignore[no-untyped-def]
        return in_blocks(network, inputs, labels, *rest) * (len(labels) / max(int((labels >= 0).sum()), 1))

    with (
        patch.object(learn, "clipped_gradient_sum", averaged),
        patch.object(CentredSums, "gradients", of_own),
        patch.object(learn, "exact_gradient_sum", of_block),
    ):
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
def group_counted_as_one_row() -> Iterator[None]:
    """Lemma G forgotten: the noise covers one row, a person touches several."""
    from graphveil.methods.dp_sage import DpSage

    with patch.object(DpSage, "group", lambda self, promise: (1, 0)):
        yield
