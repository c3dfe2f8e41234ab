"""One self-contained page from rows, and beside it every picture and every table as files of their own."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphveil.errors import InputError
from graphveil.files import write_text
from graphveil.report.curves import Curves, curves_of, marks_in, panel_of
from graphveil.report.rows import MARKS, Notion, Row, by, done, marks_of
from graphveil.report.tables import (
    Table,
    accuracy_table,
    attack_table,
    budget_table,
    certificate_table,
    cost_table,
    failure_table,
    needed_table,
    run_table,
    targets_for,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from graphveil.report.printed import Printed

PICTURES = ("svg", "png")
CARD_LINES = ("paper", "trust", "protects", "public", "formula", "when", "readings")


@dataclass
class Assets:
    """Where pictures and tables are written, and how the page names them; without a folder, nowhere."""

    folder: Path | None
    address: str
    taken: set[str] = field(default_factory=set)

    def figure(self, figure: Figure | None, name: str, words: str) -> dict[str, Any] | None:
        from graphveil.report.canvas import save
        from graphveil.report.inline import svg_of

        if figure is None:
            return None
        name = self._own(name)
        if self.folder is not None:
            for kind in PICTURES:
                save(figure, self.folder / f"{name}.{kind}")
        return {"svg": svg_of(figure, name, words), "files": self._files(name, PICTURES)}

    def table(self, table: Table) -> dict[str, Any]:
        table = table.filled()
        if self.folder is not None and table.lines:
            write_text(self.folder / f"{table.name}.csv", table.csv())
            write_text(self.folder / f"{table.name}.md", table.markdown())
        return {"table": table, "files": self._files(table.name, ("csv", "md")) if table.lines else []}

    def _own(self, name: str) -> str:
        """A name nothing else has."""
        plain = slug(name)
        found = next(one for one in (plain, *(f"{plain}-{n}" for n in range(2, 10_000))) if one not in self.taken)
        self.taken.add(found)
        return found

    def _files(self, name: str, kinds: Sequence[str]) -> list[dict[str, str]]:
        if self.folder is None:
            return []
        return [{"kind": kind.upper(), "address": f"{self.address}/{name}.{kind}"} for kind in kinds]


def slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def write_report(
    rows: Sequence[Row],
    out: Path,
    assets: Path | None,
    *,
    title: str = "Privacy and accuracy",
    source: str = "results",
    printed: Sequence[Printed] = (),
) -> list[Path]:
    """Write the page and its files; what was written."""
    from graphveil.report.page import rendered

    if assets is not None:
        try:
            assets.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"the folder {assets} cannot be created: {error.strerror}") from None
    address = "" if assets is None else _relative(assets, out.parent)
    kept = Assets(assets, address)
    found = curves_of(rows)
    sections = [_section(notion, mine, kept, printed) for notion, mine in by_notion(found).items()]
    good = done(rows)
    values = {
        "title": title,
        "subtitle": _subtitle(good),
        "tiles": _tiles(rows, found),
        "marks": marks_in(mark for row in good for mark in marks_of([row])),
        "sections": sections,
        "costs": _costs(good, kept),
        "cost": kept.table(cost_table(good)),
        "cards": _cards(dict.fromkeys(row["method"] for row in rows)),
        "failed": kept.table(failure_table(rows)),
        "runs": kept.table(run_table(rows)),
        "source": source,
    }
    write_text(out, rendered("report.html", **values))
    return [out, *(sorted(assets.iterdir()) if assets is not None else ())]


def by_notion(found: Sequence[Curves]) -> dict[Notion, list[Curves]]:
    grouped: dict[Notion, list[Curves]] = {}
    for one in found:
        grouped.setdefault(one.notion, []).append(one)
    return grouped


def _relative(assets: Path, start: Path) -> str:
    return Path(os.path.relpath(assets, start)).as_posix()


def _section(notion: Notion, found: list[Curves], kept: Assets, printed: Sequence[Printed]) -> dict[str, Any]:
    from graphveil.report import charts
    from graphveil.report.panel import draw_sheet, notes_of

    name = slug(notion.title)
    curves, tradeoffs, budgets = [], [], []
    attacks = charts.attacks_in([row for one in found for row in one.rows])
    for one in found:
        place = f"{name}-{one.title}"
        panel = panel_of(one, printed=printed)
        notes = notes_of([panel]) + marks_in(series.label for series in panel.series)
        words = f"Accuracy against epsilon on {one.title}, {notion.title}; the figures are in the table below"
        curves.append(kept.figure(draw_sheet([panel], None, notes=notes), f"accuracy-{place}", words))
        for attack in attacks:
            words = f"Accuracy against the success of {attack} on {one.title}, {notion.title}"
            tradeoffs.append(kept.figure(charts.tradeoff(one, attack), f"{attack}-{place}", words))
        budgets.append(kept.figure(charts.budget(one), f"budget-{place}", f"The budget by release on {one.title}"))
    return {
        "name": name,
        "title": notion.title[0].upper() + notion.title[1:],
        "short": notion.title,
        "words": notion.words,
        "curves": [one for one in curves if one],
        "accuracy": kept.table(accuracy_table(f"accuracy-{name}", found)),
        "needed": kept.table(needed_table(f"epsilon-needed-{name}", found)),
        "range": _range(found),
        "attacks": kept.table(attack_table(f"attacks-{name}", found, attacks)) if attacks else None,
        "tradeoffs": [one for one in tradeoffs if one],
        "budgets": [one for one in budgets if one],
        "verdict": _verdict([row for one in found for row in one.rows]),
        "certificates": kept.table(certificate_table(f"certificates-{name}", found)),
        "releases": kept.table(budget_table(f"releases-{name}", found)),
    }


def _verdict(rows: Sequence[Row]) -> dict[str, Any]:
    """In how many runs the promise holds."""
    broken = sum(row.get("holds") is not True for row in rows)
    if broken:
        return {
            "text": f"In {broken} of {len(rows)} runs the promise DOES NOT HOLD: see the gaps below.",
            "alarm": True,
        }
    return {"text": f"The promise holds in all {len(rows)} runs.", "alarm": False}


def _range(found: Sequence[Curves]) -> dict[str, float]:
    """The slider of accuracies."""
    means = [sum(v) / len(v) for one in found for variant in one.private for v in one.values(variant).values()]
    targets = targets_for(found) or [0.5]
    low, high = (100 * min(means), 100 * max(means)) if means else (0.0, 100.0)
    return {"low": float(int(low)), "high": float(int(high) + 1), "start": 100 * targets[len(targets) // 2]}


def _costs(rows: Sequence[Row], kept: Assets) -> list[dict[str, Any]]:
    from graphveil.report import charts

    found = [
        kept.figure(charts.cost(dataset, mine), f"cost-{dataset}", f"Processor time of one run on {dataset}")
        for dataset, mine in by(lambda row: row["dataset"], rows).items()
    ]
    return [one for one in found if one]


def _subtitle(rows: Sequence[Row]) -> str:
    named = ", ".join(dict.fromkeys(str(row["experiment"]) for row in rows if row.get("experiment")))
    names = f"experiment {named}" if named else ""
    dates = sorted(str(row["finished"])[:10] for row in rows if row.get("finished"))
    when = f"finished {dates[0]}" + (f" to {dates[-1]}" if dates[0] != dates[-1] else "") if dates else ""
    versions = ", ".join(dict.fromkeys(str(row["version"]) for row in rows if row.get("version")))
    return "; ".join(filter(None, (names, when, f"graphveil {versions}" if versions else "")))


def _tiles(rows: Sequence[Row], found: Sequence[Curves]) -> list[dict[str, Any]]:
    good = done(rows)
    failed = len(rows) - len(good)
    count: Callable[[str], int] = lambda key: len({row.get(key) for row in good})
    minutes = sum(float(row.get("cpu_seconds") or 0.0) for row in good) / 60
    time = f"{minutes / 60:.1f} h" if minutes > 90 else f"{minutes:.1f} min"
    broken = sum(1 for row in good if marks_of([row]))
    tiles: list[tuple[Any, str, bool]] = [(len(good), "runs finished", False), (failed, "runs failed", failed > 0)]
    tiles += [(count("method"), "methods", False), (count("dataset"), "data sets", False)]
    tiles += [(len(by_notion(found)), "notions of privacy", False), (count("seed"), "seeds", False)]
    tiles += [(broken, "runs with a mark " + " ".join(MARKS), broken > 0), (time, "processor time", False)]
    return [{"value": value, "words": words, "alarm": alarm} for value, words, alarm in tiles]


def _cards(names: Any) -> list[dict[str, Any]]:
    """The cards of these methods, as far as they are installed here."""
    from graphveil.methods.registry import VERBS, describe

    found = []
    for name in names:
        try:
            card = describe(name)
        except InputError:
            found.append({"name": name, "summary": "not installed here", "lines": [], "guarantees": [], "gaps": []})
            continue
        said = [
            (f"{mode} {VERBS[mode]}", [f"{g['level']} level ({g['adjacency']}, {g['relation']})" for g in guarantees])
            for mode, guarantees in card["supports"].items()
        ]
        lines = [(key, card[key]) for key in CARD_LINES if card[key]]
        found.append(
            {"name": name, "summary": card["summary"], "lines": lines, "guarantees": said, "gaps": card["gaps"]}
        )
    return found
