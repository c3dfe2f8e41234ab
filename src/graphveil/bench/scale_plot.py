"""The curves of the scale benchmark: CPU time of training above, peak memory below, against each size that was varied."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphveil.bench.scale import VARIED, curve_of
from graphveil.report.canvas import SMALL, TEXT, axes_at, new_figure, save, write
from graphveil.report.palette import DASHES, INK, MUTED, style_of

WIDE, HIGH, GAP = 2.5, 1.9, 0.75  # inches of a panel, and between panels
MEASURES = {"fit": "CPU seconds of training", "peak_gib": "peak memory, GiB"}
WORDS = {"nodes": "people", "edges": "undirected edges", "features": "feature columns"}


def draw(result: dict[str, Any], path: Path) -> Path:
    """Write the picture; a size that was not varied has no panel."""
    trained = [row for row in result["results"] if "fit" in row]
    lines = list(dict.fromkeys((row["what"], row["form"]) for row in trained))
    names = [name for name in VARIED if any(len(curve_of(_of(trained, line), name)) > 1 for line in lines)]
    figure = new_figure(GAP + len(names) * (WIDE + GAP) + 1.4, 2 * (HIGH + GAP) + 0.45)
    top = 2 * (HIGH + GAP) + 0.45
    write(figure, GAP, top - 0.08, f"What size costs: {result['promise']}", fontsize=TEXT + 1, weight="bold")
    for column, name in enumerate(names):
        left = GAP + column * (WIDE + GAP)
        for row, (measure, words) in enumerate(MEASURES.items()):
            bottom = top - 0.45 - (row + 1) * HIGH - row * GAP
            axes = axes_at(figure, left, bottom, left + WIDE, bottom + HIGH)
            for line in lines:
                _curve(axes, curve_of(_of(trained, line), name), name, measure, line)
            axes.set_xscale("log", base=2)
            if measure == "fit":
                axes.set_yscale("log", base=2)
            else:
                axes.set_ylim(bottom=0)
            values = sorted({row[name] for line in lines for row in curve_of(_of(trained, line), name)})
            axes.set_xticks(values, [_short(value) for value in values])
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axes.set_xlabel(WORDS[name], fontsize=SMALL, color=INK)
            axes.set_ylabel(words, fontsize=SMALL, color=INK)
            axes.minorticks_off()
    _key(figure, lines, GAP + len(names) * (WIDE + GAP) - GAP + 0.15, top - 0.55)
    return save(figure, path)


def _of(rows: Sequence[dict[str, Any]], line: tuple[str, str]) -> list[dict[str, Any]]:
    return [row for row in rows if (row["what"], row["form"]) == line]


def _curve(axes: Any, curve: Sequence[dict[str, Any]], name: str, measure: str, line: tuple[str, str]) -> None:
    style = style_of(line[0])
    axes.plot(
        [row[name] for row in curve],
        [row[measure] for row in curve],
        color=style.color,
        marker=style.marker,
        markersize=5,
        linewidth=1.5,
        linestyle=DASHES[0 if line[1] == "folder" else 2],
    )


def _key(figure: Any, lines: Sequence[tuple[str, str]], left: float, top: float) -> None:
    """Names beside the panels: method and where its records are."""
    for number, (what, form) in enumerate(lines):
        dash = "solid" if form == "folder" else "dotted"
        write(figure, left, top - 0.36 * number, f"{what}", color=style_of(what).text, weight="bold", fontsize=SMALL)
        write(figure, left, top - 0.36 * number - 0.14, f"{form} ({dash})", color=MUTED, fontsize=SMALL - 0.5)


def _short(value: int) -> str:
    """1000000 as 1M."""
    for unit, letter in ((10**6, "M"), (10**3, "k")):
        if value >= unit:
            return f"{value / unit:g}{letter}"
    return str(value)
