"""LPGNN's server as its released code trains it, on which GraphPrivatizer's stands: what published modes do with reports.

    x = rectified reports, K_x steps of S = D^-1/2 A D^-1/2 with the receivers' degrees, along the arcs and without self-loops
    p(y|x) = softmax(GNN(x)), p(y'|x) = p(y|x) T, and with K_y > 0 Drop's softmax(S^K_y p(y'|x)) against argmax S^K_y reports

Nothing is standardised. After every epoch the released validation labels are looked at; the epoch is kept if their loss fell and
the accuracies on released training and validation labels rose, neither above what the noise of the labels allows. All of
it is post-processing. Tests: ``tests/methods/test_lpgnn_training.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from graphveil.exchange.server import Server
from graphveil.learn.arcs import Arcs, Fixed
from graphveil.learn.backbones import ON_ARCS, as_lpgnn_builds
from graphveil.learn.propagated import PropagatedRows
from graphveil.learn.remembered import remembered
from graphveil.methods.common.backbone_training import NoisyLabels, descend, weights_of
from graphveil.methods.common.denoise import forward_loss, kprop
from graphveil.methods.common.network_predictor import parts_in_the_clear
from graphveil.methods.common.published_network import PublishedNetwork, along_arcs, rectified, rectifier
from graphveil.methods.common.reporting import PropagationOptions

SLACK = 1.05  # how far above the noise of the labels LPGNN lets the training accuracy rise


@dataclass
class Epoch:
    """What an epoch reached on released labels, and its scores."""

    loss: float
    validation: float
    training: float
    scores: np.ndarray
    number: int
    weights: Mapping[str, np.ndarray] = field(default_factory=dict)

    def beats(self, best: Epoch, most: float) -> bool:
        """LPGNN's rule, with ``most`` the accuracy that the noise of the labels allows."""
        better = self.loss < best.loss and best.validation < self.validation
        return better and self.validation <= most and rises(self.training, best.training, most)


def rises(reached: float, before: float, most: float) -> bool:
    """Whether a training accuracy lets its epoch be kept: known from the step itself, so that other epochs are not looked at."""
    return before < reached <= SLACK * most


class LpgnnTraining(PropagationOptions):
    """How reports become scores."""

    keep: Literal["lpgnn", "loss"] = "lpgnn"

    def learn(self, server: Server, rows: Any, labels: NoisyLabels, arcs: np.ndarray) -> PublishedNetwork:
        """Train on the graph of these arcs."""
        kept = rectifier(server, rows.shape[1], self.compress)
        plain = rows.numpy(force=True) if isinstance(rows, Tensor) else rows
        if server.raw_edges is not None:
            return self._learnt(server, plain, labels, arcs, kept)
        reported = plain, kept, labels.reports, labels.channel, arcs
        public = self.get_params(), server.facts, server.promise, dict(server.masks), server.coins
        return remembered((*reported, *public), lambda: self._learnt(server, plain, labels, arcs, kept))

    def _learnt(
        self, server: Server, rows: Any, labels: NoisyLabels, arcs: np.ndarray, kept: Mapping[str, np.ndarray]
    ) -> PublishedNetwork:
        matrix = along_arcs(arcs, server.facts.nodes)
        x = self._inputs(matrix, rows, kept)
        best, network = self._trained(server, x, matrix, labels, arcs)
        facts = {"loss": self.loss, "validation_loss": best.loss, "epoch": best.number}
        found = PublishedNetwork(
            facts | {"classes": server.facts.classes},
            options=self,
            weights=best.weights,
            rows=rows,
            edges=arcs,
            kept=kept,
            clear=parts_in_the_clear(server.promise),
        )
        found.network = network
        if server.raw_edges is None:
            found.scores = best.scores  # what the network said of every slot in the epoch that was kept
        return found

    def _inputs(self, matrix: sp.csr_matrix, rows: Any, kept: Mapping[str, np.ndarray]) -> Tensor | PropagatedRows:
        """KProp of the rectified reports; as factors where that is quicker."""
        steps, narrow = self.feature_steps, "mixing" not in kept
        if narrow and sp.issparse(rows) and self.backbone in ON_ARCS and PropagatedRows.worth(matrix, rows, steps):
            return PropagatedRows(matrix, rows, steps, *map(float, kept["rectifier"]))
        return torch.from_numpy(kprop(matrix, rectified(rows, kept), steps))

    def _trained(
        self, server: Server, x: Tensor | PropagatedRows, matrix: sp.csr_matrix, labels: NoisyLabels, arcs: np.ndarray
    ) -> tuple[Epoch, nn.Module]:
        seed, classes = int(server.coins.integers(2**31)), server.facts.classes
        network = as_lpgnn_builds(self.backbone, x.shape[1], self.hidden, classes, self.dropout, seed)
        train, validation = map(torch.as_tensor, labels.learning_rows(server.masks))
        noise, heard = torch.as_tensor(labels.channel, dtype=torch.float32), torch.as_tensor(labels.reports)
        pairs = torch.from_numpy(np.ascontiguousarray(arcs))
        edges = Arcs.of(arcs, len(x)) if self.backbone in ON_ARCS else pairs
        objective = self._objective(matrix, labels.reports, noise, train)
        seen: list[Tensor] = []
        ahead: list[Tensor] = []  # the first layer of the next epoch: inputs are whole, so that a look may share it

        def loss() -> Tensor:
            logits: Tensor = network.above(ahead.pop() if ahead else network.first(x, edges), edges)
            seen[:] = [logits.detach()]
            found: Tensor = objective(logits)
            return found

        def accuracy(logits: Tensor, who: Tensor) -> float:
            return float((logits[who].argmax(dim=1) == heard[who]).double().mean())

        best: Epoch | None = None
        most = float(noise[0, 0])
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for number in descend(network, loss, self.epochs, self.learning_rate, self.weight_decay):
                server.tell("epochs", number, self.epochs)
                reached = accuracy(seen[0], train)
                if best is not None and self.keep == "lpgnn" and not rises(reached, best.training, most):
                    continue
                network.eval()
                ahead[:] = [network.first(x, edges)]
                with torch.no_grad():
                    logits = network.above(ahead[0], edges)
                    fallen = float(forward_loss(logits[validation], noise, heard[validation]))
                found = Epoch(fallen, accuracy(logits, validation), reached, logits.detach().double().numpy(), number)
                least = best is None or found.loss < best.loss
                if best is None or (least if self.keep == "loss" else found.beats(best, most)):
                    best = replace(found, weights=weights_of(network))
        assert best is not None  # there is at least one epoch
        return best, network.eval()

    def _objective(self, matrix: sp.csr_matrix, reports: np.ndarray, noise: Tensor, train: Tensor) -> Any:
        heard = torch.as_tensor(reports)[train]
        if self.loss == "plain":
            return lambda logits: nn.functional.cross_entropy(logits[train], heard)
        if self.loss == "forward" or self.label_steps == 0:
            return lambda logits: forward_loss(logits[train], noise, heard)
        one_hot = np.eye(noise.shape[0])[np.maximum(reports, 0)] * (reports >= 0)[:, None]
        target = torch.as_tensor(kprop(matrix, one_hot, self.label_steps).argmax(axis=1))[train]
        step = Fixed(matrix)

        def drop(logits: Tensor) -> Tensor:
            noisy = logits.softmax(dim=1) @ noise
            for _ in range(self.label_steps):
                noisy = step @ noisy
            return nn.functional.cross_entropy(noisy[train], target)

        return drop
