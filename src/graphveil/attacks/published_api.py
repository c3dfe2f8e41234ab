"""The API that GraphPrivatizer's attacks query: the trained network, asked with the noisy features on the perturbed graph.

A published local model in memory keeps its network, the rectified reports and the arcs it learned from. The paper's attacker has
those reports, scales one of them by 1.001 and looks at who moves (LinkTeller), or compares posteriors (LSA2); pairs are edges and
non-edges of the true graph. The released code asks the network without KProp. Tests: ``tests/attacks/test_published_api.py``.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch_geometric.data import Data

from graphveil.attacks.target import Perturbation, TorchTarget
from graphveil.errors import InputError

PUBLISHED_STEP = Perturbation(0.001, "scale")  # LinkTeller's, as published
HOPS = 2


def has_published_api(model: Any) -> bool:
    """Whether this model still has the network that the papers' attacks query."""
    predictor = getattr(model, "predictor", None)
    return all(getattr(predictor, name, None) is not None for name in ("network", "reports", "arcs"))


def published_api(model: Any) -> tuple[TorchTarget, Data]:
    """What is queried, and the data as the attacker and the server have them: reports, and the perturbed arcs."""
    if not has_published_api(model):
        raise InputError(
            "the papers' attacks query a network: train a published local method (lpgnn, graph-privatizer, rr-edges) in this "
            "process, saved runs do not hold that of the last epoch"
        )
    predictor = model.predictor
    network = copy.deepcopy(predictor.network).double()
    for layer in network.modules():
        if getattr(layer, "cached", False):
            layer.cached, layer._cached_edge_index, layer._cached_adj_t = False, None, None
    asked = Data(
        x=torch.from_numpy(predictor.reports).double(),
        edge_index=torch.from_numpy(predictor.arcs.copy()),
        num_nodes=len(predictor.reports),
        num_classes=predictor.scores.shape[1],
        directed=True,
    )
    return TorchTarget(network, HOPS), asked
