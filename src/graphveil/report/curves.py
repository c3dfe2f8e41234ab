"""Accuracy against epsilon, drawn from rows: one panel per data set and notion of privacy, never two notions in one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from graphveil.errors import InputError
from graphveil.report.rows import ACCURACY, MARKS, Notion, Row, Setting, Variant, by, done, measured, notions, private

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from graphveil.report.panel import Panel, Reference, Series
    from graphveil.report.printed import Printed

TITLES = {ACCURACY: "test accuracy, %", "val_accuracy": "validation accuracy, %", "test_f1": "test F1, %"}
AUC = ".auc"
LEVELS = "across: dashed without privacy, dotted controls that see no model"


@dataclass(frozen=True)
class Curves:
    """The rows of one panel: a notion, a setting, and per variant of a method its private rows and those without noise."""

    notion: Notion
    setting: Setting
    title: str
    private: dict[Variant, list[Row]]
    open: dict[Variant, list[Row]]
    baselines: dict[Variant, list[Row]]

    @property
    def rows(self) -> list[Row]:
        return [row for found in self.private.values() for row in found]

    def values(self, variant: Variant, metric: str = ACCURACY) -> dict[float, list[float]]:
        """Per epsilon the values over seeds."""
        found = by(self.notion.epsilon, self.private[variant])
        return {epsilon: values for epsilon in sorted(found) if (values := measured(found[epsilon], metric))}

    def label(self, variant: Variant) -> str:
        return variant.label(self.private.get(variant, ()), self.rows)


def curves_of(rows: Sequence[Row]) -> list[Curves]:
    """What can be compared, in order of appearance: by notion, then by setting."""
    good = done(rows)
    without = [row for row in good if not private(row)]
    named = {row["method"] for row in good if private(row)}
    found = []
    for notion, mine in notions(good).items():
        settings = by(Setting.of, mine)
        for setting, here in settings.items():
            variants = by(Variant.of, here)
            beside = by(Variant.of, (row for row in without if setting.same_data(Setting.of(row))))
            baselines = {variant: found for variant, found in beside.items() if variant.method not in named}
            ceilings = {variant: found for variant, found in beside.items() if variant in variants}
            found.append(Curves(notion, setting, setting.title(settings), variants, ceilings, baselines))
    return found


def series_of(curves: Curves, metric: str = ACCURACY) -> list[Series]:
    from graphveil.report.panel import Series

    met: dict[str, int] = {}
    found = []
    for variant in sorted(curves.private, key=lambda one: one.mode == "published"):
        number = met[variant.method] = met.get(variant.method, -1) + 1
        ceiling = measured(curves.open.get(variant, ()), metric)
        values = curves.values(variant, metric)
        if metric != ACCURACY and not values:
            continue
        found.append(Series(curves.label(variant), variant.method, values, ceiling, number))
    return found


def panel_of(curves: Curves, metric: str = ACCURACY, printed: Iterable[Printed] = (), alone: bool = True) -> Panel:
    """The panel of these curves; ``alone``: the notion of privacy stands in it, not above several panels."""
    from graphveil.report.panel import Panel

    delta = f"delta {curves.setting.delta:g}" if curves.setting.delta else ""
    told = ", ".join(filter(None, (curves.notion.title if alone else "", delta)))
    attack = metric.removesuffix(AUC) if metric.endswith(AUC) else ""
    place = (curves.setting.dataset, " ".join(filter(None, (curves.notion.level, curves.notion.axis))))
    here = [point for point in printed if (point.dataset, point.level) == place]
    return Panel(
        title=f"{attack}, {curves.title}" if attack else curves.title,
        subtitle=told,
        xlabel=curves.notion.epsilon_label,
        ylabel="AUC of the attack" if attack else TITLES.get(metric, f"{metric}, %"),
        series=series_of(curves, metric),
        references=[*_references(curves, metric), *_controls(curves, attack)],
        printed=here if metric == ACCURACY else [],
        unit=1.0 if attack else 100.0,
    )


def _references(curves: Curves, metric: str) -> list[Reference]:
    from graphveil.report.panel import Reference

    found = []
    for variant, rows in curves.baselines.items():
        if values := measured(rows, metric):
            name = variant.label(rows, [row for one in curves.baselines.values() for row in one])
            told = name if "not private" in name else f"{name}, not private"
            found.append(Reference(told, sum(values) / len(values), variant.method))
    return found


def _controls(curves: Curves, attack: str) -> list[Reference]:
    """What a score without a model reaches on the same cases: it does not move with the method, nor with epsilon."""
    from graphveil.report.panel import Reference

    names = {name for row in curves.rows for name in row["metrics"] if attack and name.startswith(f"{attack}/")}
    found = []
    for name in sorted(name for name in names if name.endswith(AUC)):
        by_seed = by(lambda row: row.get("seed"), (row for row in curves.rows if name in row["metrics"]))
        if all(len({row["metrics"][name] for row in mine}) == 1 for mine in by_seed.values()):
            values = [mine[0]["metrics"][name] for mine in by_seed.values()]
            told = name.removeprefix(f"{attack}/").removesuffix(AUC)
            found.append(Reference(told, sum(values) / len(values), control=True))
    chance = [Reference("chance", 0.5, control=True)] if attack else []
    return found if any(abs(one.value - 0.5) < 0.01 for one in found) else found + chance


def marks_in(labels: Iterable[str]) -> list[str]:
    """What the signs after these names mean."""
    seen = " ".join(labels)
    return [f"{mark} {words}" for mark, words in MARKS.items() if mark in seen]


def draw(
    rows: Sequence[Row],
    path: str | Path,
    printed: Sequence[Printed] = (),
    title: str = "Privacy and accuracy",
    metrics: Sequence[str] = (ACCURACY,),
) -> Figure:
    """All curves of these rows as one picture; the ending of ``path`` (.svg, .png, .pdf) chooses its kind."""
    from graphveil.report.panel import draw_sheet, notes_of

    every = curves_of(rows)
    found = [
        (metric, one)
        for metric in metrics
        for one in every
        if any(one.values(variant, metric) for variant in one.private)
    ]
    if not found:
        told = " or ".join(metrics)
        raise InputError(f"there is nothing to draw: no finished private run among {len(rows)} rows has a {told}")
    first = found[0][1].notion
    alone = any(one.notion != first for _, one in found)
    panels = [panel_of(one, metric, printed, alone) for metric, one in found]
    heading = title if alone else f"{title}: {first.title}"
    notes = notes_of(panels) + marks_in(series.label for panel in panels for series in panel.series)
    notes += [LEVELS] if any(metric.endswith(AUC) for metric, _ in found) else []
    return draw_sheet(panels, path, heading, notes)
