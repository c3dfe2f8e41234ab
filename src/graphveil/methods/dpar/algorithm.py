"""The algorithm of DPAR: sources by public coins, their private PageRank rows Pi, and training on softmax(Pi f(X)).

Three ways to train: :func:`learn_from_everybody` (f linear, every training slot an example), and :func:`learn_from_rows` on a
noisy Pi X (one example per source) or, as published, on the M mixed rows alone.
"""

from __future__ import annotations

import numpy as np

from graphveil import learn
from graphveil.graph import Graph, Lists
from graphveil.graph.kernels.pagerank import ista_rows, push_rows
from graphveil.methods.common.own_predictor import OwnPredictor, centred, own_optimizer
from graphveil.methods.common.private_training import descend_on_groups
from graphveil.methods.dpar.bounds import Ranking
from graphveil.methods.dpar.predictor import TwoLayers
from graphveil.methods.dpar.rows import MixedRows, mixed_gradient_sum, top_entries, unit_sum
from graphveil.privacy.curator import Curator
from graphveil.progress import Progress


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
    return np.asarray(vectors * np.minimum(1.0, ranking.row_clip * (1 - 1e-12) / np.maximum(norms, 1e-300)))


def _vectors(ranking: Ranking, private: Graph, sources: np.ndarray) -> np.ndarray:
    arcs, inside = private.lists.edge_index(), ranking.slots(private.masks)
    lists = Lists.from_edge_index(arcs[:, inside[arcs[0]] & inside[arcs[1]]], private.nodes)
    if ranking.pagerank == "push":
        pushed = push_rows(lists, sources, ranking.teleport, ranking.rho)
        return np.asarray(pushed[:, np.flatnonzero(inside)].toarray())
    return ista_rows(lists, sources, ranking.teleport, ranking.rho)[:, inside]


def learn_from_everybody(
    curator: Curator,
    centre: np.ndarray,
    rows: MixedRows,
    sources: np.ndarray,
    learning_rate: float,
    progress: Progress,
) -> OwnPredictor:
    """softmax(W Pi X): a source reads its private row, every other training slot its own features."""
    facts = curator.facts
    rest = np.setdiff1d(np.flatnonzero(curator.masks["train"]), sources)
    mixed = rows.with_own_rows(rest).matrix(facts.nodes)

    def inputs(private: Graph, chosen: np.ndarray) -> learn.MixtureRows:
        return learn.MixtureRows(centred(private, centre), mixed)

    network = learn.MLP((facts.features + 1, facts.classes), bias=False)
    examples = np.concatenate([sources, rest])
    descend_on_groups(curator, "gradient", network, inputs, own_optimizer(facts, learning_rate), examples, progress)
    return OwnPredictor(centre, network.layers[0].weight.numpy().copy())


def learn_from_rows(
    curator: Curator,
    layers: TwoLayers,
    rows: MixedRows,
    sources: np.ndarray,
    optimizer: learn.Optimizer,
    progress: Progress,
    *,
    noisy_table: bool = False,
) -> None:
    """Gradients on the M rows alone; ``noisy_table``: on (Z_i, y_i), Z = Pi X + N, which are rows of one entry of weight 1."""
    import torch

    used, where = np.unique(rows.columns, return_inverse=True)
    where, weights = where.reshape(rows.columns.shape), rows.weights

    def features(private: Graph) -> np.ndarray:
        return layers.rows(private, used)[where] if table is None else table[:, None, :]

    table: np.ndarray | None = None
    if noisy_table:
        table = curator.release("table", lambda private: np.einsum("ij,ijf->if", rows.weights, features(private)))
        weights = np.ones((len(sources), 1))
    sizes = (layers.shape.inputs, layers.shape.hidden, layers.shape.classes)
    prepare = lambda private, chosen: (features(private), private.labels[chosen])
    steps = curator.gradients("gradient", prepare, rows=sources)
    parameters = torch.from_numpy(layers.parameters)

    def query(prepared: tuple[np.ndarray, np.ndarray], batch: np.ndarray | None) -> np.ndarray:
        x, labels = prepared
        taken = slice(None) if batch is None else batch
        return mixed_gradient_sum(parameters.numpy(), sizes, x[taken], weights[taken], labels[taken], steps.clip)

    expected = max(1.0, steps.rate * len(sources))
    for step in range(steps.total):
        optimizer.step(parameters, torch.from_numpy(steps.step(query)) / expected)
        progress("gradient", step + 1, steps.total)
