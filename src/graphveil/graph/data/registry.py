"""The known data sets: what they are, where they come from, what papers did to them.

The figures live in ``resources/registry.toml``; ``tests/graph/test_registry.py`` recomputes them from the files.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

GENERATED = {
    "csbm": "two-class block model whose information moves from features to edges with phi (DPDGC, appendix K)",
    "powerlaw-sbm": "block model with heavy-tailed degrees: hubs and leaves, any size up to millions of nodes",
    "stand-in": "a graph of given sizes like real ones: heavy-tailed degrees, circles, bags of words of a stated strength",
}
"""Data sets that are drawn from a seed and need no file."""


@dataclass(frozen=True)
class Variant:
    """How one paper prepares a data set, and the sizes it prints.

    Attributes:
        steps: preparations (:mod:`graphveil.graph.data.preparation`), in order.
        printed: nodes, edges, features, classes as printed in the paper; ``counts`` says whether its edges are ours
            (``"edges"``, each pair once) or ``"arcs"`` (each direction counts).
        differences: why our figures are not the printed ones, by figure; empty if they are equal.
        split: the paper's train, validation and test shares, if stated.
        inductive: whether the paper cuts the edges between training and test nodes.
    """

    name: str
    steps: tuple[str, ...] = ()
    printed: Mapping[str, int] = field(default_factory=dict)
    counts: str = "edges"
    differences: Mapping[str, str] = field(default_factory=dict)
    split: tuple[float, float, float] | None = None
    inductive: bool = False


@dataclass(frozen=True)
class PygSource:
    """The PyG class that downloads it.

    Attributes:
        features: ``same`` as in the known file, ``clipped`` to 0/1, ``reduced`` to 128 dimensions, or ``reordered``.
        arcs: whether the class yields the arcs of a directed source.
        content: checksum of the arrays it yields, where known.
    """

    dataset: str
    name: str = ""
    features: str = "same"
    arcs: bool = False
    content: str | None = None


@dataclass(frozen=True)
class DatasetCard:
    """One data set. ``edges`` counts pairs once, without self-loops; ``arcs`` is the directed source's count."""

    name: str
    summary: str
    nodes: int
    edges: int
    features: int
    classes: int
    licence: str
    citation: str
    origin: str
    homophily: float | None = None
    class_homophily: float | None = None
    component: tuple[int, int] | None = None
    isolated: int | None = None
    arcs: int | None = None
    splits: int = 0
    sha256: str | None = None
    file: str = ""
    unlabelled: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    pyg: PygSource | None = None
    variants: Mapping[str, Variant] = field(default_factory=dict)

    @property
    def mean_degree(self) -> float:
        return 2 * self.edges / self.nodes


@cache
def cards() -> dict[str, DatasetCard]:
    """All known data sets by name."""
    text = resources.files("graphveil.graph.data").joinpath("resources/registry.toml").read_text(encoding="utf-8")
    return {name: _card(name, entry) for name, entry in sorted(tomllib.loads(text).items())}


def _card(name: str, entry: dict[str, Any]) -> DatasetCard:
    entry = _frozen(entry)
    entry["pyg"] = PygSource(**entry["pyg"]) if "pyg" in entry else None
    entry["variants"] = {key: Variant(name=key, **_frozen(value)) for key, value in entry.pop("prepare", {}).items()}
    entry.setdefault("file", name)
    return DatasetCard(name=name, **entry)


def _frozen(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
