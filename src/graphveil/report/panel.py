"""One panel: values against epsilon, named where the lines end, with what is reached without noise beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from graphveil.report import canvas, labels
from graphveil.report.palette import DASHES, GRID, INK, MUTED, PAPER, Style, style_of
from graphveil.report.printed import Printed
from graphveil.report.summary import Values, band_words, enough, interval

ZONE = 0.17  # share of the panel for what is reached without noise
NO_NOISE = "no\nnoise"


@dataclass(frozen=True)
class Series:
    """One line: its name, the method whose colour and marker it has, values per epsilon and those without noise.

    ``variant`` tells lines of one method apart: by the style of the line.
    """

    label: str
    method: str
    values: Values
    ceiling: Sequence[float] = ()
    variant: int = 0

    @property
    def means(self) -> dict[float, float]:
        return {epsilon: float(np.mean(found)) for epsilon, found in sorted(self.values.items()) if len(found)}


@dataclass(frozen=True)
class Reference:
    """A level that does not depend on epsilon: a method that is not private, or a control."""

    label: str
    value: float
    method: str = ""
    control: bool = False


@dataclass(frozen=True)
class Panel:
    """What one panel shows; ``unit`` turns values into what the axis counts (100: percent)."""

    title: str
    ylabel: str
    series: Sequence[Series]
    subtitle: str = ""
    xlabel: str = "epsilon"
    references: Sequence[Reference] = ()
    printed: Sequence[Printed] = ()
    unit: float = 100.0

    @property
    def epsilons(self) -> list[float]:
        found = {epsilon for series in self.series for epsilon in series.means}
        return sorted(found | {point.epsilon for point in self.printed})

    @property
    def names(self) -> list[str]:
        found = [one.label for one in self.series] + [level.label for level in self.references]
        return [canvas.broken(name, canvas.NAME_WIDTH) for name in found]


def draw_sheet(
    panels: Sequence[Panel], path: str | Path | None, title: str = "", notes: Sequence[str] = (), columns: int = 2
) -> Figure:
    """All panels on one sheet, at most ``columns`` a row, with a title and what the marks mean below."""
    columns = min(columns, len(panels))
    down = -(-len(panels) // columns)
    probe = canvas.new_figure(1, 1)
    name_width = max((canvas.text_size(probe, n, canvas.SMALL)[0] for p in panels for n in p.names), default=0.3) + 0.22
    width = canvas.LEFT + 2.75 + name_width if columns > 1 else max(canvas.ALONE, canvas.LEFT + 2.0 + name_width)
    letters = int(columns * width * 14.5)
    heading = canvas.broken(title, int(letters * 0.8)) if title else ""
    footer = canvas.broken(" ".join(f"{note[0].upper()}{note[1:]}." for note in notes), letters)
    subtitles = [canvas.broken(panel.subtitle, int(width * 15)) if panel.subtitle else "" for panel in panels]
    head = 0.36 + canvas.LINE * max((text.count("\n") + 1 if text else 0) for text in subtitles)
    height = head + 2.25 + canvas.BOTTOM
    above = 0.12 + 0.2 * (heading.count("\n") + 1) if heading else 0.0
    below = 0.14 + canvas.LINE * (footer.count("\n") + 1) if footer else 0.05
    figure = canvas.new_figure(columns * width, above + down * height + below)
    total = figure.get_size_inches()[1]
    if heading:
        canvas.write(figure, 0.12, total - 0.1, heading, fontsize=canvas.TEXT + 2, fontweight="bold")
    for number, (panel, subtitle) in enumerate(zip(panels, subtitles, strict=True)):
        left, top = (number % columns) * width, total - above - (number // columns) * height
        canvas.write(figure, left + 0.12, top - 0.12, panel.title, fontsize=canvas.TEXT + 1, fontweight="bold")
        if subtitle:
            canvas.write(figure, left + 0.12, top - 0.32, subtitle, fontsize=canvas.SMALL, color=MUTED)
        edges = (left + canvas.LEFT, top - height + canvas.BOTTOM, left + width - name_width, top - head)
        draw_panel(canvas.axes_at(figure, *edges), panel)
    if footer:
        canvas.write(figure, 0.12, below - 0.04, footer, fontsize=canvas.SMALL, color=MUTED)
    if path is not None:
        canvas.save(figure, path)
    return figure


def notes_of(panels: Sequence[Panel]) -> list[str]:
    """What bands, dashes and hollow marks of these panels mean."""
    found = [band_words([values for panel in panels for one in panel.series for values in one.values.values()])]
    if any(one.ceiling for panel in panels for one in panel.series):
        found.append("dashed at the right: the same method without noise")
    if any(panel.printed for panel in panels):
        found.append("hollow: printed in papers, under the adjacency, split and delta they name")
    return found


def draw_panel(axes: Any, panel: Panel) -> None:
    """The panel, on axes whose place is final."""
    epsilons = panel.epsilons or [1.0]
    canvas.log_epsilons(axes, sorted({epsilon for one in panel.series for epsilon in one.means}) or epsilons)
    bootstrap = enough([values for one in panel.series for values in one.values.values()])
    ends = [_line(axes, one, panel.unit, bootstrap) for one in panel.series]
    zone = any(one.ceiling for one in panel.series)
    _limits(axes, epsilons, zone)
    for one in panel.series:
        if one.ceiling:
            height = panel.unit * float(np.mean(one.ceiling))
            style = {"color": style_of(one.method).color, "linewidth": 2.0, "linestyle": (0, (2.2, 1.1))}
            axes.plot((1 - ZONE + 0.015, 0.985), (height, height), transform=axes.get_yaxis_transform(), **style)
    for point in panel.printed:
        style = _printed_style(point)
        axes.plot(point.epsilon, panel.unit * point.value, linestyle="", label=f"printed: {point.source}", **style)
    for level in panel.references:
        look = (0, (1, 1.6)) if level.control else (0, (5, 2.5))
        color = MUTED if level.control else style_of(level.method).color
        axes.axhline(panel.unit * level.value, color=color, linestyle=look, linewidth=1.2, zorder=1.5)
    axes.yaxis.set_major_locator(MaxNLocator(6))
    axes.margins(y=0.08)
    axes.autoscale_view(scalex=False)
    axes.set_xlabel(panel.xlabel, fontsize=canvas.SMALL + 0.5, color=INK, labelpad=2)
    axes.set_ylabel(panel.ylabel, fontsize=canvas.SMALL + 0.5, color=INK)
    name_ends(axes, _ends(panel, ends))
    _printed_names(axes, panel)


def _line(axes: Any, series: Series, unit: float, bootstrap: bool) -> tuple[float, float] | None:
    """A line with its band; where it ends."""
    style, means = style_of(series.method), series.means
    if not means:
        return None
    xs, ys = list(means), [unit * mean for mean in means.values()]
    bands = [interval(series.values[epsilon], bootstrap) for epsilon in xs]
    low, high = [unit * band[0] for band in bands], [unit * band[1] for band in bands]
    axes.fill_between(xs, low, high, color=style.color, alpha=0.16, linewidth=0, zorder=2)
    look: dict[str, Any] = {
        "color": style.color,
        "marker": style.marker,
        "linestyle": DASHES[series.variant % len(DASHES)],
    }
    axes.plot(
        xs, ys, label=series.label, linewidth=1.8, markersize=5.5, markeredgecolor=PAPER, markeredgewidth=0.6, **look
    )
    return xs[-1], ys[-1]


def _limits(axes: Any, epsilons: Sequence[float], zone: bool) -> None:
    """Room at both ends, and at the right a strip for what is reached without noise."""
    first, last = np.log(epsilons[0]), np.log(epsilons[-1])
    span = last - first or 1.0
    inner = span * 1.1
    right = last + 0.05 * span + (inner * ZONE / (1 - ZONE) if zone else 0.0)
    axes.set_xlim(np.exp(first - 0.05 * span), np.exp(right))
    if not zone:
        return
    strip = {"transform": axes.transAxes, "color": GRID, "alpha": 0.45, "linewidth": 0, "zorder": 0.5}
    axes.add_patch(Rectangle((1 - ZONE, 0), ZONE, 1, **strip))
    told = {"fontsize": canvas.SMALL, "color": INK, "ha": "center", "va": "top", "linespacing": 0.95}
    low = -5.5 / 72 / (axes.get_window_extent().height / axes.figure.dpi)
    axes.text(1 - ZONE / 2, low, NO_NOISE, transform=axes.transAxes, **told)


@dataclass(frozen=True)
class End:
    """A name to put at the right edge: at which height, in which style (none: muted), and where its line ends."""

    name: str
    style: Style | None
    height: float
    start: float | None = None


def _ends(panel: Panel, ends: Sequence[tuple[float, float] | None]) -> list[End]:
    found = []
    for one, end, name in zip(panel.series, ends, panel.names, strict=False):
        if end is None and not one.ceiling:
            continue
        height = end[1] if end else panel.unit * float(np.mean(one.ceiling))
        found.append(End(name, style_of(one.method), height, end[0] if end else None))
    for level, name in zip(panel.references, panel.names[len(panel.series) :], strict=True):
        found.append(End(name, None if level.control else style_of(level.method), panel.unit * level.value))
    return found


def name_ends(axes: Any, ends: Sequence[End]) -> None:
    """Names at the right edge, moved apart where they would overlap, each tied to the end of its line."""
    frame, figure = axes.get_window_extent(), axes.figure
    place: Callable[[float], float] = lambda value: float(axes.transData.transform((1.0, value))[1])
    sizes = [canvas.text_size(figure, end.name, canvas.SMALL)[1] * figure.dpi + 2.5 for end in ends]
    found = labels.spread([place(end.height) for end in ends], sizes, frame.y0 - 6, frame.y1 + 6)
    gap = 0.13 * figure.dpi / frame.width
    for end, moved in zip(ends, found, strict=True):
        at, edge = ((y - frame.y0) / frame.height for y in (moved, place(end.height)))
        color = end.style.color if end.style else MUTED
        thin = {"color": color, "linewidth": 0.8, "alpha": 0.75, "clip_on": False, "transform": axes.transAxes}
        if end.start is not None:
            spot = axes.transData.transform((end.start, end.height))
            axes.plot((min(axes.transAxes.inverted().transform(spot)[0] + 0.02, 1), 1), (edge, edge), **thin)
        axes.plot((1, 1 + gap * 0.8), (edge, at), **thin)
        told = {"fontsize": canvas.SMALL, "va": "center", "ha": "left", "linespacing": 1.0, "transform": axes.transAxes}
        axes.text(1 + gap, at, end.name, color=end.style.text if end.style else MUTED, **told)


def _printed_style(point: Printed) -> dict[str, Any]:
    style = style_of(point.method) if point.method else Style("grey", "d")
    return {"marker": style.marker, "color": style.text, "markerfacecolor": PAPER, "markersize": 6.5, "zorder": 4}


def _printed_names(axes: Any, panel: Panel) -> None:
    """The source beside one of its points, the one with most room."""
    if not panel.printed:
        return
    figure, frame = axes.figure, axes.get_window_extent()
    spot: Callable[[float, float], Any] = lambda x, y: tuple(axes.transData.transform((x, panel.unit * y)))
    around: Callable[[Any, float], labels.Box] = lambda at, r: (at[0] - r, at[1] - r, at[0] + r, at[1] + r)
    unit = figure.dpi / 72
    seen = [around(spot(point.epsilon, point.value), 4 * unit) for point in panel.printed]
    for one in panel.series:
        spots = [spot(epsilon, mean) for epsilon, mean in one.means.items()]
        steps = [
            np.add(a, np.multiply(np.subtract(b, a), t)) for a, b in pairwise(spots) for t in np.linspace(0, 1, 40)
        ]
        seen += [around(step, 2.5 * unit) for step in (*spots, *steps)]
    for source in dict.fromkeys(point.source for point in panel.printed):
        wide, high = canvas.text_size(figure, source, canvas.SMALL - 0.5)
        size = (wide * figure.dpi, high * figure.dpi)
        points = [point for point in panel.printed if point.source == source]
        tried = [labels.beside(spot(p.epsilon, p.value), size, seen, frame.extents, 6.5 * unit) for p in points]
        box, _ = min(tried, key=lambda one: one[1])
        seen.append(box)
        middle = axes.transAxes.inverted().transform(((box[0] + box[2]) / 2, (box[1] + box[3]) / 2))
        told = {
            "fontsize": canvas.SMALL - 0.5,
            "color": _printed_style(points[0])["color"],
            "ha": "center",
            "va": "center",
        }
        axes.text(*middle, source, transform=axes.transAxes, **told)
