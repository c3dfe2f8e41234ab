"""Every method by name; classes are imported when asked for, so that listing and planning stay quick."""

from __future__ import annotations

import hashlib
import math
import warnings
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

from graphveil.errors import GraphveilError, InputError
from graphveil.local.certificate import LocalCertificate
from graphveil.local.verify import is_local, local_disagreements
from graphveil.methods.base import PrivateMethod
from graphveil.privacy.certificate import Certificate, prove
from graphveil.privacy.verify import disagreements, read_json, read_ledger

METHODS: dict[str, tuple[str, str]] = {
    "ballot": ("graphveil.methods.ballot", "Ballot"),
    "mlp": ("graphveil.methods.mlp", "Mlp"),
    "local": ("graphveil.local.recommended", "LocalRecipe"),
    "lpgnn": ("graphveil.local.lpgnn", "Lpgnn"),
    "graph-privatizer": ("graphveil.local.graph_privatizer", "GraphPrivatizer"),
    "rr-edges": ("graphveil.local.rr_edges", "RrEdges"),
    "lga-pgnn": ("graphveil.local.lga_pgnn", "LgaPgnn"),
    "ldp-gnn": ("graphveil.local.lga_pgnn", "LdpGnn"),
    "lap-gnn": ("graphveil.local.baselines", "LapGnn"),
    "rand-gnn": ("graphveil.local.baselines", "RandGnn"),
    "random-features-gnn": ("graphveil.local.baselines", "RandomFeaturesGnn"),
    "degree-gnn": ("graphveil.local.baselines", "DegreeGnn"),
    "dp-mlp": ("graphveil.methods.dp_mlp", "DpMlp"),
    "gap": ("graphveil.methods.gap", "Gap"),
    "sage": ("graphveil.methods.gnn", "Sage"),
    "gcn": ("graphveil.methods.gnn", "Gcn"),
    "sgc": ("graphveil.methods.gnn", "Sgc"),
    "edge-rand": ("graphveil.methods.edge_rand", "EdgeRand"),
    "dpdgc": ("graphveil.methods.dpdgc", "Dpdgc"),
    "dpar": ("graphveil.methods.dpar", "Dpar"),
    "dp-sage": ("graphveil.methods.dp_sage", "DpSage"),
    "nip-gnn": ("graphveil.methods.nip_gnn", "NipGnn"),
}


def method_class(name: str) -> type[PrivateMethod]:
    """The class of a method, by its registered name."""
    if name not in METHODS:
        close = get_close_matches(name, METHODS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise InputError(f"unknown method {name!r}{hint} (known: {', '.join(METHODS)})")
    module, attribute = METHODS[name]
    cls: type[PrivateMethod] = getattr(import_module(module), attribute)
    return cls


def methods() -> list[dict[str, Any]]:
    """All methods: name, paper, whom to trust, what is protected, modes and the guarantees per mode."""
    return [describe(name) for name in METHODS]


def describe(name: str) -> dict[str, Any]:
    """One method's card, with the guarantees of each of its modes and its default parameters."""
    cls = method_class(name)
    guarantees = {}
    for mode in cls.modes:
        method = cls().set_params(mode=mode) if "mode" in cls.parameter_defaults() else cls()
        triples = sorted((g.level, g.adjacency, g.relation) for g in method.supports)
        guarantees[mode] = [dict(zip(("level", "adjacency", "relation"), map(str, t), strict=True)) for t in triples]
    levels = sorted({g["level"] for mode in guarantees.values() for g in mode})
    return {
        **cls.card.to_json(),
        "modes": list(cls.modes),
        "levels": levels,
        "supports": guarantees,
        "gaps": [{"code": gap.code, "text": gap.text} for gap in cls.gaps],
        "defaults": cls.parameter_defaults(),
    }


def verify_run(run: Path) -> tuple[list[str], float | None]:
    """What disagrees in a saved run, and the epsilon that its ledger gives; reads no data."""
    body, ledger = read_json(run / "certificate.json"), read_ledger(run / "ledger.jsonl")
    if is_local(body):
        return _verify_local(run, body, ledger)
    try:
        certificate = Certificate.from_json(body)
        method = method_class(certificate.method)().set_params(**certificate.parameters)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plan = method.checked_plan(certificate.facts, certificate.promise)
        epsilon = prove(plan, certificate.releases)[0]
    except (GraphveilError, KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        return [f"the certificate cannot be interpreted: {error}"], None
    found = disagreements(body, ledger, plan) + _edited_files(run)
    return found, epsilon if math.isfinite(epsilon) else None


def _verify_local(run: Path, body: dict[str, Any], ledger: list[Any]) -> tuple[list[str], float | None]:
    try:
        cls = method_class(body["method"])
        if body["mode"] not in cls.modes or body["mode"] != body["parameters"].get("mode", "sound"):
            raise InputError(f"the method has no mode {body['mode']!r}, or its parameters name another one")
        certificate = LocalCertificate.from_json(body)
        method: Any = cls().set_params(**certificate.parameters)
        gaps = method.known_gaps(certificate.promise)
    except (GraphveilError, KeyError, TypeError, ValueError, AttributeError) as error:
        return [f"the certificate cannot be interpreted: {error}"], None
    return local_disagreements(body, ledger, gaps) + _edited_files(run), certificate.epsilon


def file_digests(run: Path) -> dict[str, str]:
    """SHA-256 of the files of a run, all of which hold released values only."""
    names = ("certificate.json", "ledger.jsonl", "model.json", "model.safetensors")
    return {name: hashlib.sha256((run / name).read_bytes()).hexdigest() for name in names if (run / name).is_file()}


def _edited_files(run: Path) -> list[str]:
    recorded, found = read_json(run / "manifest.json"), file_digests(run)
    names = sorted({*recorded, *found})
    return [f"{name} is not the file that was saved" for name in names if recorded.get(name) != found.get(name)]
