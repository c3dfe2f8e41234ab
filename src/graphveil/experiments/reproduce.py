"""A paper's table beside ours: printed, its published mode, its sound mode, and our own method, line by line.

Each column has its own promise, which may differ from the paper's: the notes below a table say which is which.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from graphveil import __version__
from graphveil.errors import InputError
from graphveil.experiments.expand import expand
from graphveil.experiments.papers import COLUMNS, Cell, Column, ColumnName, Entry, Paper, Setting
from graphveil.experiments.read import experiment_from
from graphveil.experiments.run import Run
from graphveil.experiments.summary import PARTS, Estimate, Group
from graphveil.experiments.tables import EXACT, UNPROVED, Table, promise_title

TOLERANCE = 2.0  # percentage points that count as agreement where the intervals are narrower
QUICK_DATA = 3  # data sets of a quick look, unless some are named
NOT_RUN = "not run"


@dataclass
class Line:
    """A printed cell and the runs that stand beside it."""

    cell: Cell
    why: str = ""
    unpublished: str = "no published mode"
    runs: dict[str, list[Run]] = field(default_factory=dict)
    metrics: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Reproduction:
    """An entry of a paper with everything that has to be run for it."""

    paper: Paper
    entry: Entry
    lines: tuple[Line, ...]

    @property
    def name(self) -> str:
        return f"{self.paper.key}/{self.entry.id}"

    @property
    def runs(self) -> list[Run]:
        """Every run, each once."""
        found = {run.id: run for line in self.lines for runs in line.runs.values() for run in runs}
        return list(found.values())


def reproduction(
    paper: Paper,
    entry: Entry,
    *,
    data: Sequence[str] | None = None,
    seeds: Any = 3,
    quick: bool = False,
    columns: Sequence[ColumnName] = COLUMNS,
    methods: Sequence[str] | None = None,
) -> Reproduction:
    """What an entry asks for; a quick look has one seed, few data sets and leaves out what takes longest.

    ``methods``: only the lines that are printed under these names.
    """
    known = [*entry.data, *entry.missing]
    for name in data or ():
        if name not in known:
            raise InputError(f"{paper.key}/{entry.id} has no data set {name!r}; it has: {', '.join(known)}")
    named = list(dict.fromkeys(cell.method for cell in paper.cells(entry)))
    for name in methods or ():
        if name not in named:
            raise InputError(f"{paper.key}/{entry.id} prints no method {name!r}; it has: {', '.join(named)}")
    chosen = list(data or (entry.data[:QUICK_DATA] if quick else known))
    lines = []
    for cell in paper.cells(entry):
        if cell.dataset not in chosen or cell.metric != entry.metric or cell.method not in (methods or named):
            continue
        setting = entry.setting_of(cell)
        line = Line(cell, _reason(entry, cell), _unpublished(setting, cell))
        for name in columns if setting is not None and not line.why else ():
            column = setting.column(name) if setting is not None else None
            if column is None or cell.dataset in column.without or (quick and not column.quick):
                continue
            line.runs[name] = _runs(paper, entry, cell, name, column, 1 if quick else seeds)
            line.metrics[name] = column.metric
        lines.append(line)
    return Reproduction(paper, entry, tuple(lines))


def _unpublished(setting: Setting | None, cell: Cell) -> str:
    """What to say where the published column is empty."""
    if setting is None or setting.published is None:
        return "no published mode"
    return (
        "published mode refuses this graph" if cell.dataset in setting.published.without else "published mode left out"
    )


def _reason(entry: Entry, cell: Cell) -> str:
    """Why nothing is run for a cell; empty if something is."""
    setting = entry.setting_of(cell)
    if cell.dataset in entry.missing:
        return entry.missing[cell.dataset]
    if setting is None:
        return "this method is not in the library"
    if not _anything(setting) or (setting.data is not None and cell.dataset not in setting.data):
        return setting.why
    return ""


def _anything(setting: Setting) -> bool:
    return any(setting.column(name) is not None for name in COLUMNS)


def _runs(paper: Paper, entry: Entry, cell: Cell, name: ColumnName, column: Column, seeds: Any) -> list[Run]:
    """The runs of one column of one line."""
    given = entry.per_data.get(cell.dataset, {})
    method = {
        "name": column.method,
        "mode": "published" if name == "published" else "sound",
        "options": column.options | {key: given[key] for key in column.takes if key in given},
    }
    epsilon = float(cell.epsilon or "inf")
    promise = promised(column.promise, epsilon)
    if column.takes_delta and cell.dataset in entry.deltas:
        promise["delta"] = entry.deltas[cell.dataset]
    data = {
        "name": entry.same_as.get(cell.dataset, cell.dataset),
        "prepare": entry.prepares.get(cell.dataset, entry.prepare),
        "split": entry.splits.get(cell.dataset, entry.split),
    }
    metrics = ["accuracy", "public-graph"] if column.metric == "public_graph_accuracy" else ["accuracy"]
    body = {"name": f"{paper.key}/{entry.id}", "methods": [method], "data": [data], "promises": [promise]}
    body |= {"attacks": column.attacks} if column.attacks else {}
    return expand(experiment_from(body | {"seeds": seeds, "metrics": metrics}, f"{paper.key}.toml"))


def promised(promise: Mapping[str, Any], epsilon: float) -> dict[str, Any]:
    """The promise at this epsilon, which stands for every ``"epsilon"`` in it."""
    found = {key: epsilon if value == "epsilon" else value for key, value in promise.items()}
    return found if found["level"] in ("none", "local") else found | {"epsilons": [epsilon]}


def compared(found: Reproduction, rows: Iterable[Mapping[str, Any]]) -> Table:
    """The table: printed, published mode, difference, sound mode, our own method, verdict."""
    kept = Kept(rows)
    head = ("data", "setting", "printed", "published mode", "difference", "sound mode", "our own", "verdict")
    body, notes = [], []
    for line in found.lines:
        groups = {name: kept.group(runs) for name, runs in line.runs.items()}
        estimates = {name: _estimate(group, line.metrics[name]) for name, group in groups.items()}
        shown = {name: _shown(groups[name], estimates[name]) for name in groups}
        for name, group in groups.items():
            if group is not None:
                notes.append(_promised(name, group, line.cell))
        own = groups.get("own")
        ours = "" if own is None else f"{own['label']} {shown['own']}"
        cell, published = line.cell, estimates.get("published")
        apart = "" if published is None else f"{100 * published.mean - cell.value:+.1f}"
        cells = (cell.dataset, cell.setting, _printed(cell), shown.get("published", ""), apart)
        body.append((*cells, shown.get("sound", ""), ours, verdict(line, published)))
    entry = found.entry
    told = [
        f"± in print: {found.paper.spread}; brackets here: 95 % bootstrap interval over the seeds",
        *dict.fromkeys(notes),
    ]
    told += [f"{UNPROVED} the promise does not hold: known gaps, or no finite bound", EXACT]
    told += [entry.remark] if entry.remark else []
    title = f"{found.paper.title}, {entry.name}: {entry.title} ({entry.metric}, %)"
    return Table(title, head, tuple(body), tuple(told))


def verdict(line: Line, published: Estimate | None) -> str:
    """Whether the published mode agrees with print: within both spreads, or within two points."""
    told = ["the printed number is doubtful"] if line.cell.suspicious else []
    told += ["one run"] if published is not None and published.count == 1 else []
    doubt = f" ({', '.join(told)})" if told else ""
    if line.why:
        return f"{NOT_RUN}: {line.why}"
    if published is None:
        return (line.unpublished if "published" not in line.runs else NOT_RUN) + doubt
    half = 0.0 if published.low is None or published.high is None else 50 * (published.high - published.low)
    apart = 100 * published.mean - line.cell.value
    if abs(apart) <= max(TOLERANCE, half + (line.cell.spread or 0.0)):
        return "agrees" + doubt
    return ("above print" if apart > 0 else "below print") + doubt


class Kept:
    """Rows by what was run, whichever version of the package ran it: the tables of a release outlive the next one."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._by_id = {row["id"]: row for row in rows}
        self._versions = dict.fromkeys([__version__, *(str(row.get("version")) for row in self._by_id.values())])

    def row(self, run: Run) -> Mapping[str, Any] | None:
        """The row of this run, if there is one."""
        names = (replace(run, version=version).id for version in self._versions)
        return next((self._by_id[name] for name in names if name in self._by_id), None)

    def group(self, runs: Sequence[Run]) -> Group | None:
        """The rows of these runs; None if there is none."""
        found = tuple(row for run in runs if (row := self.row(run)) is not None)
        return Group(found) if found else None

    def values(self, line: Line) -> dict[str, list[float]]:
        """By column, what the runs of a line measured."""
        groups = {name: self.group(runs) for name, runs in line.runs.items()}
        return {name: group.all_values(line.metrics[name]) for name, group in groups.items() if group is not None}


def _estimate(group: Group | None, metric: str) -> Estimate | None:
    return None if group is None else group.estimate(metric)


def _shown(group: Group | None, estimate: Estimate | None) -> str:
    if group is None:
        return ""
    if estimate is None:
        return "failed"
    promised = group["level"] != "none"
    return estimate.percent() + (UNPROVED if promised and not group.proved["holds"] else "")


def _printed(cell: Cell) -> str:
    return (
        f"{cell.value:.1f}"
        + (f" ± {cell.spread:.1f}" if cell.spread is not None else "")
        + ("?" if cell.suspicious else "")
    )


def _promised(name: str, group: Group, cell: Cell) -> str:
    """One note on the promise of a column, for all lines of a level."""
    words = {"published": "published mode", "sound": "sound mode", "own": f"our own ({group['label']})"}[name]
    if group["level"] == "local":
        printed = str(float(cell.epsilon or "inf"))
        asked = {part: group["parts"][part] for part in PARTS}
        parts = {part: "epsilon" if str(value) == printed else value for part, value in asked.items()}
        told = f"level local: {', '.join(f'{key} {value}' for key, value in parts.items())}"
    else:
        told = promise_title(group)
    return f"{cell.level}, {words}: {told}"
