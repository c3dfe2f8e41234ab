"""The algorithm of DPAR: sources by public coins, their private PageRank rows Pi, and training on softmax(Pi f(X)).

Three ways to train: :func:`learn_from_everybody` (f linear, every training slot an example), :func:`learn_from_table` (a noisy
Pi X, one example per source) and :func:`learn_from_rows` (as published: the M mixed rows alone).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from graphveil.methods.common.group_training import descend_on_groups
from graphveil.methods.common.own_predictor import OwnPredictor, centred, own_optimizer
from graphveil.methods.dpar.bounds import Ranking
from graphveil.methods.dpar.predictor import TwoLayers, projected_rows
from graphveil.methods.dpar.rows import MixedRows, mixed_gradient_sum, top_entries, unit_sum
from graphveil.privacy.curator import Curator
from graphveil.progress import Progress

if TYPE_CHECKING:
    from graphveil.graph import Graph
    from graphveil.learn import MixtureRows, Optimizer

    Prepared = tuple[np.ndarray, np.ndarray]


def choose_sources(order: np.ndarray, count: int, first: np.ndarray | None = None) -> np.ndarray:
    """The first ``count`` slots of a public order; those in the mask ``first`` come before all others."""
    if first is not None:
        order = np.concatenate([order[first[order]], order[~first[order]]])
    return order[:count]


def release_rows(curator: Curator, ranking: Ranking, sources: np.ndarray, coins: np.random.Generator) -> MixedRows:
    """The sparse matrix Pi: released choices, or an ablation that reads nothing."""
    m, picks = len(sources), ranking.picks_of(curator.facts)
    slots = np.flatnonzero(ranking.slots(curator.masks))
    if ranking.rows == "identity":
        return MixedRows(sources[:, None], np.ones((m, 1)))
    if ranking.rows == "random":
        found = MixedRows(coins.integers(slots.size, size=(m, picks)), np.full((m, picks), 1 / picks))
    elif ranking.select == "gm":
        found = top_entries(curator.release("pagerank", lambda private: clipped_rows(ranking, private, sources)), picks)
    else:
        found = _chosen_entries(curator, ranking, sources, picks)
    return MixedRows(slots[found.columns], found.weights)


def _chosen_entries(curator: Curator, ranking: Ranking, sources: np.ndarray, picks: int) -> MixedRows:
    """Entries chosen by Gumbel noise, weighted alike (em0) or by noisy values (em1)."""

    def entries(private: Graph) -> np.ndarray:
        return np.asarray(np.minimum(_vectors(ranking, private, sources), ranking.entry_clip))

    chosen: np.ndarray = curator.release("pagerank", entries)
    if not curator.plan.promise.private:  # the scores themselves
        chosen = np.argsort(-chosen, axis=1, kind="stable")[:, :picks]
    if ranking.select == "em0":
        return MixedRows(chosen, np.full(chosen.shape, 1 / picks))
    at_picks = lambda private: np.take_along_axis(entries(private), chosen, axis=1)
    return MixedRows(chosen, unit_sum(np.maximum(curator.release("weights", at_picks), 0.0)))


def clipped_rows(ranking: Ranking, private: Graph, sources: np.ndarray) -> np.ndarray:
    """PageRank rows of l2 norm at most C1."""
    vectors = _vectors(ranking, private, sources)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    clipped: np.ndarray = vectors * np.minimum(1.0, ranking.row_clip * (1 - 1e-12) / np.maximum(norms, 1e-300))
    return clipped


def _vectors(ranking: Ranking, private: Graph, sources: np.ndarray) -> np.ndarray:
    from graphveil.graph import Lists
    from graphveil.graph.kernels.pagerank import ista_rows, push_rows

    arcs, inside = private.lists.edge_index(), ranking.slots(private.masks)
    lists = Lists.from_edge_index(arcs[:, inside[arcs[0]] & inside[arcs[1]]], private.nodes)
    if ranking.pagerank == "push":
        pushed: np.ndarray = push_rows(lists, sources, ranking.teleport, ranking.rho)[
            :, np.flatnonzero(inside)
        ].toarray()
        return pushed
    return ista_rows(lists, sources, ranking.teleport, ranking.rho)[:, inside]


def learn_from_everybody(
    curator: Curator,
    centre: np.ndarray,
    rows: MixedRows,
    sources: np.ndarray,
    learning_rate: float,
    progress: Progress | None,
) -> OwnPredictor:
    """softmax(W Pi X): a source reads its private row, every other training slot its own features."""
    from graphveil.learn import MLP, MixtureRows

    facts = curator.facts
    rest = np.setdiff1d(np.flatnonzero(curator.masks["train"]), sources)
    mixed = rows.with_own_rows(rest).matrix(facts.nodes)

    def inputs(private: Graph, chosen: np.ndarray) -> MixtureRows:
        return MixtureRows(centred(private, centre), mixed)

    network = MLP((facts.features + 1, facts.classes), bias=False)
    examples = np.concatenate([sources, rest])
    descend_on_groups(curator, "gradient", network, inputs, own_optimizer(facts, learning_rate), examples, progress)
    return OwnPredictor(centre, network.layers[0].weight.numpy().copy())


def learn_from_table(
    curator: Curator,
    layers: TwoLayers,
    rows: MixedRows,
    sources: np.ndarray,
    optimizer: Optimizer,
    progress: Progress | None,
) -> None:
    """Z = Pi X + N, then gradients on (Z_i, y_i): a row of one entry of weight 1."""
    read = _reader(layers, rows)
    table = curator.release("table", lambda private: np.einsum("ij,ijf->if", rows.weights, read(private)))
    _descend(
        curator, layers, sources, lambda private: table[:, None, :], np.ones((len(sources), 1)), optimizer, progress
    )


def learn_from_rows(
    curator: Curator,
    layers: TwoLayers,
    rows: MixedRows,
    sources: np.ndarray,
    optimizer: Optimizer,
    progress: Progress | None,
) -> None:
    """As published: gradients on the M rows alone."""
    _descend(curator, layers, sources, _reader(layers, rows), rows.weights, optimizer, progress)


def _reader(layers: TwoLayers, rows: MixedRows) -> Callable[[Graph], np.ndarray]:
    """The features of all entries of Pi, as a function of the private graph."""
    used, where = np.unique(rows.columns, return_inverse=True)
    where = where.reshape(rows.columns.shape)
    return lambda private: projected_rows(private, layers.shape, used)[where]


def _descend(
    curator: Curator,
    layers: TwoLayers,
    sources: np.ndarray,
    features: Callable[[Graph], np.ndarray],
    weights: np.ndarray,
    optimizer: Optimizer,
    progress: Progress | None,
) -> None:
    import torch

    sizes = (layers.shape.inputs, layers.shape.hidden, layers.shape.classes)
    prepare = lambda private, rows: (features(private), private.labels[rows])
    steps = curator.gradients("gradient", prepare, rows=sources)
    parameters = torch.from_numpy(layers.parameters)

    def query(prepared: Prepared, batch: np.ndarray | None) -> np.ndarray:
        x, labels = prepared
        taken = slice(None) if batch is None else batch
        return mixed_gradient_sum(parameters.numpy(), sizes, x[taken], weights[taken], labels[taken], steps.clip)

    expected = max(1.0, steps.rate * len(sources))
    for step in range(steps.total):
        optimizer.step(parameters, torch.from_numpy(steps.step(query)) / expected)
        if progress is not None:
            progress("gradient", step + 1, steps.total)
