"""What papers print, and how it is run here: ``papers/*.toml``, one file per paper, an entry for every table and figure."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from graphveil.errors import InputError
from graphveil.experiments.spec import Part
from graphveil.methods.registry import presets

ColumnName = Literal["published", "sound", "own"]
COLUMNS: tuple[ColumnName, ...] = ("published", "sound", "own")
GARBLED, DOUBTFUL = "garbled", "doubtful"


DELTA = "delta-"  # a printed metric that begins with it is a difference to the base of an average


class Averaged(Part):
    """A printed number that is a mean over settings: every combination of the options ``over``, but not ``base``.

    What is printed as a difference (``delta-accuracy``) is one to ``base``.
    """

    over: dict[str, list[Any]]
    base: dict[str, Any]

    @property
    def settings(self) -> list[dict[str, Any]]:
        every = [dict(zip(self.over, values, strict=True)) for values in product(*self.over.values())]
        return [one for one in every if one != self.base]


class Column(Part):
    """How one column of a reproduced line is run; ``"epsilon"`` in a promise stands for the printed one.

    Where an option is ``"backbone"``, it is the printed one, too. ``takes`` names options that ``per_data`` of the entry gives
    for each data set; ``except`` data sets on which it cannot run; ``quick = false`` leaves it out of a quick look; ``attacks``
    are run on the model; ``mode`` is that of the method where it is not the column's (a baseline of one mode). With ``reports``
    there is no model: ``method`` is what an attacker holds of everybody's features, ``clean`` or the name of a randomizer.
    ``metric``: the measured figure, or one for each printed metric.
    """

    method: str
    options: dict[str, Any] = Field(default_factory=dict)
    promise: dict[str, Any] = Field(default_factory=dict)
    mode: Literal["sound", "published"] | None = None
    reports: bool = False
    averaged: Averaged | None = None
    takes: list[str] = Field(default_factory=list)
    takes_delta: bool = False
    without: list[str] = Field(default_factory=list, alias="except")
    quick: bool = True
    attacks: list[str | dict[str, Any]] = Field(default_factory=list)
    metric: str | dict[str, str] = "test_accuracy"

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.reports == bool(self.promise):
            raise ValueError(f"{self.method}: a model has a promise, and reports have none")
        return self

    def measures(self, printed: str) -> str | None:
        """The figure that stands beside a printed metric; None if there is none."""
        if isinstance(self.metric, str):
            return self.metric
        return self.metric.get(printed)


class Setting(Part):
    """The printed cells of a method at a level (and of a backbone), and what stands beside them; or why nothing does."""

    method: str
    level: str
    backbone: str | None = None
    data: list[str] | None = None
    why: str = ""
    published: Column | None = None
    sound: Column | None = None
    own: Column | None = None

    def column(self, name: ColumnName) -> Column | None:
        found: Column | None = getattr(self, name)
        return found


@dataclass(frozen=True)
class Cell:
    """One printed number, in percent."""

    dataset: str
    method: str
    backbone: str
    level: str
    epsilon: str
    metric: str
    value: float
    spread: float | None
    note: str

    @property
    def suspicious(self) -> bool:
        """Whether the extraction damaged it, or it clashes with another number of the paper."""
        return GARBLED in self.note or DOUBTFUL in self.note

    @property
    def setting(self) -> str:
        """What it is of, in words."""
        told = [self.method, *([self.backbone] if self.backbone and self.backbone != self.method else []), self.level]
        return " ".join([*told, *([f"epsilon {self.epsilon}"] if self.epsilon not in ("", "inf") else [])])


class Varied(Part):
    """Curves that a figure draws and does not print: ``option`` takes each of the values, with every variant and epsilon.

    ``paired``: value i belongs to epsilon i alone. With an ``attack`` there is no model: ``method`` are reports, which it is on.
    Without an ``option`` epsilon alone varies. ``data``: those of the entry it is drawn for, if not for all. ``takes``: options
    that ``per_data`` of the entry gives.
    """

    method: str
    mode: Literal["sound", "published"] = "published"
    data: list[str] | None = None
    option: str | None = None
    values: list[Any] = Field(default_factory=lambda: [None])
    variants: list[dict[str, Any]]
    epsilons: list[float]
    paired: bool = False
    takes: list[str] = Field(default_factory=list)
    promise: dict[str, Any] = Field(default_factory=dict)
    attack: dict[str, Any] = Field(default_factory=dict)
    metric: str = "test_accuracy"

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if bool(self.promise) == bool(self.attack):
            raise ValueError(f"{self.method}: a model has a promise, and reports are attacked")
        if self.paired and len(self.values) != len(self.epsilons):
            raise ValueError(f"{self.method}: paired values and epsilons differ in number")
        return self


class Embeddings(Part):
    """A figure of hidden units by t-SNE: one panel per variant and epsilon, drawn from models that are trained for it."""

    method: str
    variants: list[dict[str, Any]]
    epsilons: list[float]
    promise: dict[str, Any]


class Heat(Part):
    """A figure of two options against each other: differences to ``base``, by data set and metric, all drawn and not printed.

    ``metrics``: what is shown, by its word in print; ``desirable``: up to where (a privacy figure) or from where on a difference
    is welcome, which the colours show.
    """

    method: str
    options: dict[str, Any]
    rows: dict[str, list[Any]]
    columns: dict[str, list[Any]]
    base: dict[str, Any]
    epsilon: float
    promise: dict[str, Any]
    takes: list[str] = Field(default_factory=list)
    attacks: list[str]
    metrics: dict[str, str]
    desirable: dict[str, float]

    @model_validator(mode="after")
    def _two(self) -> Self:
        if len(self.rows) != 1 or len(self.columns) != 1:
            raise ValueError("a heat map has one option per axis")
        return self

    @property
    def axes(self) -> tuple[tuple[str, list[Any]], tuple[str, list[Any]]]:
        """Name and values of the rows, and of the columns."""
        return next(iter(self.rows.items())), next(iter(self.columns.items()))

    @property
    def settings(self) -> list[dict[str, Any]]:
        """Every cell, the base among them."""
        (row, values), (column, others) = self.axes
        return [{row: one, column: other} for one in values for other in others]


class Gap(Part):
    """Averages over backbones of differences between cells of another table, to the cells of the method ``without`` privacy."""

    of: str
    without: str


class Gain(Part):
    """How much better than the method ``over`` on average; ``of``: by printed metric, the table with the figures one by one."""

    of: dict[str, str]
    over: str


class Entry(Part):
    """A table or figure; ``why`` says in one line why it is not run, ``said`` what the text says of points that are drawn."""

    id: str
    name: str
    title: str
    why: str = ""
    data: list[str] = Field(default_factory=list)
    prepare: str | None = None
    prepares: dict[str, str] = Field(default_factory=dict)
    split: str = "random"
    splits: dict[str, str] = Field(default_factory=dict)
    missing: dict[str, str] = Field(default_factory=dict)
    generated: dict[str, dict[str, Any]] = Field(
        default_factory=dict
    )  # data sets that are generated, with their options
    same_as: dict[str, str] = Field(default_factory=dict)  # data sets that are another one under another name: run once
    metric: str | list[str] = "accuracy"
    backbones: dict[str, str] = Field(default_factory=dict)  # printed name: ours, where they differ
    remark: str = ""
    per_data: dict[str, dict[str, Any]] = Field(default_factory=dict)
    deltas: dict[str, float] = Field(default_factory=dict)
    printed: list[tuple[str, str, str, str, str, str, float, float | Literal[""], str]] = Field(default_factory=list)
    settings: list[Setting] = Field(default_factory=list)
    varied: list[Varied] = Field(default_factory=list)
    embeddings: Embeddings | None = None
    gap: Gap | None = None
    gain: Gain | None = None
    heat: Heat | None = None
    said: str = ""

    @model_validator(mode="after")
    def _taken(self) -> Self:
        given = {option for options in self.per_data.values() for option in options}
        for varied in self.varied:
            if strange := [option for option in varied.takes if option not in given]:
                raise ValueError(f"{self.id}: {varied.method} takes {strange[0]!r}, which per_data does not give")
        return self

    @property
    def runs(self) -> bool:
        return not self.why

    @property
    def metrics(self) -> list[str]:
        """The printed metrics that stand in its table."""
        return [self.metric] if isinstance(self.metric, str) else self.metric

    def taken(self, name: str, takes: list[str]) -> dict[str, Any]:
        """Of the options that this data set gives, those that are taken."""
        given = self.per_data.get(name, {})
        return {key: given[key] for key in takes if key in given}

    def graph(self, name: str) -> dict[str, Any]:
        """A data set of print as an experiment names it: prepared and split."""
        found = {
            "name": self.same_as.get(name, name),
            "prepare": self.prepares.get(name, self.prepare),
            "split": self.splits.get(name, self.split),
        }
        return found | ({"options": self.generated[name]} if name in self.generated else {})

    def setting_of(self, cell: Cell) -> Setting | None:
        """How this cell is run, if anybody said so."""
        for setting in self.settings:
            if (setting.method, setting.level) == (cell.method, cell.level) and setting.backbone in (
                None,
                cell.backbone,
            ):
                return setting
        return None


class Paper(Part):
    """A paper with all its tables and figures; ``presets``: the method whose presets belong to ``per_data`` of every entry."""

    key: str
    title: str
    citation: str
    spread: str
    stated: list[str]
    presets: str | None = None
    notes: dict[str, str] = Field(default_factory=dict)
    entries: list[Entry]

    @model_validator(mode="before")
    @classmethod
    def _preset(cls, body: dict[str, Any]) -> dict[str, Any]:
        known = presets(body["presets"]) if "presets" in body else {}
        for entry in body["entries"] if known else []:
            own = entry.get("per_data", {})
            entry["per_data"] = {name: known.get(name, {}) | own.get(name, {}) for name in {**known, **own}}
        return body

    def cells(self, entry: Entry) -> list[Cell]:
        """The printed numbers of an entry."""
        return [
            Cell(*row[:7], spread=None if row[7] == "" else row[7], note=self.notes.get(row[8], ""))
            for row in entry.printed
        ]


@cache
def papers() -> dict[str, Paper]:
    """All papers by key."""
    found = {}
    for path in sorted((files("graphveil.experiments") / "papers").iterdir(), key=lambda path: path.name):
        if path.name.endswith(".toml"):
            paper = Paper.model_validate(tomllib.loads(path.read_text("utf-8")))
            found[paper.key] = paper
    return found


def find(target: str) -> tuple[Paper, list[Entry]]:
    """``dpdgc/table2``: the paper and that entry; ``dpdgc``: the paper and all its entries."""
    key, slash, wanted = target.partition("/")
    known = papers()
    if key not in known:
        close = get_close_matches(key, known, n=1)
        raise InputError(
            f"unknown paper {key!r}; " + (f"did you mean {close[0]}?" if close else f"known are: {', '.join(known)}")
        )
    paper = known[key]
    if not slash:
        return paper, paper.entries
    plain = wanted.lower().replace(" ", "").replace("-", "")
    for entry in paper.entries:
        if plain in (entry.id, entry.name.lower().replace(" ", "")):
            return paper, [entry]
    raise InputError(f"{key} has no {wanted!r}; it has: {', '.join(entry.id for entry in paper.entries)}")
