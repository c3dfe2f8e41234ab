"""What an experiment is made of, as its file says it.

    name: small
    methods: [ballot, {name: gap, mode: published, options: {hops: 1}}]
    data: [cora, {name: amazon-photo, prepare: dpdgc, split: paper}]
    promises: [{level: node}, {level: edge, epsilons: [1]}]
    epsilons: [1, 2, 4, 8]          # of the promises that name none
    seeds: 5                        # 0 to 4; or a list, or "100-104"; repeats: 3 draws noise from the system instead
    attacks: [link-teller]

These fields describe one grid: every method with every promise on every data set. Several grids stand under ``grids``; what
they leave out they take from the fields above them. Values are checked here; what needs the registries, in ``expand.py``.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from graphveil.privacy.promise import Adjacency, Level, Relation

Mode = Literal["sound", "published"]
Selecting = Literal["charged", "not covered"]


def _named(value: Any) -> Any:
    """A bare name stands for an entry that has nothing else."""
    return {"name": value} if isinstance(value, str) else value


class Part(BaseModel):
    """Fields that are not known are refused: a misspelled one would be ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class MethodEntry(Part):
    """A method with its mode and options; of several ``candidates`` the best one on validation nodes is selected."""

    name: str
    mode: Mode = "sound"
    options: dict[str, Any] = {}
    label: str | None = None
    candidates: list[dict[str, Any]] = []

    @property
    def shown(self) -> str:
        """The name of this variant in tables."""
        if self.label is not None:
            return self.label
        told: list[str] = [self.mode] if self.mode != "sound" else []
        told += [f"{key}={value}" for key, value in self.options.items()]
        told += [f"best of {len(self.candidates)}"] if self.candidates else []
        return f"{self.name} ({', '.join(told)})" if told else self.name


class DataEntry(Part):
    """A data set or file, prepared and split; ``options`` are those of generated graphs."""

    name: str
    prepare: str | list[str] | None = None
    split: str = "random"
    max_degree: Annotated[int, Field(ge=1)] | None = None
    options: dict[str, Any] = {}

    @property
    def fields(self) -> dict[str, Any]:
        """What a run keeps of it."""
        return {"name": self.name, "prepare": self.prepare, "split": self.split} | {
            "max_degree": self.max_degree,
            "options": self.options,
        }

    @property
    def preparation(self) -> str | None:
        """What was done to the graph, in one word."""
        steps = [self.prepare] if isinstance(self.prepare, str) else list(self.prepare or [])
        steps += [f"cut-lists:{self.max_degree}"] if self.max_degree is not None else []
        steps += [f"{key}={value}" for key, value in sorted(self.options.items())]
        return ",".join(steps) or None


Budget = float | Literal["raw", "withheld"]
Combination = Literal["hadamard-difference", "concat", "plus", "multiply", "average"]
AttackModelName = Literal["mlp", "rf", "knn", "lr", "svm", "random"]
Reading = Literal["piecewise-algorithm", "piecewise-raw", "piecewise-zero"]
CLEAN = "clean"


class PromiseEntry(Part):
    """A promise without its epsilons, or with its own; at level local every part has a budget, or several to try."""

    level: Level = Level.NODE
    epsilons: list[float] | None = None
    delta: Annotated[float, Field(gt=0, lt=1)] | None = None
    k: Annotated[int, Field(ge=0)] | None = None
    adjacency: Adjacency | None = None
    relation: Relation = Relation.ZERO_OUT
    max_degree: Annotated[int, Field(ge=1)] | None = None
    directed: bool = False
    features: Budget | list[Budget] = "withheld"
    labels: Budget | list[Budget] = "withheld"
    edges: Budget | list[Budget] = "withheld"

    @field_validator("epsilons")
    @classmethod
    def _positive(cls, epsilons: list[float] | None) -> list[float] | None:
        return positive(epsilons)


class AttackEntry(Part):
    """An attack on every trained model, or on reports; figures are kept under its label.

    ``count``: edges and as many non-edges; ``most`` are all of them, up to 5000. Of an attack on reports: ``combine`` are the
    combinations of two rows that link stealing tries (the first is the headline), ``models`` the attack models (likewise),
    ``both_orders`` whether (u, v) and (v, u) are cases of their own, ``attribute`` the column that is hidden, ``people`` how
    many take part (default: everybody).
    """

    name: Literal["link-teller", "lsa2", "membership", "lists", "link-stealing", "attribute-inference"]
    pairs: Literal["balanced", "degree-matched", "density"] = "balanced"
    count: Annotated[int, Field(ge=1)] | Literal["most"] = 500
    label: str | None = None
    combine: list[Combination] = ["hadamard-difference"]
    models: list[AttackModelName] = ["mlp"]
    both_orders: bool = False
    attribute: str | None = None
    people: Annotated[int, Field(ge=10)] | None = None

    @property
    def on_reports(self) -> bool:
        return self.name in ("link-stealing", "attribute-inference")

    @property
    def shown(self) -> str:
        return self.label or self.name


class ReportEntry(Part):
    """What an attacker holds of everybody's features: clean rows, or reports of a randomizer with its options.

    ``piecewise-algorithm``, ``-raw`` and ``-zero`` are the readings of LGA-PGNN, as published.
    """

    name: Literal["clean", "direction", "multi-bit", "piecewise", "laplace"] | Reading
    options: dict[str, Any] = {}
    label: str | None = None

    @property
    def shown(self) -> str:
        told = ", ".join(f"{key}={value}" for key, value in self.options.items())
        return self.label or (f"{self.name} ({told})" if told else self.name)


class AuditEntry(Part):
    """Audits instead of trainings: so many histories each; methods that are not named are all, in these modes."""

    runs: Annotated[int, Field(ge=1, le=1000)] = 2
    modes: list[Mode] = ["sound", "published"]
    cross_checks: bool = False


class ForecastEntry(Part):
    """A forecast instead of a training: what is stated of the graph, and how many are generated."""

    homophily: Literal["card"] | None = None
    scenarios: Annotated[int, Field(ge=2)] = 12


def positive(epsilons: list[float] | None) -> list[float] | None:
    """Epsilons as given, or a reason not to take them."""
    for epsilon in epsilons or []:
        if not epsilon > 0:
            raise ValueError(f"epsilon must be positive, got {epsilon:g}; .inf (YAML) or inf (TOML) is without noise")
    if epsilons is not None and not epsilons:
        raise ValueError("the list is empty: name at least one epsilon")
    if len(set(epsilons or [])) < len(epsilons or []):
        raise ValueError("an epsilon is named twice")
    return epsilons


def seed_list(value: Any) -> Any:
    """``5`` is 0 to 4, ``"100-104"`` from the first to the last."""
    if isinstance(value, bool):
        raise ValueError("give a number of seeds, a list, or first-last")
    if isinstance(value, int):
        return list(range(value))
    if isinstance(value, str):
        first, dash, last = value.partition("-")
        if not (first.isdigit() and (last.isdigit() or not dash)):
            raise ValueError(f"{value!r}: give a number of seeds, a list, or first-last as in 100-104")
        return list(range(int(first), int(last or first) + 1))
    return value


Seeds = Annotated[list[Annotated[int, Field(ge=0)]], BeforeValidator(seed_list)]
Methods = list[Annotated[MethodEntry, BeforeValidator(_named)]]
DataSets = list[Annotated[DataEntry, BeforeValidator(_named)]]
Attacks = list[Annotated[AttackEntry, BeforeValidator(_named)]]
Reports = list[Annotated[ReportEntry, BeforeValidator(_named)]]


class Grid(Part):
    """Every method with every promise on every data set, once per seed; trainings, unless it asks for something else."""

    methods: Methods | None = None
    data: DataSets | None = None
    promises: list[PromiseEntry] | None = None
    epsilons: list[float] | None = None
    seeds: Seeds | None = None
    repeats: Annotated[int, Field(ge=1)] | None = None
    attacks: Attacks | None = None
    metrics: list[Literal["accuracy", "public-graph"]] | None = None
    selection: Selecting | None = None
    selection_mean: Annotated[float, Field(gt=1, le=1000)] | None = None
    audit: AuditEntry | None = None
    reports: Reports | None = None
    forecast: list[ForecastEntry] | None = None

    @field_validator("epsilons")
    @classmethod
    def _positive(cls, epsilons: list[float] | None) -> list[float] | None:
        return positive(epsilons)

    @field_validator("methods", "data", "promises", "seeds")
    @classmethod
    def _some(cls, found: list[Any] | None) -> list[Any] | None:
        if found is not None and not found:
            raise ValueError("the grid is empty here: name at least one")
        return found

    @field_validator("seeds")
    @classmethod
    def _once(cls, seeds: list[int] | None) -> list[int] | None:
        if len(set(seeds or [])) < len(seeds or []):
            raise ValueError("a seed is named twice: it would be counted as two runs")
        return seeds

    @model_validator(mode="after")
    def _names(self) -> Self:
        labels = [method.shown for method in self.methods or []]
        attacks = [attack.shown for attack in self.attacks or []]
        reports = [report.shown for report in self.reports or []]
        for what, names in (("methods", labels), ("attacks", attacks), ("reports", reports)):
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                raise ValueError(f"{what}: two are called {twice!r}: give each its own label")
        sets = [entry.model_dump_json() for entry in self.data or []]
        if len(set(sets)) < len(sets):
            raise ValueError("data: the same data set with the same preparation and split is named twice")
        if self.seeds is not None and self.repeats is not None:
            raise ValueError("seeds and repeats exclude each other: repeats draw noise from the operating system")
        if sum(part is not None for part in (self.audit, self.reports, self.forecast)) > 1:
            raise ValueError("audit, reports and forecast exclude each other: give each a grid of its own")
        return self


class Experiment(Grid):
    """A named experiment: one grid, or several that share what stands above them."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._/+-]*$")]
    title: str = ""
    grids: list[Grid] = []

    def complete_grids(self) -> list[Grid]:
        """The grids with everything they take from the experiment."""
        shared = {name: getattr(self, name) for name in Grid.model_fields}
        if not self.grids:
            return [Grid.model_construct(**shared)]
        filled = []
        for grid in self.grids:
            own = {name: getattr(grid, name) for name in Grid.model_fields}
            if own["seeds"] is not None or own["repeats"] is not None:  # one kind of coins replaces the other
                shared_coins = {"seeds": None, "repeats": None}
            else:
                shared_coins = {}
            kept = shared | shared_coins
            filled.append(Grid.model_construct(**{n: kept[n] if own[n] is None else own[n] for n in own}))
        return filled


def finite(epsilon: float) -> float | None:
    """None for epsilon = inf: the pipeline without noise promises nothing."""
    return epsilon if math.isfinite(epsilon) else None
