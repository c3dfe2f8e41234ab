"""The tables of a report, each for the page, as CSV and as Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from graphveil.experiments.tables import in_markdown
from graphveil.report.curves import Curves, marks_in
from graphveil.report.rows import Row, Variant, by, marks_of, measured, private
from graphveil.report.summary import epsilon_needed, spread_words

MOST_TARGETS = 6


@dataclass(frozen=True)
class Cell:
    """A text and what to sort it by; ``alarm``: something a reader must not miss, which the text says as well."""

    text: str
    order: float | str | None = None
    alarm: bool = False


@dataclass(frozen=True)
class Table:
    """Columns, lines of cells, and what signs in it mean. ``name`` is that of its files."""

    name: str
    title: str
    columns: tuple[str, ...]
    lines: list[list[Cell]]
    notes: list[str] = field(default_factory=list)
    keys: list[Any] = field(default_factory=list)  # what each line is about, for the page

    def filled(self) -> Table:
        """The same table without columns that say nothing."""
        used = [n for n in range(len(self.columns)) if not self.lines or any(line[n].text for line in self.lines)]
        lines = [[line[n] for n in used] for line in self.lines]
        return replace(self, columns=tuple(self.columns[n] for n in used), lines=lines)

    def csv(self) -> str:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(
            [self.columns, *([c.text for c in line] for line in self.lines)]
        )
        return text.getvalue()

    def markdown(self) -> str:
        cells: Callable[[Iterable[str]], Iterable[str]] = lambda texts: (
            in_markdown(c).replace("|", "/") for c in texts
        )
        shown: Callable[[Iterable[str]], str] = lambda texts: f"| {' | '.join(cells(texts))} |"
        lines = [f"### {in_markdown(self.title)}", "", shown(self.columns), shown(["---"] * len(self.columns))]
        lines += [shown([cell.text for cell in line]) for line in self.lines]
        return "\n".join([*lines, *(f"\n{in_markdown(note)}" for note in self.notes)]) + "\n"


def number(value: float | None, none: str = "no finite value") -> Cell:
    return Cell(none, float("inf"), alarm=True) if value is None else Cell(f"{value:.4g}", value)


def accuracy_table(name: str, found: Sequence[Curves]) -> Table:
    """Means over seeds by data set, method and epsilon, with the standard deviation; the last column is without noise."""
    epsilons = sorted({one.notion.epsilon(row) for one in found for row in one.rows})
    lines = []
    for one in found:
        for variant in one.private:
            values = one.values(variant)
            cells = [_accuracy(values.get(epsilon, [])) for epsilon in epsilons]
            seeds = sorted({len(v) for v in values.values()})
            told = [Cell(one.title), Cell(one.label(variant)), *cells, _accuracy(measured(one.open.get(variant, ())))]
            lines.append([*told, Cell("-".join(map(str, dict.fromkeys((seeds[0], seeds[-1])))) if seeds else "0")])
        for variant, rows in one.baselines.items():
            label = variant.label(rows, rows)
            lines.append(
                [Cell(one.title), Cell(f"{label}, not private"), *[Cell("")] * len(epsilons), _accuracy(measured(rows))]
            )
            lines[-1].append(Cell(str(len(measured(rows)))))
    notes = [
        "Mean and standard deviation over seeds, in %. Exact figures on private labels: not covered by the promise."
    ]
    columns = ("data set", "method", *(f"epsilon {epsilon:g}" for epsilon in epsilons), "no noise", "seeds")
    return Table(name, "Test accuracy, %", columns, lines, notes + marks_in(line[1].text for line in lines))


def _accuracy(values: Sequence[float]) -> Cell:
    return Cell(spread_words(values), float(np.mean(values))) if values else Cell("", -1.0)


def targets_for(found: Sequence[Curves]) -> list[float]:
    """Accuracies worth asking for: multiples of 5 % within what was measured."""
    means = [float(np.mean(v)) for one in found for variant in one.private for v in one.values(variant).values()]
    if not means:
        return []
    grid = [step / 20 for step in range(21) if min(means) < step / 20 <= max(means)]
    grid = grid or [round(max(means), 3)]
    return grid[:: -(-len(grid) // MOST_TARGETS)] if len(grid) > MOST_TARGETS else grid


def needed_table(name: str, found: Sequence[Curves]) -> Table:
    """The epsilon at which the mean of every method reaches an accuracy."""
    targets, lines, keys = targets_for(found), [], []
    for one in found:
        for variant in one.private:
            means = {epsilon: float(np.mean(values)) for epsilon, values in one.values(variant).items()}
            cells = [_needed(means, target) for target in targets]
            lines.append([Cell(one.title), Cell(one.label(variant)), *cells])
            keys.append({"points": sorted(means.items())})
    notes = [
        "Read off between the epsilons that were run, along their logarithm; ≤: reached at the smallest; -: not reached."
    ]
    columns = ("data set", "method", *(f"{100 * target:.0f} %" for target in targets))
    return Table(
        name, "Epsilon needed for an accuracy", columns, lines, notes + marks_in(line[1].text for line in lines), keys
    )


def _needed(means: dict[float, float], target: float) -> Cell:
    found = epsilon_needed(means, target)
    if found is None:
        return Cell("-", float("inf"))
    return Cell(f"≤ {found:g}" if found == min(means) else f"{found:.2g}", found)


def attack_table(name: str, found: Sequence[Curves], attacks: Sequence[str]) -> Table:
    """What each attack gets, beside the accuracy it is the price of."""
    lines = []
    for one in found:
        for variant, rows in one.private.items():
            for epsilon, mine in sorted(by(one.notion.epsilon, rows).items()):
                aucs = [measured(mine, attack) for attack in attacks]
                if any(aucs):
                    cells = [Cell(f"{np.mean(v):.3f}", float(np.mean(v))) if v else Cell("", -1.0) for v in aucs]
                    shown = (
                        Cell(one.title),
                        Cell(one.label(variant)),
                        Cell(f"{epsilon:g}", epsilon),
                        _accuracy(measured(mine)),
                    )
                    lines.append([*shown, *cells])
    columns = (
        "data set",
        "method",
        "epsilon",
        "test accuracy, %",
        *(f"{a.removesuffix('.auc')}, AUC" for a in attacks),
    )
    return Table(
        name,
        "Attacks",
        columns,
        lines,
        ["AUC 0.5 is chance, 1 is everything."] + marks_in(line[1].text for line in lines),
    )


def budget_table(name: str, found: Sequence[Curves]) -> Table:
    """Every release of every method: how much noise on how many numbers, for which share of the budget."""
    lines = []
    for one in found:
        for variant, rows in one.private.items():
            for epsilon, mine in sorted(by(one.notion.epsilon, rows).items()):
                first = next((row for row in mine if row.get("releases")), None)
                for release in first["releases"] if first else ():
                    share, noise, size = (release.get(key) for key in ("share", "noise", "dimension"))
                    shown = [
                        Cell(one.title),
                        Cell(one.label(variant)),
                        Cell(f"{epsilon:g}", epsilon),
                        Cell(release["name"]),
                    ]
                    shown.append(Cell("", -1.0) if share is None else Cell(f"{100 * share:.1f}", share))
                    shown.append(Cell("", -1.0) if noise is None else number(noise))
                    lines.append([*shown, Cell("", -1.0) if size is None else Cell(str(size), float(size))])
    columns = ("data set", "method", "epsilon", "release", "share of the budget, %", "noise", "numbers")
    return Table(
        name,
        "Releases",
        columns,
        lines,
        ["Of the first seed; a share is what the release takes for whoever pays most."],
    )


def certificate_table(name: str, found: Sequence[Curves]) -> Table:
    """What was asked, proved and claimed."""
    lines = []
    for one in found:
        for variant, rows in one.private.items():
            for epsilon, mine in sorted(by(one.notion.epsilon, rows).items()):
                proved = (
                    None if any(row.get("epsilon") is None for row in mine) else max(row["epsilon"] for row in mine)
                )
                claimed = next((row["epsilon_claimed"] for row in mine if row.get("epsilon_claimed") is not None), None)
                holds = all(row.get("holds") for row in mine)
                gaps = ", ".join(dict.fromkeys(gap for row in mine for gap in row.get("gaps") or ()))
                delta = one.setting.delta
                lines.append(
                    [
                        Cell(one.title),
                        Cell(one.label(variant)),
                        Cell(f"{epsilon:g}", epsilon),
                        number(proved),
                        Cell("", -1.0) if claimed is None else number(claimed),
                        Cell(f"{delta:g}" if delta else "0", delta or 0.0),
                        Cell("holds", 1.0) if holds else Cell("DOES NOT HOLD", 0.0, alarm=True),
                        Cell(gaps or "none", alarm=bool(gaps)),
                        Cell(_selection(mine), alarm=_selection(mine) == "not covered"),
                        Cell(str(len(mine)), float(len(mine))),
                    ]
                )
    columns = (
        "data set",
        "method",
        "epsilon asked",
        "proved",
        "claimed",
        "delta",
        "promise",
        "known gaps",
        "selection",
        "runs",
    )
    return Table(name, "Certificates", columns, lines, marks_in(line[1].text for line in lines))


def _selection(rows: Iterable[Row]) -> str:
    said = {str(row.get("selection") or "none") for row in rows}
    return next((word for word in ("not covered", "charged") if word in said), "none")


def cost_table(rows: Sequence[Row]) -> Table:
    """What a run costs, by data set and method."""
    lines = []
    for (dataset, variant), mine in by(lambda row: (row["dataset"], Variant.of(row)), rows).items():
        cells = [_time([row[key] for row in mine if row.get(key)]) for key in ("cpu_seconds", "seconds")]
        lines.append(
            [Cell(dataset), Cell(variant.label(mine[:1], rows)), *cells, Cell(str(len(mine)), float(len(mine)))]
        )
    columns = ("data set", "method", "processor time, s", "elapsed, s", "runs")
    return Table(
        "cost",
        "Cost of one run",
        columns,
        lines,
        ["Means over all finished runs that took time of their own, whatever they promise."],
    )


def _time(values: Sequence[float]) -> Cell:
    return Cell(f"{np.mean(values):.3g}", float(np.mean(values))) if values else Cell("", -1.0)


def failure_table(rows: Sequence[Row]) -> Table:
    """Runs that did not finish, with what they said."""
    failed = [row for row in rows if row.get("status", "done") != "done"]
    columns = ("run", "data set", "method", "epsilon", "seed", "error")
    lines = [
        [
            Cell(str(row.get("id", ""))),
            Cell(row["dataset"]),
            Cell(Variant.of(row).label([row])),
            Cell("" if row.get("epsilon_target") is None else f"{row['epsilon_target']:g}"),
            Cell(str(row.get("seed", ""))),
            Cell(str(row.get("error") or "no reason recorded"), alarm=True),
        ]
        for row in failed
    ]
    return Table("failed", "Failed runs", columns, lines)


def run_table(rows: Sequence[Row]) -> Table:
    """Every run on a line of its own, for other programs."""
    metrics = sorted({name for row in rows for name in row["metrics"]})
    promised = ("level", "adjacency", "relation", "k", "max_degree", "epsilon_target", "delta")
    outcome = ("status", "epsilon", "epsilon_claimed", "holds", "selection")
    keys = ("id", "experiment", "method", "mode", "dataset", "preparation", "split", *promised, "seed", *outcome)
    plain: Callable[[Any], str] = lambda value: "" if value is None else str(value)
    lines = [
        [
            *(Cell(plain(row.get(key))) for key in keys),
            Cell(" ".join(marks_of([row])) if private(row) else ""),
            *(Cell(plain(row["metrics"].get(metric))) for metric in metrics),
            Cell(plain(row.get("cpu_seconds"))),
        ]
        for row in rows
    ]
    return Table("runs", "All runs", (*keys, "marks", *metrics, "cpu_seconds"), lines)
