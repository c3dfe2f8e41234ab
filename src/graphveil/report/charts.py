"""The other pictures of a report: accuracy against attack success, the budget by release, and what a run costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from graphveil.report import canvas, labels
from graphveil.report.curves import Curves, marks_in
from graphveil.report.palette import INK, MUTED, PAPER, style_of
from graphveil.report.panel import End, name_ends
from graphveil.report.rows import ACCURACY, Row, Variant, by, measured

WIDTH = canvas.ALONE
POINTS = ("Each point is the mean at one epsilon, named where there is room.", "AUC 0.5 is chance.")
FAR = 30  # times as long as the shortest run: then the axis is logarithmic
SHADES = (1.0, 0.68, 0.46, 0.3, 0.2, 0.13)


def _headed(height: float, title: str, subtitle: str, notes: Sequence[str] = ()) -> tuple[Figure, float, float]:
    """A sheet with title and notes; what is left between two heights is for axes of this height."""
    below = canvas.broken(" ".join(notes), int(WIDTH * 14.5))
    told = canvas.broken(subtitle, int(WIDTH * 14))
    foot = 0.12 + canvas.LINE * (below.count("\n") + 1) if below else 0.06
    head = 0.36 + canvas.LINE * (told.count("\n") + 1)
    figure = canvas.new_figure(WIDTH, head + height + foot)
    top = head + height + foot
    canvas.write(figure, 0.12, top - 0.1, title, fontsize=canvas.TEXT + 1, fontweight="bold")
    canvas.write(figure, 0.12, top - 0.31, told, fontsize=canvas.SMALL, color=MUTED)
    if below:
        canvas.write(figure, 0.12, foot - 0.04, below, fontsize=canvas.SMALL, color=MUTED)
    return figure, foot, foot + height


def tradeoff(curves: Curves, attack: str) -> Figure | None:
    """Accuracy against the AUC of an attack, a point per epsilon; up and to the left is better."""
    found: dict[Variant, dict[float, tuple[float, float]]] = {}
    for variant, rows in curves.private.items():
        points = {e: (measured(mine, attack), measured(mine)) for e, mine in by(curves.notion.epsilon, rows).items()}
        means = {e: (float(np.mean(x)), 100 * float(np.mean(y))) for e, (x, y) in sorted(points.items()) if x and y}
        if means:
            found[variant] = means
    if not found:
        return None
    names = {variant: canvas.broken(curves.label(variant), canvas.NAME_WIDTH) for variant in found}
    title, notes = (
        f"{curves.title}: accuracy against {attack.removesuffix('.auc')}",
        [*POINTS, *marks_in(names.values())],
    )
    figure, bottom, top = _headed(2.8, title, curves.notion.title, notes)
    wide = max(canvas.text_size(figure, name, canvas.SMALL)[0] for name in names.values()) + 0.22
    axes = canvas.axes_at(figure, canvas.LEFT, bottom + canvas.BOTTOM, WIDTH - wide, top)
    ends = []
    for variant, means in found.items():
        style, (xs, ys) = style_of(variant.method), zip(*means.values(), strict=True)
        look = {
            "color": style.color,
            "marker": style.marker,
            "markeredgecolor": PAPER,
            "linewidth": 1.4,
            "markersize": 6,
        }
        axes.plot(xs, ys, label=names[variant], **look)
        ends.append(End(names[variant], style, ys[-1], xs[-1]))
    axes.axvline(0.5, color=MUTED, linewidth=1, linestyle=(0, (1, 1.6)))
    axes.margins(x=0.1, y=0.14)
    axes.set_xlabel("AUC of the attack (less is better)", fontsize=canvas.SMALL + 0.5, color=INK)
    axes.set_ylabel("test accuracy, %", fontsize=canvas.SMALL + 0.5, color=INK)
    axes.autoscale_view()
    _name_points(axes, [(f"{epsilon:g}", at) for means in found.values() for epsilon, at in means.items()])
    name_ends(axes, ends)
    return figure


def _name_points(axes: Any, points: Sequence[tuple[str, tuple[float, float]]]) -> None:
    """A small name at every point that has room for one."""
    figure, size = axes.figure, canvas.SMALL - 1
    spots = [tuple(axes.transData.transform(at)) for _, at in points]
    seen: list[labels.Box] = [(x - 7, y - 7, x + 7, y + 7) for x, y in spots]
    for (name, _), spot in zip(points, spots, strict=True):
        wide, high = (side * figure.dpi for side in canvas.text_size(figure, name, size))
        box, covered = labels.beside(spot, (wide, high), seen, axes.get_window_extent().extents, 9)
        if covered < 1:  # square pixel
            seen.append(box)
            middle = axes.transAxes.inverted().transform(((box[0] + box[2]) / 2, (box[1] + box[3]) / 2))
            told = {"fontsize": size, "color": MUTED, "ha": "center", "va": "center", "transform": axes.transAxes}
            axes.text(*middle, name, **told)


def middle_epsilon(curves: Curves) -> float:
    """The epsilon at which most variants were run; of several the one in the middle."""
    counts = {e: len({Variant.of(row) for row in rows}) for e, rows in by(curves.notion.epsilon, curves.rows).items()}
    often: list[float] = sorted(epsilon for epsilon, count in counts.items() if count == max(counts.values()))
    return often[len(often) // 2]


def mean_shares(rows: Sequence[Row]) -> dict[str, float]:
    """The share of every release, mean over seeds; empty if the rows do not tell."""
    told = [{r["name"]: r.get("share") for r in row.get("releases") or ()} for row in rows]
    told = [shares for shares in told if shares and None not in shares.values()]
    names = dict.fromkeys(name for shares in told for name in shares)
    found = {name: float(np.mean([shares.get(name, 0.0) for shares in told])) for name in names}
    found = {name: share for name, share in found.items() if share > 5e-4}  # others are paid by other kinds of records
    left = 1 - sum(found.values())
    return found | ({"unspent": left} if found and left > 5e-3 else {})


def budget(curves: Curves) -> Figure | None:
    """One bar per variant: how its budget is split among releases, in their order."""
    epsilon = middle_epsilon(curves)
    found: dict[Variant, dict[str, float]] = {}
    for variant, rows in curves.private.items():
        if shares := mean_shares([row for row in rows if curves.notion.epsilon(row) == epsilon]):
            found[variant] = shares
    if not found:
        return None
    told = {
        v: canvas.broken(", ".join(f"{n} {_percent(s)}" for n, s in shares.items()), 58) for v, shares in found.items()
    }
    heights = [0.5 + canvas.LINE * (text.count("\n") + 1) for text in told.values()]
    title = f"{curves.title}: the budget by release"
    figure, _, top = _headed(sum(heights), title, f"{curves.notion.title}, {curves.notion.epsilon_label} {epsilon:g}")
    for (variant, shares), height in zip(found.items(), heights, strict=True):
        canvas.write(
            figure, 0.12, top - 0.1, curves.label(variant), fontsize=canvas.TEXT, color=style_of(variant.method).text
        )
        _bar(canvas.axes_at(figure, 0.12, top - 0.47, WIDTH - 0.12, top - 0.27), shares, style_of(variant.method).color)
        canvas.write(figure, 0.12, top - 0.5, told[variant], fontsize=canvas.SMALL, color=INK)
        top -= height
    return figure


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.01 else "under 1 %"


def _bar(axes: Any, shares: Mapping[str, float], color: str) -> None:
    """Segments from the left, lighter and lighter; what is unspent is empty."""
    start = 0.0
    for number, (name, share) in enumerate(shares.items()):
        alpha = 0.0 if name == "unspent" else SHADES[number % len(SHADES)]
        axes.barh(0, share, left=start, height=1, color=color, alpha=alpha, linewidth=0)
        axes.plot((start + share, start + share), (-0.5, 0.5), color=PAPER, linewidth=1.4)
        if share > 0.022 * len(name) + 0.02:
            style = {
                "ha": "center",
                "va": "center",
                "fontsize": canvas.SMALL - 0.5,
                "color": PAPER if alpha > 0.6 else INK,
            }
            axes.text(start + share / 2, -0.02, name, **style)
        start += share
    axes.plot((0, 1, 1, 0, 0), (-0.5, -0.5, 0.5, 0.5, -0.5), color=color, linewidth=1)
    axes.set(xlim=(-0.002, 1.002), ylim=(-0.55, 0.55))
    axes.set_axis_off()


def cost(dataset: str, rows: Sequence[Row]) -> Figure | None:
    """Processor time of a run by variant: the mean, and from the shortest to the longest."""
    found = {
        v: times for v, mine in by(Variant.of, rows).items() if (times := [_seconds(r) for r in mine if _seconds(r)])
    }
    if not found:
        return None
    names = {variant: canvas.broken(variant.label(by(Variant.of, rows)[variant][:1], rows), 24) for variant in found}
    order = sorted(found, key=lambda variant: float(np.mean(found[variant])))
    height = 0.3 * len(order) + canvas.BOTTOM
    note = ["All epsilons and promises together; the line is from the shortest run to the longest."]
    figure, bottom, top = _headed(height, f"{dataset}: time of one run", "processor time, seconds", note)
    left = max(canvas.text_size(figure, name, canvas.SMALL)[0] for name in names.values()) + 0.2
    axes = canvas.axes_at(figure, left, bottom + canvas.BOTTOM, WIDTH - 0.55, top)
    for place, variant in enumerate(order):
        times, style = found[variant], style_of(variant.method)
        axes.plot((min(times), max(times)), (place, place), color=style.color, linewidth=2.5, alpha=0.5)
        axes.plot(np.mean(times), place, style.marker, color=style.color, markeredgecolor=PAPER, markersize=7)
        told = {"textcoords": "offset points", "xytext": (7, 0), "va": "center", "fontsize": canvas.SMALL}
        axes.annotate(f"{np.mean(times):.3g}", (max(times), place), color=INK, **told)
    every = [seconds for times in found.values() for seconds in times]
    if max(every) > FAR * min(every):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_formatter(lambda *_: "")
    else:
        axes.set_xlim(0, 1.08 * max(every))
    axes.set_yticks(range(len(order)), [names[variant] for variant in order], fontsize=canvas.SMALL)
    axes.set_ylim(-0.6, len(order) - 0.4)
    axes.set_xlabel("seconds", fontsize=canvas.SMALL + 0.5, color=INK)
    return figure


def _seconds(row: Row) -> float:
    return float(row.get("cpu_seconds") or row.get("seconds") or 0.0)


def attacks_in(rows: Sequence[Row]) -> list[str]:
    """The metrics of attacks that these rows have."""
    return sorted({name for row in rows for name in row["metrics"] if name.endswith(".auc") and name != ACCURACY})
