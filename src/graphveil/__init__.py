"""graphveil: graph neural networks under differential privacy that can be checked.

    import graphveil as gv

    data = gv.load_dataset("cora", seed=0)
    model = gv.Gap().fit(data, gv.NodeLevel(epsilon=8))
    model.predict(data)
    print(model.certificate)

Names are imported when first used, so that planning and listing need no deep-learning library.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # idle threads must not burn the core that works; read by torch

if TYPE_CHECKING:
    from graphveil.attacks import (
        AttributeInference,
        HiddenAttribute,
        Knowledge,
        LinkStealing,
        LinkTeller,
        Lsa2,
        Membership,
        sample_pairs,
    )
    from graphveil.audit.central.conformance import check_private_method
    from graphveil.errors import DataWarning, GraphveilError, InputError, PrivacyError
    from graphveil.graph import load_dataset
    from graphveil.methods.ballot import Ballot
    from graphveil.methods.dp_mlp import DpMlp
    from graphveil.methods.dp_sage import DpSage
    from graphveil.methods.dpar import Dpar
    from graphveil.methods.dpdgc import Dpdgc
    from graphveil.methods.edge_rand import EdgeRand
    from graphveil.methods.gap import Gap
    from graphveil.methods.gnn import Gcn, Sage, Sgc
    from graphveil.methods.graph_privatizer import GraphPrivatizer
    from graphveil.methods.lga_pgnn import LdpGnn, LgaPgnn
    from graphveil.methods.lga_pgnn.baselines import DegreeGnn, LapGnn, RandGnn, RandomFeaturesGnn
    from graphveil.methods.local import LocalRecipe
    from graphveil.methods.lpgnn import Lpgnn
    from graphveil.methods.mlp import Mlp
    from graphveil.methods.model import Model
    from graphveil.methods.nip_gnn import NipGnn
    from graphveil.methods.registry import methods
    from graphveil.methods.rr_edges import RrEdges
    from graphveil.privacy.certificate import Certificate
    from graphveil.privacy.facts import PublicFacts
    from graphveil.privacy.local import Local
    from graphveil.privacy.promise import EdgeLevel, KNeighborLevel, NodeLevel, NonPrivate, Promise
    from graphveil.runs.load import load_model

_HOME = {
    "AttributeInference": "graphveil.attacks",
    "HiddenAttribute": "graphveil.attacks",
    "Knowledge": "graphveil.attacks",
    "LinkStealing": "graphveil.attacks",
    "LinkTeller": "graphveil.attacks",
    "Lsa2": "graphveil.attacks",
    "Membership": "graphveil.attacks",
    "sample_pairs": "graphveil.attacks",
    "check_private_method": "graphveil.audit.central.conformance",
    "DataWarning": "graphveil.errors",
    "GraphveilError": "graphveil.errors",
    "InputError": "graphveil.errors",
    "PrivacyError": "graphveil.errors",
    "load_dataset": "graphveil.graph",
    "Local": "graphveil.privacy.local",
    "LocalRecipe": "graphveil.methods.local",
    "Lpgnn": "graphveil.methods.lpgnn",
    "GraphPrivatizer": "graphveil.methods.graph_privatizer",
    "RrEdges": "graphveil.methods.rr_edges",
    "LgaPgnn": "graphveil.methods.lga_pgnn",
    "LdpGnn": "graphveil.methods.lga_pgnn",
    "LapGnn": "graphveil.methods.lga_pgnn.baselines",
    "RandGnn": "graphveil.methods.lga_pgnn.baselines",
    "RandomFeaturesGnn": "graphveil.methods.lga_pgnn.baselines",
    "DegreeGnn": "graphveil.methods.lga_pgnn.baselines",
    "Ballot": "graphveil.methods.ballot",
    "DpMlp": "graphveil.methods.dp_mlp",
    "Gap": "graphveil.methods.gap",
    "Mlp": "graphveil.methods.mlp",
    "Sage": "graphveil.methods.gnn",
    "Gcn": "graphveil.methods.gnn",
    "Sgc": "graphveil.methods.gnn",
    "EdgeRand": "graphveil.methods.edge_rand",
    "Dpdgc": "graphveil.methods.dpdgc",
    "Dpar": "graphveil.methods.dpar",
    "DpSage": "graphveil.methods.dp_sage",
    "NipGnn": "graphveil.methods.nip_gnn",
    "Model": "graphveil.methods.model",
    "load_model": "graphveil.runs.load",
    "methods": "graphveil.methods.registry",
    "Certificate": "graphveil.privacy.certificate",
    "PublicFacts": "graphveil.privacy.facts",
    "EdgeLevel": "graphveil.privacy.promise",
    "KNeighborLevel": "graphveil.privacy.promise",
    "NodeLevel": "graphveil.privacy.promise",
    "NonPrivate": "graphveil.privacy.promise",
    "Promise": "graphveil.privacy.promise",
}

__all__ = [
    "AttributeInference",
    "Ballot",
    "Certificate",
    "DataWarning",
    "DegreeGnn",
    "DpMlp",
    "DpSage",
    "Dpar",
    "Dpdgc",
    "EdgeLevel",
    "EdgeRand",
    "Gap",
    "Gcn",
    "GraphPrivatizer",
    "GraphveilError",
    "HiddenAttribute",
    "InputError",
    "KNeighborLevel",
    "Knowledge",
    "LapGnn",
    "LdpGnn",
    "LgaPgnn",
    "LinkStealing",
    "LinkTeller",
    "Local",
    "LocalRecipe",
    "Lpgnn",
    "Lsa2",
    "Membership",
    "Mlp",
    "Model",
    "NipGnn",
    "NodeLevel",
    "NonPrivate",
    "PrivacyError",
    "Promise",
    "PublicFacts",
    "RandGnn",
    "RandomFeaturesGnn",
    "RrEdges",
    "Sage",
    "Sgc",
    "check_private_method",
    "load_dataset",
    "load_model",
    "methods",
    "sample_pairs",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'graphveil' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
