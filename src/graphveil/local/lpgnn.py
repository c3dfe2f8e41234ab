"""LPGNN (Sajadmanesh and Gatica-Perez 2021): multi-bit features, randomised labels, public edges; KProp and Drop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from graphveil.errors import InputError
from graphveil.local.method import LocalMethod, ScoresPredictor, Session
from graphveil.local.promise import Local, Openness, Part
from graphveil.local.randomizers import LabelResponse, MultiBit
from graphveil.local.recommended import almost_clean_channel
from graphveil.local.report import Round
from graphveil.methods.card import Card
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.noise import Array

if TYPE_CHECKING:
    from torch import Tensor

    Loss = Callable[[Tensor], Tensor]

LOSSES = ("drop", "forward", "auto")
LOOK_EVERY = 5  # epochs between two looks at the released validation labels


class Lpgnn(LocalMethod):
    """Noisy features are averaged over the public graph (KProp), the loss knows the noise of the labels (Drop).

    p(y|x') = softmax(GNN(KProp(x'))), p(y'|x') = p(y|x') T, and with K_y > 0 both p(y'|x') and the one-hot reports are
    propagated K_y steps more: cross-entropy between softmax(KProp(p')) and argmax KProp(reports). The epoch is kept whose
    forward-corrected loss on the *released* validation labels is least; nothing here sees a clean label.

    Args:
        backbone: gcn, sage, gat, gatv2, transformer, graphconv, cheb, sgc or tag.
        feature_steps, label_steps: K_x and K_y.
        loss: ``drop`` (the paper), ``forward`` (no label propagation; better on dense graphs) or ``auto``: train both and
            keep the one with the lesser loss on the released validation labels.
        lower, upper: the public range of every attribute.
        compress: wider reports are multiplied by a public random matrix of so many columns (post-processing: speed).
        hidden, epochs, learning_rate, weight_decay, dropout: of training.
    """

    card = Card(
        name="lpgnn",
        summary="multi-bit features and randomised labels, denoised by propagation over public edges",
        paper="Sajadmanesh and Gatica-Perez, CCS 2021",
        trust="nobody for features and labels; edges are sent in the clear",
        protects="features and label of one vertex",
        public="edges (raw), the range of the attributes, who is labelled",
        formula="GNN(KProp(multi-bit(x))), loss on p(y|x') T",
        when="to compare with the paper; 'local' is more accurate at half the budget",
    )
    modes = ("sound",)

    def __init__(
        self,
        backbone: str = "sage",
        feature_steps: int = 16,
        label_steps: int = 2,
        loss: str = "auto",
        lower: float = 0.0,
        upper: float = 1.0,
        compress: int = 512,
        hidden: int = 64,
        epochs: int = 100,
        learning_rate: float = 1e-2,
        weight_decay: float = 1e-3,
        dropout: float = 0.5,
    ) -> None:
        self.backbone = backbone
        self.feature_steps = feature_steps
        self.label_steps = label_steps
        self.loss = loss
        self.lower = lower
        self.upper = upper
        self.compress = compress
        self.hidden = hidden
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.dropout = dropout

    def check_parameters(self) -> None:
        from graphveil.learn.backbones import NAMES

        super().check_parameters()
        if self.backbone not in NAMES:
            raise InputError(f"lpgnn: unknown backbone {self.backbone!r}; known are: {', '.join(NAMES)}")
        if self.loss not in LOSSES:
            raise InputError(f"lpgnn: loss is drop, forward or auto, got {self.loss!r}")
        if not self.lower < self.upper:
            raise InputError(f"lpgnn: the public range {self.lower:g}..{self.upper:g} is empty")

    def rounds(self, facts: PublicFacts, promise: Local, mean_degree: float = 0.0) -> tuple[Round, ...]:
        if promise.edges is not Openness.RAW:
            raise InputError(
                "lpgnn sends edges in the clear: say --edges-epsilon raw, or use 'local' with private edges"
            )
        if promise.features is Openness.WITHHELD or promise.labels is Openness.WITHHELD:
            raise InputError("lpgnn needs features and labels: give each an epsilon (or raw)")
        found = []
        if not isinstance(promise.features, Openness):
            randomizer = MultiBit(promise.features, facts.features, self.lower, self.upper)
            found.append(Round("features", Part.FEATURES, randomizer))
        if not isinstance(promise.labels, Openness):
            found.append(Round("labels", Part.LABELS, LabelResponse(promise.labels, facts.classes)))
        return tuple(found)

    def public_statements(self, promise: Local) -> tuple[str, ...]:
        span = (
            f"every attribute lies in {self.lower:g}..{self.upper:g}; values outside are clipped before they are sent"
        )
        return (*super().public_statements(promise), span)

    def train(self, session: Session) -> ScoresPredictor:
        from graphveil.local.denoise import kprop, normalised

        rows = session.raw_rows.values if session.raw_rows is not None else session.ask("features")
        if session.raw_labels is not None:
            reports, channel = session.raw_labels, almost_clean_channel(session.facts.classes)
        else:
            reports = session.ask("labels")
            channel = session.collector.rounds["labels"].randomizer.channel
        matrix = normalised(session.raw_edges, session.facts.nodes, self_loops=False)
        inputs = kprop(matrix.astype(np.float32), self._columns(rows, session.coins), self.feature_steps)
        inputs = (inputs - inputs.mean(axis=0)) / (inputs.std(axis=0) + 1e-9)
        seed = int(session.coins.integers(2**31))
        losses = ("drop", "forward") if self.loss == "auto" else (self.loss,)
        runs = {kind: self._descend(session, matrix, inputs, reports, channel, kind, seed) for kind in losses}
        best = min(runs, key=lambda kind: runs[kind][1])
        scores, loss, epoch = runs[best]
        return ScoresPredictor(scores, {"loss": best, "validation_loss": loss, "epoch": epoch})

    def _columns(self, rows: object, coins: np.random.Generator) -> Array:
        """Dense columns of the reports, compressed by a public random matrix if there are many.

        Rectifying is an affine map with public constants; the standardisation after KProp makes its scale irrelevant and
        its offset becomes a function of the degree, which the public graph has anyway.
        """
        from torch import Tensor

        matrix = rows.numpy(force=True) if isinstance(rows, Tensor) else rows
        if matrix.shape[1] > self.compress:
            mixing = coins.standard_normal((matrix.shape[1], self.compress)).astype(np.float32)
            return np.asarray(matrix.astype(np.float32) @ mixing)
        return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix, dtype=np.float32)

    def _descend(
        self,
        session: Session,
        matrix: sp.csr_matrix,
        inputs: Array,
        reports: np.ndarray,
        channel: Array,
        kind: str,
        seed: int,
    ) -> tuple[np.ndarray, float, int]:
        """Train; the scores of the epoch with the least loss on the released validation labels."""
        import torch

        from graphveil.learn.backbones import build_backbone
        from graphveil.local.denoise import forward_loss

        network = build_backbone(self.backbone, inputs.shape[1], self.hidden, session.facts.classes, self.dropout, seed)
        x, edges = torch.as_tensor(inputs, dtype=torch.float32), torch.as_tensor(session.raw_edges)
        noise, heard = torch.as_tensor(channel, dtype=torch.float32), torch.as_tensor(reports)
        train, validation = (
            torch.as_tensor(np.flatnonzero(session.masks[kind] & (reports >= 0))) for kind in ("train", "calibration")
        )
        if not (len(train) and len(validation)):
            raise InputError("lpgnn needs labelled train and validation vertices: check the split")
        target = self._loss(kind, matrix, reports, noise, train)
        optimizer = torch.optim.Adam(network.parameters(), self.learning_rate, weight_decay=self.weight_decay)
        best: tuple[float, np.ndarray, int] = (np.inf, np.zeros(0), 0)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for epoch in range(self.epochs):
                network.train()
                optimizer.zero_grad()
                target(network(x, edges)).backward()
                optimizer.step()
                session.tell("epochs", epoch + 1, self.epochs)
                if (epoch + 1) % LOOK_EVERY and epoch + 1 < self.epochs:
                    continue
                network.eval()
                with torch.no_grad():
                    logits = network(x, edges)
                    loss = float(forward_loss(logits[validation], noise, heard[validation]))
                if loss < best[0]:
                    best = (loss, logits.double().numpy(), epoch + 1)
        return best[1], best[0], best[2]

    def _loss(self, kind: str, matrix: sp.csr_matrix, reports: np.ndarray, noise: Tensor, train: Tensor) -> Loss:
        """Drop, or plain forward correction."""
        import torch

        from graphveil.local.denoise import forward_loss, kprop

        if kind == "forward":
            heard = torch.as_tensor(reports)[train]
            return lambda logits: forward_loss(logits[train], noise, heard)
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
