"""Training a graph network on reports: all of it is post-processing, nothing here sees a clean label.

``drop``: p(y|x') = softmax(GNN(x')), p(y'|x') = p(y|x') T, and both p(y'|x') and the one-hot reports are propagated K_y steps;
cross-entropy between softmax(KProp(p')) and argmax KProp(reports) (LPGNN). ``forward``: -log p(y'|x') without propagation.
``plain``: cross-entropy against the reports as if they were clean. The epoch is kept whose forward-corrected loss on the
*released* validation labels is least. Tests: ``tests/methods/test_backbone_training.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from graphveil.errors import InputError
from graphveil.exchange.server import Server
from graphveil.learn.backbones import for_one_graph
from graphveil.learn.fields import Field, field_of
from graphveil.learn.graph_training import edges_for, gcn_matrix
from graphveil.learn.operators import Gcn
from graphveil.methods.common.denoise import forward_loss, kprop, normalised
from graphveil.methods.common.reporting import TrainingOptions
from graphveil.methods.options import Natural
from graphveil.privacy.noise import Array

Build = Callable[[str, int, int, int, float, int], nn.Module]  # from name, width, hidden, classes, dropout and seed

LOOK_EVERY = 5  # epochs between two looks at the released validation labels
ALMOST_CLEAN = 1e-6  # raw labels are treated as reports that are wrong this often


@dataclass(frozen=True)
class NoisyLabels:
    """What was reported (-1: nothing) and the channel T[c, r] = P(report r | class c)."""

    reports: np.ndarray
    channel: Array

    @classmethod
    def heard(cls, server: Server) -> NoisyLabels:
        """The labels as the promise gives them: raw, or asked for in the round ``labels``."""
        if server.raw_labels is not None:
            return cls(server.raw_labels, almost_clean_channel(server.facts.classes))
        reports = server.ask("labels")
        response: Any = server.rounds["labels"].randomizer
        return cls(reports, response.channel)

    def learning_rows(self, masks: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Who has reported for training and who for validation; some of each, or an error."""
        train, validation = (np.flatnonzero(masks[kind] & (self.reports >= 0)) for kind in ("train", "calibration"))
        if not (len(train) and len(validation)):
            raise InputError("training on reports needs labelled train and validation vertices: check the split")
        return train, validation


def heard_rows(server: Server) -> Any:
    """Feature reports, or the features themselves if they are raw."""
    return server.raw_rows if server.raw_rows is not None else server.ask("features")


def descend(
    network: nn.Module,
    loss: Callable[[], Tensor],
    epochs: int,
    learning_rate: float,
    weight_decay: float = 0.0,
    *,
    fused: bool = False,
) -> Iterator[int]:
    """One epoch after the other, and how many there were; whoever iterates may pause between two.

    ``fused``: Adam in one pass over the weights, for networks that have millions.
    """
    optimizer = torch.optim.Adam(network.parameters(), learning_rate, weight_decay=weight_decay, fused=fused)
    for epoch in range(1, epochs + 1):
        network.train()
        optimizer.zero_grad()
        torch.autograd.backward(loss())
        optimizer.step()
        yield epoch


@dataclass(frozen=True)
class Fitted:
    """Scores of every slot, the epoch and validation loss they come from, and the weights of the network then."""

    scores: np.ndarray
    validation_loss: float
    epoch: int
    weights: Mapping[str, np.ndarray] = field(default_factory=dict)


@dataclass
class Descent:
    """A training run that can be interrupted and taken up again; its dropout does not depend on the interruption."""

    steps: Iterator[int]
    look: Callable[[], float]  # the loss on released validation labels
    scored: Callable[[Mapping[str, np.ndarray]], np.ndarray]  # scores of every slot by a network with these weights
    epochs: int
    coins: Tensor  # state of the (public) coins of dropout
    tell: Callable[[str, int, int], None]
    best: Fitted  # to beat
    network: nn.Module
    epoch: int = 0

    def until(self, epoch: int) -> Fitted:
        """Train up to this epoch; the best so far."""
        before = self.best
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(self.coins)
            while self.epoch < min(epoch, self.epochs):
                self.epoch = next(self.steps)
                self.tell("epochs", self.epoch, self.epochs)
                if self.epoch % LOOK_EVERY == 0 or self.epoch == self.epochs:
                    loss = self.look()
                    if loss < self.best.validation_loss:
                        self.best = Fitted(before.scores, loss, self.epoch, weights_of(self.network))
            self.coins = torch.random.get_rng_state()
        if self.best is not before:
            self.best = replace(self.best, scores=self.scored(self.best.weights))
        return self.best


class BackboneTraining(TrainingOptions):
    """A backbone by name and how it is trained; ``label_steps`` is K_y of ``drop``."""

    loss: Literal["drop", "forward", "plain"] = "forward"
    label_steps: Natural = 0

    def start(
        self,
        server: Server,
        inputs: Array,
        edge_index: np.ndarray,
        labels: NoisyLabels,
        seed: int,
        build: Build = for_one_graph,
    ) -> Descent:
        """Training on ``inputs`` over ``edge_index`` before its first epoch; released validation labels will choose an epoch."""
        classes = server.facts.classes
        train, validation = labels.learning_rows(server.masks)
        network = build(self.backbone, inputs.shape[1], self.hidden, classes, self.dropout, seed)
        noise = torch.as_tensor(labels.channel, dtype=torch.float32)
        objective = self._objective(edge_index, labels.reports, noise, train)
        heard = torch.as_tensor(labels.reports[validation])
        x = torch.as_tensor(inputs, dtype=torch.float32)
        learned, looked = self._fields(network, edge_index, len(inputs), train, validation)
        mine, theirs = learned.of(x), looked.of(x)

        def look() -> float:
            network.eval()
            with torch.no_grad():
                return float(forward_loss(network(theirs, looked.edges)[looked.asked], noise, heard))

        def scored(weights: Mapping[str, np.ndarray]) -> np.ndarray:
            network.eval()
            held = {name: torch.from_numpy(value) for name, value in weights.items()}
            with torch.no_grad():
                everybody = x, edges_for(self.backbone, edge_index, len(inputs))
                logits: Tensor = torch.func.functional_call(network, held, everybody)
            return np.asarray(logits.double().numpy())

        def loss() -> Tensor:
            logits: Tensor = network(mine, learned.edges)
            return objective(logits if self._everybody else logits[learned.asked])

        return Descent(
            descend(network, loss, self.epochs, self.learning_rate, self.weight_decay),
            look,
            scored,
            self.epochs,
            torch.Generator().manual_seed(seed).get_state(),
            server.tell,
            Fitted(np.zeros((len(inputs), classes)), np.inf, 0),
            network,
        )

    @property
    def _everybody(self) -> bool:
        """Whether the loss asks for the logits of all: labels that are propagated do."""
        return self.loss == "drop" and self.label_steps > 0

    def _fields(
        self, network: nn.Module, edge_index: np.ndarray, nodes: int, train: np.ndarray, validation: np.ndarray
    ) -> tuple[Field, Field]:
        """Whom the network must see to learn from ``train``, and whom to look at ``validation``: others than GCN see all."""
        if self.backbone != "gcn":
            edges = edges_for(self.backbone, edge_index, nodes)
            return Field(None, edges, torch.as_tensor(train)), Field(None, edges, torch.as_tensor(validation))
        matrix, layers = gcn_matrix(edge_index, nodes), sum(isinstance(one, Gcn) for one in network.modules())
        some = np.arange(nodes) if self._everybody else train
        return field_of(matrix, some, layers), field_of(matrix, validation, layers)

    def _objective(
        self, edge_index: np.ndarray, reports: np.ndarray, noise: Tensor, train: np.ndarray
    ) -> Callable[[Tensor], Tensor]:
        """Of the logits of ``train``; where labels are propagated, of everybody's."""
        heard = torch.as_tensor(reports[train])
        if self.loss == "plain":
            return lambda logits: nn.functional.cross_entropy(logits, heard)
        if not self._everybody:
            return lambda logits: forward_loss(logits, noise, heard)
        matrix = normalised(edge_index, len(reports), self_loops=False)
        one_hot = np.eye(noise.shape[0])[np.maximum(reports, 0)] * (reports >= 0)[:, None]
        target = torch.as_tensor(kprop(matrix, one_hot, self.label_steps).argmax(axis=1))[train]
        coo = matrix.tocoo()
        places = torch.as_tensor(np.stack([coo.row, coo.col]))
        step = torch.sparse_coo_tensor(
            places, torch.as_tensor(coo.data), matrix.shape, dtype=torch.float32, check_invariants=True
        ).coalesce()

        def drop(logits: Tensor) -> Tensor:
            noisy = logits.softmax(dim=1) @ noise
            for _ in range(self.label_steps):
                noisy = torch.sparse.mm(step, noisy)
            return nn.functional.cross_entropy(noisy[train], target)

        return drop


def weights_of(network: nn.Module) -> dict[str, np.ndarray]:
    """A copy of what a network has learned, by name."""
    return {name: value.detach().numpy().copy() for name, value in network.state_dict().items()}


def almost_clean_channel(classes: int) -> Array:
    """The channel of raw labels: wrong almost never, so that logarithms stay finite."""
    channel = np.full((classes, classes), ALMOST_CLEAN / (classes - 1))
    np.fill_diagonal(channel, 1 - ALMOST_CLEAN)
    return channel


def dense_columns(rows: Any, most: int, coins: np.random.Generator) -> Array:
    """Dense columns of feature reports, multiplied by a public random matrix if there are more than ``most``."""
    return mixed(rows, mixing_of(rows.shape[1], most, coins))


def mixing_of(width: int, most: int, coins: np.random.Generator) -> Array | None:
    """A public random matrix for rows of more than ``most`` columns; None if there are no more."""
    return coins.standard_normal((width, most)).astype(np.float32) if width > most else None


def mixed(rows: Any, mixing: Array | None) -> Array:
    """Dense columns of feature reports, multiplied by this matrix if there is one."""
    matrix: Any = rows.numpy(force=True) if isinstance(rows, Tensor) else rows
    if mixing is not None:
        return np.asarray(matrix.astype(np.float32) @ mixing)
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix, dtype=np.float32)


def standardised(inputs: Array) -> Array:
    """Columns with mean 0 and standard deviation 1 over all slots."""
    return scaled(inputs, *column_scale(inputs))


def column_scale(inputs: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of every column."""
    return inputs.mean(axis=0), inputs.std(axis=0)


def scaled(inputs: Array, mean: Array, deviation: Array) -> Array:
    """Columns about this mean, over this deviation."""
    return np.asarray((inputs - mean) / (deviation + 1e-9))
