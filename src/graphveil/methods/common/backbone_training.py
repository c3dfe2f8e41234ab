"""Training a graph network on reports: all of it is post-processing, nothing here sees a clean label.

``drop``: p(y|x') = softmax(GNN(x')), p(y'|x') = p(y|x') T, and both p(y'|x') and the one-hot reports are propagated K_y steps;
cross-entropy between softmax(KProp(p')) and argmax KProp(reports) (LPGNN). ``forward``: -log p(y'|x') without propagation.
``plain``: cross-entropy against the reports as if they were clean. The epoch is kept whose forward-corrected loss on the
*released* validation labels is least. Tests: ``tests/methods/test_backbone_training.py``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from graphveil.errors import InputError
from graphveil.privacy.noise import Array

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from torch.optim import Optimizer

    from graphveil.exchange.server import Server as Session

    Loss = Callable[[Tensor], Tensor]

LOSSES = ("drop", "forward", "plain")
LOOK_EVERY = 5  # epochs between two looks at the released validation labels
ALMOST_CLEAN = 1e-6  # raw labels are treated as reports that are wrong this often


@dataclass(frozen=True)
class NoisyLabels:
    """What was reported (-1: nothing) and the channel T[c, r] = P(report r | class c)."""

    reports: np.ndarray
    channel: Array

    @classmethod
    def heard(cls, session: Session) -> NoisyLabels:
        """The labels as the promise gives them: raw, or asked for in the round ``labels``."""
        if session.raw_labels is not None:
            return cls(session.raw_labels, almost_clean_channel(session.facts.classes))
        reports = session.ask("labels")
        return cls(reports, session.collector.rounds["labels"].randomizer.channel)


@dataclass(frozen=True)
class BackboneTraining:
    """A backbone by name and how it is trained.

    Args:
        backbone: gcn, sage, gat, gatv2, transformer, graphconv, cheb, sgc or tag.
        loss: ``drop``, ``forward`` or ``plain``.
        label_steps: K_y of ``drop``.
        hidden, epochs, learning_rate, weight_decay, dropout: of the network and of Adam.
        build: makes the network from name, width, hidden, classes, dropout and seed; default: the backbone as it is.
    """

    backbone: str
    loss: str = "forward"
    label_steps: int = 0
    hidden: int = 64
    epochs: int = 100
    learning_rate: float = 1e-2
    weight_decay: float = 1e-3
    dropout: float = 0.5
    build: Callable[[str, int, int, int, float, int], Module] | None = None

    def __post_init__(self) -> None:
        from graphveil.learn.backbones import NAMES

        if self.backbone not in NAMES:
            raise InputError(f"unknown backbone {self.backbone!r}; known are: {', '.join(NAMES)}")
        if self.loss not in LOSSES:
            raise InputError(f"loss is {', '.join(LOSSES)}, got {self.loss!r}")

    def fit(self, session: Session, inputs: Array, edge_index: np.ndarray, labels: NoisyLabels, seed: int) -> Fitted:
        """Train on ``inputs`` over ``edge_index``; the scores of the epoch that released validation labels like best."""
        return self.start(session, inputs, edge_index, labels, seed).until(self.epochs)

    def start(self, session: Session, inputs: Array, edge_index: np.ndarray, labels: NoisyLabels, seed: int) -> Descent:
        """The same before its first epoch: a descent that can be interrupted."""
        import torch

        from graphveil.learn.backbones import build_backbone

        build = self.build or build_backbone
        network = build(self.backbone, inputs.shape[1], self.hidden, session.facts.classes, self.dropout, seed)
        if self.backbone == "gcn" and self.build is None:
            network.first.cached = network.second.cached = True  # the normalised matrix; a network sees one graph
        noise = torch.as_tensor(labels.channel, dtype=torch.float32)
        train, validation = (
            torch.as_tensor(np.flatnonzero(session.masks[kind] & (labels.reports >= 0)))
            for kind in ("train", "calibration")
        )
        if not (len(train) and len(validation)):
            raise InputError("training on reports needs labelled train and validation vertices: check the split")
        target = self._objective(edge_index, labels.reports, noise, train)
        optimizer = torch.optim.Adam(network.parameters(), self.learning_rate, weight_decay=self.weight_decay)
        heard = torch.as_tensor(labels.reports)[validation]
        x, edges = torch.as_tensor(inputs, dtype=torch.float32), self._graph(edge_index, len(inputs))
        return Descent(session, network, optimizer, x, edges, target, noise, validation, heard, self.epochs, seed)

    def _graph(self, edge_index: np.ndarray, nodes: int) -> Tensor:
        """The edges as the backbone is quickest on: a sparse matrix [receiver, sender], or pairs where edges are scored."""
        import torch
        from torch_geometric.utils import to_torch_csr_tensor

        from graphveil.learn.backbones import ATTENTION

        pairs = torch.as_tensor(np.ascontiguousarray(edge_index))
        if self.backbone in ATTENTION:
            return pairs
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch calls its sparse rows a beta feature
            matrix: Tensor = to_torch_csr_tensor(pairs.flip(0), size=(nodes, nodes))
        return matrix

    def _objective(self, edge_index: np.ndarray, reports: np.ndarray, noise: Tensor, train: Tensor) -> Loss:
        import torch

        from graphveil.methods.common.denoise import forward_loss, kprop, normalised

        heard = torch.as_tensor(reports)[train]
        if self.loss == "plain":
            return lambda logits: torch.nn.functional.cross_entropy(logits[train], heard)
        if self.loss == "forward" or self.label_steps == 0:
            return lambda logits: forward_loss(logits[train], noise, heard)
        matrix = normalised(edge_index, len(reports), self_loops=False)
        one_hot = np.eye(noise.shape[0])[np.maximum(reports, 0)] * (reports >= 0)[:, None]
        target = torch.as_tensor(kprop(matrix, one_hot, self.label_steps).argmax(axis=1))[train]
        coo = matrix.tocoo()
        places = np.stack([coo.row, coo.col])
        step = torch.sparse_coo_tensor(
            places, coo.data, matrix.shape, dtype=torch.float32, check_invariants=True
        ).coalesce()

        def drop(logits: Tensor) -> Tensor:
            noisy = logits.softmax(dim=1) @ noise
            for _ in range(self.label_steps):
                noisy = torch.sparse.mm(step, noisy)
            return torch.nn.functional.cross_entropy(noisy[train], target)

        return drop


class Descent:
    """A training run that can be interrupted and taken up again; its dropout does not depend on the interruption."""

    def __init__(
        self,
        session: Session,
        network: Module,
        optimizer: Optimizer,
        x: Tensor,
        edges: Tensor,
        target: Loss,
        noise: Tensor,
        validation: Tensor,
        heard: Tensor,
        epochs: int,
        seed: int,
    ) -> None:
        import torch

        self.session, self.network, self.optimizer = session, network, optimizer
        self.x, self.edges, self.target = x, edges, target
        self.noise, self.validation, self.heard = noise, validation, heard
        self.epochs, self.epoch = epochs, 0
        self.coins = torch.Generator().manual_seed(seed).get_state()
        self.best = Fitted(np.zeros((len(x), noise.shape[0])), np.inf, 0)

    def until(self, epoch: int) -> Fitted:
        """Train up to this epoch; the best so far."""
        import torch

        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(self.coins)
            while self.epoch < min(epoch, self.epochs):
                self._step()
                self.epoch += 1
                self.session.tell("epochs", self.epoch, self.epochs)
                if self.epoch % LOOK_EVERY == 0 or self.epoch == self.epochs:
                    self._look()
            self.coins = torch.random.get_rng_state()
        return self.best

    def _step(self) -> None:
        self.network.train()
        self.optimizer.zero_grad()
        self.target(self.network(self.x, self.edges)).backward()
        self.optimizer.step()

    def _look(self) -> None:
        import torch

        from graphveil.methods.common.denoise import forward_loss

        self.network.eval()
        with torch.no_grad():
            logits = self.network(self.x, self.edges)
            loss = float(forward_loss(logits[self.validation], self.noise, self.heard))
        if loss < self.best.validation_loss:
            self.best = Fitted(logits.double().numpy(), loss, self.epoch)


@dataclass(frozen=True)
class Fitted:
    """Scores of every slot, and the epoch and validation loss they come from."""

    scores: np.ndarray
    validation_loss: float
    epoch: int


def almost_clean_channel(classes: int) -> Array:
    """The channel of raw labels: wrong almost never, so that logarithms stay finite."""
    channel = np.full((classes, classes), ALMOST_CLEAN / (classes - 1))
    np.fill_diagonal(channel, 1 - ALMOST_CLEAN)
    return channel


def dense_columns(rows: object, most: int, coins: np.random.Generator) -> Array:
    """Dense columns of feature reports, multiplied by a public random matrix if there are more than ``most``."""
    from torch import Tensor

    matrix = rows.numpy(force=True) if isinstance(rows, Tensor) else rows
    if matrix.shape[1] > most:
        mixing = coins.standard_normal((matrix.shape[1], most)).astype(np.float32)
        return np.asarray(matrix.astype(np.float32) @ mixing)
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix, dtype=np.float32)


def standardised(inputs: Array) -> Array:
    """Columns with mean 0 and standard deviation 1 over all slots."""
    return (inputs - inputs.mean(axis=0)) / (inputs.std(axis=0) + 1e-9)
