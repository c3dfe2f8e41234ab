"""The algorithm of DPAR: sources by public coins, their private PageRank rows Pi, and training on softmax(Pi f(X)).

Three ways to train: :func:`learn_from_everybody` (f linear, every training slot an example), :func:`learn_from_table` on a
noisy Pi X (one example per source) and, as published, :func:`learn_from_rows` on rows of Pi.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from graphveil import learn
from graphveil.graph import Graph, Lists
from graphveil.graph.kernels.pagerank import ista_rows, push_rows
from graphveil.methods.common.own_predictor import OwnPredictor, centred, own_optimizer
from graphveil.methods.common.private_training import descend_on_groups
from graphveil.methods.dpar.bounds import Ranking
from graphveil.methods.dpar.dropout import dropped, dropped_units
from graphveil.methods.dpar.gradients import Entries, mixed_gradient_sum
from graphveil.methods.dpar.predictor import TwoLayers
from graphveil.methods.dpar.rows import MixedRows, top_entries
from graphveil.privacy.curator import Curator
from graphveil.progress import Progress

EntriesOf = Callable[[np.ndarray, int], Entries]  # the rows of these numbers, as they are in this step


def release_rows(
    curator: Curator, ranking: Ranking, sources: np.ndarray, slots: np.ndarray, coins: np.random.Generator
) -> MixedRows:
    """The sparse matrix Pi, its columns among ``slots``: released choices, or an ablation that reads nothing."""
    m, picks = len(sources), min(ranking.picks_of(curator.facts), slots.size)
    if ranking.rows == "identity":
        return MixedRows(sources[:, None], np.ones((m, 1)))
    if ranking.rows == "random":
        found = MixedRows(coins.integers(slots.size, size=(m, picks)), np.full((m, picks), 1 / picks))
    elif ranking.select == "gm":
        noisy = curator.release("pagerank", lambda private: clipped_rows(ranking, private, sources, slots))
        top = top_entries(noisy, picks)
        found = MixedRows(top.columns, ranking.weights(top.weights))
    else:
        found = _chosen_entries(curator, ranking, sources, slots, picks)
    return MixedRows(slots[found.columns], found.weights)


def _chosen_entries(
    curator: Curator, ranking: Ranking, sources: np.ndarray, slots: np.ndarray, picks: int
) -> MixedRows:
    """Entries chosen by Gumbel noise, weighted alike (em0) or by noisy values (em1)."""

    def entries(private: Graph) -> np.ndarray:
        return np.asarray(np.minimum(_vectors(ranking, private, sources, slots), ranking.entry_clip))

    chosen: np.ndarray = curator.release("pagerank", entries)
    if not curator.plan.promise.private:  # the scores themselves
        chosen = np.argsort(-chosen, axis=1, kind="stable")[:, :picks]
    if ranking.select == "em0":
        return MixedRows(chosen, np.full(chosen.shape, 1 / picks))
    at_picks = lambda private: np.take_along_axis(entries(private), chosen, axis=1)
    return MixedRows(chosen, ranking.weights(curator.release("weights", at_picks)))


def clipped_rows(ranking: Ranking, private: Graph, sources: np.ndarray, slots: np.ndarray) -> np.ndarray:
    """PageRank rows of l2 norm at most C1."""
    vectors = _vectors(ranking, private, sources, slots)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors * np.minimum(1.0, ranking.row_clip * (1 - 1e-12) / np.maximum(norms, 1e-300)))


def _vectors(ranking: Ranking, private: Graph, sources: np.ndarray, slots: np.ndarray) -> np.ndarray:
    """PageRank on the graph among ``slots``, a column for each."""
    place = np.full(private.nodes, -1)
    place[slots] = np.arange(slots.size)
    arcs = place[private.lists.edge_index()]
    lists = Lists.from_edge_index(arcs[:, (arcs >= 0).all(axis=0)], slots.size)
    if ranking.pagerank == "push":
        return np.asarray(push_rows(lists, place[sources], ranking.teleport, ranking.rho).toarray())
    return ista_rows(lists, place[sources], ranking.teleport, ranking.rho, **ranking.stopping)


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


def learn_from_table(
    curator: Curator,
    layers: TwoLayers,
    rows: MixedRows,
    sources: np.ndarray,
    optimizer: learn.Optimizer,
    progress: Progress,
) -> None:
    """Gradients on (Z_i, y_i) with the released Z = Pi X + N."""
    used = np.unique(rows.columns)
    mixing = rows.matrix(curator.facts.nodes)[:, used]
    table = curator.release("table", lambda private: mixing @ layers.inputs(private, used).values.toarray())
    everything = lambda private: lambda chosen, step: Entries.one_each(table[chosen])
    _descend(curator, layers, sources, everything, optimizer, progress)


def learn_from_rows(
    curator: Curator,
    layers: TwoLayers,
    rows: MixedRows,
    owners: np.ndarray,
    optimizer: learn.Optimizer,
    progress: Progress,
    *,
    batch_size: int,
    coins: np.random.Generator,
) -> None:
    """Gradients on rows of Pi, with the dropout of the layers; without privacy on batches by public coins."""
    matrix, shape = rows.matrix(curator.facts.nodes), layers.shape
    key = int(coins.integers(2**62))

    def prepare(private: Graph) -> EntriesOf:
        inputs = layers.inputs(private)

        def entries(chosen: np.ndarray, step: int) -> Entries:
            part = matrix[chosen]
            slots, row = part.indices, np.repeat(np.arange(chosen.size), np.diff(part.indptr))
            x = dropped(inputs.take(slots), slots, key + step, shape.dropout)
            kept = dropped_units(slots, shape.hidden, key + step, shape.dropout) if shape.dropout else None
            return Entries(row, part.data, x, kept)

        return entries

    draw = None
    if not curator.plan.promise.private and batch_size < len(owners):
        draw = lambda: coins.choice(len(owners), batch_size, replace=False)
    _descend(curator, layers, owners, prepare, optimizer, progress, draw, min(batch_size, len(owners)))


def _descend(
    curator: Curator,
    layers: TwoLayers,
    owners: np.ndarray,
    prepare: Callable[[Graph], EntriesOf],
    optimizer: learn.Optimizer,
    progress: Progress,
    draw: Callable[[], np.ndarray] | None = None,
    divisor: float | None = None,
) -> None:
    """Spend the release ``gradient`` on rows owned by ``owners``; ``draw``: the batch of a step that has no coins of its own."""
    import torch

    steps = curator.gradients(
        "gradient", lambda private, chosen: (prepare(private), private.labels[chosen]), rows=owners
    )
    sizes = (layers.shape.inputs, layers.shape.hidden, layers.shape.classes)
    parameters, everybody = torch.from_numpy(layers.parameters), np.arange(len(owners))

    def query(prepared: tuple[EntriesOf, np.ndarray], batch: np.ndarray | None) -> np.ndarray:
        entries, labels = prepared
        chosen = batch if batch is not None else everybody if draw is None else draw()
        found = entries(chosen, steps.done)
        return mixed_gradient_sum(parameters.numpy(), sizes, found, labels[chosen], steps.clip)

    expected = max(1.0, steps.rate * len(owners)) if divisor is None else divisor
    for step in range(steps.total):
        optimizer.step(parameters, torch.from_numpy(steps.step(query)), expected)
        progress("gradient", step + 1, steps.total)
