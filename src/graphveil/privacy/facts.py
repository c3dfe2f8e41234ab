"""What is public about the data, and all a plan may read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from graphveil.errors import InputError
from graphveil.notebook import table

KINDS = ("train", "calibration", "query", "other")
EDGE = "edge"
PUBLIC_COINS = 0x5EED  # stream of public randomness (initial weights, neighbour caps, holders); never used for noise


@dataclass(frozen=True)
class PublicFacts:
    """Sizes declared public: slots, feature width, classes, and how many slots of each disjoint public kind there are.

    ``kinds`` maps train, calibration (validation), query (test) and other to counts; a record pays only for the releases
    that read its kind. ``mean_degree``: how many contacts people have on average, ``max_degree``: the most anybody has, where
    that is declared public.
    """

    nodes: int
    features: int
    classes: int
    directed: bool = False
    kinds: Mapping[str, int] = field(default_factory=dict)
    mean_degree: float | None = None
    max_degree: int | None = None

    def __post_init__(self) -> None:
        for what, least in (("nodes", 1), ("features", 0), ("classes", 2)):
            value = getattr(self, what)
            if not (isinstance(value, int) and value >= least):
                raise InputError(f"the public number of {what} must be a whole number of at least {least}, got {value}")
        if not self.kinds:
            train, calibration = round(0.75 * self.nodes), round(0.10 * self.nodes)
            rest = self.nodes - train - calibration
            object.__setattr__(self, "kinds", {"train": train, "calibration": calibration, "query": rest, "other": 0})
        if set(self.kinds) - set(KINDS) or min(self.kinds.values()) < 0 or sum(self.kinds.values()) != self.nodes:
            raise InputError(f"kinds of records {dict(self.kinds)} must be among {KINDS} and add up to {self.nodes}")

    @classmethod
    def of(cls, data: Any) -> PublicFacts:
        """The public facts of a PyG ``Data`` object or of a validated ``Graph``."""
        from graphveil.graph import Graph
        from graphveil.graph.validate import validate

        graph = data if isinstance(data, Graph) else validate(data)
        counts = {kind: int(mask.sum()) for kind, mask in graph.masks.items()}
        nodes, features = graph.rows.shape
        counts["other"] = nodes - sum(counts.values())
        return cls(nodes, features, graph.classes, graph.directed, counts)

    def count(self, kind: str) -> int:
        return self.kinds.get(kind, 0)

    def to_json(self) -> dict[str, Any]:
        body = asdict(self) | {"kinds": dict(self.kinds)}
        return {key: value for key, value in body.items() if value is not None}

    def _repr_html_(self) -> str:
        kinds = ", ".join(f"{kind} {count}" for kind, count in self.kinds.items() if count)
        sizes = [("nodes", f"{self.nodes} ({kinds})"), ("features", self.features), ("classes", self.classes)]
        return table("public facts", [*sizes, ("contacts", "directed lists" if self.directed else "mutual")])

    @property
    def labelled(self) -> int:
        """How many slots may show a label: training and calibration."""
        return self.count("train") + self.count("calibration")
