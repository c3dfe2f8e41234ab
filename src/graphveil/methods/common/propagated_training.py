"""LPGNN's server: feature reports averaged over a graph (KProp), then a backbone whose loss knows the noise of the labels.

    p(y|x') = softmax(GNN(KProp(x')))

``auto`` starts with both losses, ``drop`` and ``forward``, and goes on with the one that has the lesser loss on the *released*
validation labels after ``TRIAL`` of the epochs. All of it is post-processing. Tests: ``tests/methods/test_lpgnn.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphveil.exchange.server import Server
from graphveil.methods.common.backbone_training import (
    BackboneTraining,
    Fitted,
    NoisyLabels,
    column_scale,
    dense_columns,
    mixed,
    mixing_of,
    scaled,
    standardised,
)
from graphveil.methods.common.denoise import propagated
from graphveil.methods.common.network_predictor import NetworkPredictor, parts_in_the_clear
from graphveil.methods.common.reporting import PropagationOptions
from graphveil.methods.common.scores import ScoresPredictor
from graphveil.privacy.noise import Array

TRIAL = 0.4  # share of the epochs after which ``auto`` keeps one loss


class PropagatedTraining(PropagationOptions):
    """How reports become scores."""

    def learn(self, server: Server, rows: Any, labels: NoisyLabels, edge_index: np.ndarray) -> ScoresPredictor:
        """LPGNN on this graph."""
        inputs = self.propagated(rows, edge_index, server.facts.nodes, server.coins)
        return self.fit(server, {"graph": (inputs, edge_index)}, labels)

    def network(
        self, server: Server, rows: Any, labels: NoisyLabels, edge_index: np.ndarray, random: bool = False
    ) -> NetworkPredictor:
        """LPGNN on public edges: a network that also scores newcomers; ``random``: rows are public random numbers."""
        mixing = mixing_of(rows.shape[1], self.compress, server.coins)
        columns = propagated(mixed(rows, mixing), edge_index, self.feature_steps)
        mean, deviation = column_scale(columns)
        inputs = scaled(columns, mean, deviation)
        kept, facts = self._best(server, {"graph": (inputs, edge_index)}, labels)
        return NetworkPredictor(
            facts | {"classes": server.facts.classes},
            options=self,
            weights=dict(kept.weights),
            rows=rows,
            edges=edge_index,
            kept={"mean": mean, "deviation": deviation} | ({} if mixing is None else {"mixing": mixing}),
            clear=parts_in_the_clear(server.promise),
            random=random,
        )

    def propagated(self, rows: Any, edge_index: np.ndarray, nodes: int, coins: np.random.Generator) -> Array:
        """KProp of the (compressed) rows, columns of one scale."""
        return standardised(propagated(dense_columns(rows, self.compress, coins), edge_index, self.feature_steps))

    def fit(
        self, server: Server, candidates: Mapping[str, tuple[Array, np.ndarray]], labels: NoisyLabels
    ) -> ScoresPredictor:
        """Train what ``auto`` and the candidates (inputs and edges) allow; keep what released validation labels like best."""
        kept, facts = self._best(server, candidates, labels)
        return ScoresPredictor(kept.scores, facts, public=True)

    def _best(
        self, server: Server, candidates: Mapping[str, tuple[Array, np.ndarray]], labels: NoisyLabels
    ) -> tuple[Fitted, dict[str, Any]]:
        losses = (self.loss,) if self.loss != "auto" else ("drop", "forward") if self.label_steps else ("forward",)
        seed = int(server.coins.integers(2**31))
        runs = {
            (name, loss): BackboneTraining.of(self, loss=loss).start(server, inputs, edge_index, labels, seed)
            for name, (inputs, edge_index) in candidates.items()
            for loss in (losses if edge_index.size else ("forward",))  # Drop needs a graph
        }
        if len(runs) > 1:
            trial = {key: run.until(round(TRIAL * self.epochs)).validation_loss for key, run in runs.items()}
            best = min(trial, key=lambda key: trial[key])
        else:
            (best,) = runs
        kept = runs[best].until(self.epochs)
        facts = {"loss": best[1], "validation_loss": kept.validation_loss, "epoch": kept.epoch}
        return kept, facts | ({"inputs": best[0]} if len(candidates) > 1 else {})
