"""The API that GraphPrivatizer's attacks query: the trained network, asked with the noisy features on the perturbed graph.

A published local model in memory keeps its network, the rectified reports and the arcs it learned from. The paper's attacker has
those reports, scales one of them by 1.001 and looks whose prediction moves (LinkTeller), or compares posteriors (LSA2); pairs are
edges and non-edges of the true graph. The released code asks the network without KProp. Predictions are read as probabilities
in single precision, which comes nearest to print: there classes that lie far behind have probability 0 and do not move,
so that the attack finds less than the network gives away (``docs/readings/graph-privatizer.md`` has both). Saved runs hold the
epoch that was kept, and not this network: they are asked through the GNN API, with KProp (``target.py``, ``queried``).
Tests: ``tests/attacks/test_published_api.py``.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import torch
from torch_geometric.data import Data

from graphveil.attacks.changed_arcs import ChangedArcs, runs_on_arcs
from graphveil.attacks.link_teller import LinkTeller, influence
from graphveil.attacks.lsa2 import Lsa2
from graphveil.attacks.metrics import AttackResult, Finding
from graphveil.attacks.pairs import Pairs
from graphveil.attacks.target import Perturbation, TorchTarget
from graphveil.errors import InputError
from graphveil.methods.common.published_network import PublishedNetwork
from graphveil.progress import Progress, silent

PUBLISHED_STEP = Perturbation(0.001, "scale")  # LinkTeller's, as published
HOPS = 2
EXACT = "in double precision"


class OwnPrecision(TorchTarget):
    """Probabilities in the precision of the network."""

    def predict_proba(self, data: Any) -> torch.Tensor:
        self.network.eval()
        with torch.no_grad():
            return torch.softmax(self.network(self._rows(data), data.edge_index), dim=1)

    def changed_network(self, data: Any) -> ChangedArcs | None:
        """The same answers where few rows change, without a query each; None for networks that it cannot be done for."""
        if not runs_on_arcs(self.network):
            return None
        return ChangedArcs(self.network.eval(), self._rows(data), data.edge_index.numpy())

    def _rows(self, data: Any) -> torch.Tensor:
        return data.x.to(next(self.network.parameters()).dtype)  # type: ignore[no-any-return]


def has_published_api(model: Any) -> bool:
    """Whether this model still has the network that the papers' attacks query."""
    predictor = getattr(model, "predictor", None)
    return isinstance(predictor, PublishedNetwork) and predictor.network is not None


def published_api(model: Any) -> tuple[OwnPrecision, Data]:
    """What is queried, and the data as the attacker and the server have them: reports, and the perturbed arcs."""
    if not has_published_api(model):
        raise InputError(
            "the papers' attacks query a network: train a published local method (lpgnn, graph-privatizer, rr-edges) in this "
            "process, saved runs do not hold that of the last epoch"
        )
    predictor = model.predictor
    network = copy.deepcopy(predictor.network)
    for layer in network.modules():
        if getattr(layer, "cached", False):
            layer.cached, layer._cached_edge_index, layer._cached_adj_t = False, None, None
    reports = torch.from_numpy(predictor.reports)
    asked = Data(
        x=reports,
        edge_index=torch.from_numpy(predictor.arcs.copy()),
        num_nodes=len(reports),
        num_classes=predictor.scores.shape[1],
        directed=True,
    )
    return OwnPrecision(network, HOPS), asked


def published_link_teller(model: Any, pairs: Pairs, *, seed: int = 0, progress: Progress = silent) -> AttackResult:
    """LinkTeller as the paper runs it, and beside it what the same queries give in double precision, as logits."""
    target, asked = published_api(model)
    found = LinkTeller(PUBLISHED_STEP, compare="probabilities").run(target, asked, pairs, seed=seed, progress=progress)
    exact = OwnPrecision(target.network.double(), HOPS)
    moved = influence(exact, asked, pairs.first, pairs.second, PUBLISHED_STEP, progress=progress).values
    return replace(found, findings=(*found.findings, Finding.of(EXACT, pairs.joined, moved, seed=seed)))


def published_lsa2(model: Any, pairs: Pairs, distance: str = "correlation", **coins: Any) -> AttackResult:
    """LSA2 as the paper runs it."""
    return Lsa2(distance).run(*published_api(model), pairs, **coins)
