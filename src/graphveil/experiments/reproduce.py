"""A paper's table beside ours: printed, its published mode, its sound mode, and our own method, line by line.

Each column has its own promise, which may differ from the paper's: the notes below a table say which is which.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from graphveil import __version__
from graphveil.errors import InputError
from graphveil.experiments.checked import private
from graphveil.experiments.expand import expand
from graphveil.experiments.papers import COLUMNS, DELTA, Cell, Column, ColumnName, Entry, Paper, Setting
from graphveil.experiments.read import experiment_from
from graphveil.experiments.run import Run
from graphveil.experiments.spec import CLEAN
from graphveil.experiments.summary import PARTS, Estimate, Group
from graphveil.experiments.tables import EXACT, UNPROVED, Table, promise_title

TOLERANCE = 3.0  # percentage points that count as agreement where print's interval is narrower
QUICK_DATA = 3  # data sets of a quick look, unless some are named
NOT_RUN = "not run"


@dataclass
class Line:
    """A printed cell and the runs that stand beside it, by column.

    ``settings``: over how many settings a column averages; ``bases``: the runs that a printed difference is to.
    """

    cell: Cell
    why: str = ""
    unpublished: str = "no published mode"
    runs: dict[str, list[Run]] = field(default_factory=dict)
    metrics: dict[str, str] = field(default_factory=dict)
    settings: dict[str, int] = field(default_factory=dict)
    bases: dict[str, list[Run]] = field(default_factory=dict)


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
        every = (runs for line in self.lines for runs in (*line.runs.values(), *line.bases.values()))
        return list({run.id: run for runs in every for run in runs}.values())


def reproduction(
    paper: Paper,
    entry: Entry,
    *,
    data: Sequence[str] | None = None,
    seeds: Any = 3,
    quick: bool = False,
    columns: Sequence[ColumnName] = COLUMNS,
    methods: Sequence[str] | None = None,
    backbones: Sequence[str] | None = None,
    epsilons: Sequence[str] | None = None,
) -> Reproduction:
    """What an entry asks for; a quick look has one seed, few data sets and leaves out what takes longest.

    ``methods``, ``backbones``, ``epsilons``: only the lines that are printed under these names.
    """
    known = [*entry.data, *entry.missing]
    only_known(paper, entry, "has no data set", data, known)
    asked = {"method": methods, "backbone": backbones, "epsilon": epsilons}
    for part, names in asked.items():
        there = list(dict.fromkeys(getattr(cell, part) for cell in paper.cells(entry)))
        only_known(paper, entry, f"prints no {part}", names, there)
    chosen = list(data or (entry.data[:QUICK_DATA] if quick else known))
    seen: dict[tuple[str, ...], dict[str, list[Run]]] = {}
    lines = []
    for cell in paper.cells(entry):
        if cell.dataset not in chosen or cell.metric not in entry.metrics:
            continue
        if any(names is not None and getattr(cell, part) not in names for part, names in asked.items()):
            continue
        line = Line(cell, _reason(entry, cell), _unpublished(entry.setting_of(cell), cell))
        lines.append(line)
        for name, column in _columns(entry, cell, columns, quick) if not line.why else ():
            metric = column.measures(cell.metric)
            if metric is None:
                continue
            key = (name, cell.dataset, cell.method, cell.backbone, cell.level, cell.epsilon)
            if key not in seen:  # one run has all metrics of print
                seen[key] = _all_runs(paper, entry, cell, name, column, 1 if quick else seeds)
            line.runs[name], line.metrics[name] = seen[key]["runs"], metric
            line.settings[name] = 1 if column.averaged is None else len(column.averaged.settings)
            if cell.metric.startswith(DELTA):
                line.bases[name] = seen[key]["base"]
    return Reproduction(paper, entry, tuple(lines))


def only_known(paper: Paper, entry: Entry, lacks: str, names: Iterable[str] | None, there: Sequence[str]) -> None:
    """Refuse names that an entry does not have."""
    for name in names or ():
        if name not in there:
            raise InputError(f"{paper.key}/{entry.id} {lacks} {name!r}; it has: {', '.join(there) or 'none'}")


def _columns(entry: Entry, cell: Cell, names: Sequence[ColumnName], quick: bool) -> Iterable[tuple[ColumnName, Column]]:
    """The columns in which something is run for a cell."""
    setting = entry.setting_of(cell)
    for name in names:
        column = None if setting is None else setting.column(name)
        if column is not None and cell.dataset not in column.without and (column.quick or not quick):
            yield name, column


def _all_runs(
    paper: Paper, entry: Entry, cell: Cell, name: ColumnName, column: Column, seeds: Any
) -> dict[str, list[Run]]:
    """The runs of one column of one line, and those of the setting that an average is compared with."""
    if column.averaged is None:
        return {"runs": _runs(paper, entry, cell, name, column, [{}], seeds), "base": []}
    tried = {"runs": column.averaged.settings, "base": [column.averaged.base]}
    return {part: _runs(paper, entry, cell, name, column, settings, seeds) for part, settings in tried.items()}


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


def _runs(
    paper: Paper,
    entry: Entry,
    cell: Cell,
    name: ColumnName,
    column: Column,
    settings: Sequence[Mapping[str, Any]],
    seeds: Any,
) -> list[Run]:
    """The runs of one column of one line with each of these further options."""
    body: dict[str, Any] = {"name": f"{paper.key}/{entry.id}", "data": [entry.graph(cell.dataset)], "seeds": seeds}
    body |= {"attacks": column.attacks} if column.attacks else {}
    options = [options_of(entry, column, cell) | dict(setting) for setting in settings]
    epsilon = float(cell.epsilon or "inf")
    if column.reports:
        body["reports"] = [{"name": column.method, "options": one} for one in options]
        body |= {} if column.method == CLEAN else {"epsilons": [epsilon]}
        return expand(experiment_from(body, f"{paper.key}.toml"))
    mode = column.mode or ("published" if name == "published" else "sound")
    body["methods"] = [{"name": column.method, "mode": mode, "options": one} for one in options]
    promise = promised(column.promise, epsilon)
    if column.takes_delta and cell.dataset in entry.deltas:
        promise["delta"] = entry.deltas[cell.dataset]
    body["promises"] = [promise]
    body["metrics"] = ["accuracy", *(["public-graph"] if column.metric == "public_graph_accuracy" else [])]
    return expand(experiment_from(body, f"{paper.key}.toml"))


def options_of(entry: Entry, column: Column, cell: Cell) -> dict[str, Any]:
    """The options of a column on the data set of a cell; ``"backbone"`` stands for the printed one."""
    network = entry.backbones.get(cell.backbone, cell.backbone)
    own = {key: network if value == "backbone" else value for key, value in column.options.items()}
    return own | entry.taken(cell.dataset, column.takes)


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
        values = kept.values(line)
        estimates = {name: Estimate.of(values[name]) if values.get(name) else None for name in groups}
        shown = {name: _shown(line, name, groups[name], estimates[name]) for name in groups}
        for name, group in groups.items():
            if group is not None:
                notes.append(_promised(name, group, line.cell))
        own = groups.get("own")
        ours = "" if own is None else f"{own['label']} {shown['own']}"
        cell, published = line.cell, estimates.get("published")
        apart = "" if published is None else f"{100 * published.mean - cell.value:+.1f}"
        setting = f"{cell.setting}, {cell.metric}" if len(found.entry.metrics) > 1 else cell.setting
        cells = (cell.dataset, setting, _printed(cell), shown.get("published", ""), apart)
        body.append((*cells, shown.get("sound", ""), ours, verdict(line, published)))
    entry = found.entry
    told = [
        f"± in print: {found.paper.spread}; brackets here: 95 % bootstrap interval over the seeds",
        *dict.fromkeys(notes),
    ]
    several = sorted({count for line in found.lines for count in line.settings.values() if count > 1})
    told += [
        f"averages are over {count} settings, for each seed whose runs are all there; ± of averages in print: over settings"
        for count in several
    ]
    told += [f"{UNPROVED} the promise does not hold: known gaps, or no finite bound", EXACT]
    told += [entry.remark] if entry.remark else []
    title = f"{found.paper.title}, {entry.name}: {entry.title} ({', '.join(entry.metrics)}, %)"
    return Table(title, head, tuple(body), tuple(told))


def verdict(line: Line, published: Estimate | None) -> str:
    """Whether the published mode agrees with print: its mean within print's interval, or within three points."""
    told = ["the printed number is doubtful"] if line.cell.suspicious else []
    told += ["one run"] if published is not None and published.count == 1 else []
    doubt = f" ({', '.join(told)})" if told else ""
    if line.why:
        return f"{NOT_RUN}: {line.why}"
    if published is None:
        return (line.unpublished if "published" not in line.runs else NOT_RUN) + doubt
    return agreement(100 * published.mean - line.cell.value, line.cell.spread) + doubt


def agreement(apart: float, spread: float | None) -> str:
    """The word for a difference to print, in points."""
    if abs(apart) <= max(TOLERANCE, spread or 0.0):
        return "agrees"
    return "above print" if apart > 0 else "below print"


class Kept:
    """Rows by what was run, whichever version of the package ran it: the tables of a release outlive the next one."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._by_id = {row["id"]: row for row in rows}
        self._versions = dict.fromkeys([__version__, *(str(row.get("version")) for row in self._by_id.values())])

    def row(self, run: Run) -> Mapping[str, Any] | None:
        """The row of this run, if there is one."""
        names = ((run if version == run.version else replace(run, version=version)).id for version in self._versions)
        return next((self._by_id[name] for name in names if name in self._by_id), None)

    def group(self, runs: Sequence[Run]) -> Group | None:
        """The rows of these runs; None if there is none."""
        found = tuple(row for run in runs if (row := self.row(run)) is not None)
        return Group(found) if found else None

    def values(self, line: Line) -> dict[str, list[float]]:
        """By column, what the runs of a line measured: one number per seed, or the mean over settings where it averages."""
        found = {}
        for name, runs in line.runs.items():
            group, metric = self.group(runs), line.metrics[name]
            if group is None:
                continue
            if line.settings.get(name, 1) == 1 and name not in line.bases:
                found[name] = group.all_values(metric)
                continue
            means = self._means(runs, metric, line.settings.get(name, 1))
            if name in line.bases:
                base = self._means(line.bases[name], metric, 1)
                means = {seed: mean - base[seed] for seed, mean in means.items() if seed in base}
            found[name] = list(means.values())
        return found

    def _means(self, runs: Sequence[Run], metric: str, settings: int) -> dict[int | None, float]:
        """By seed, the mean over settings; seeds that lack one are left out."""
        by_seed: dict[int | None, list[float]] = {}
        for run in runs:
            row = self.row(run)
            value = None if row is None or row["status"] != "done" else row["metrics"].get(metric)
            if value is not None:
                by_seed.setdefault(run.seed, []).append(value)
        return {seed: float(np.mean(values)) for seed, values in by_seed.items() if len(values) == settings}


def _shown(line: Line, name: str, group: Group | None, estimate: Estimate | None) -> str:
    if group is None:
        return ""
    if estimate is None and line.settings.get(name, 1) > 1:
        return f"{len(group.rows)} of {len(line.runs[name])} runs"
    if estimate is None:
        return "failed"
    return estimate.percent() + (UNPROVED if private(group.rows[0]) and not group.proved["holds"] else "")


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
