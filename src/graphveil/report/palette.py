"""One colour and one marker per method, in every picture; one line style per variant of a method.

The hues are those of Okabe and Ito (2008), with a wine red and a dark olive, so that they stay apart for readers who confuse red
and green. Colour is never alone: the marker differs as well, and lines are named where they end. Imports nothing heavy: pages
without pictures use it, too. Tests: ``tests/report/test_palette.py``.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

INK, MUTED, GRID, PAPER, ALARM = "#1b1f24", "#5b6470", "#dfe3e8", "#ffffff", "#b3261e"
HUES = {  # name: (light paper, dark paper, text on light paper)
    "blue": ("#0072b2", "#4aa8e0", "#00629a"),
    "vermilion": ("#d55e00", "#f08043", "#a84a00"),
    "green": ("#009e73", "#2fc79b", "#00704f"),
    "purple": ("#cc79a7", "#dd95bd", "#9c3f72"),
    "orange": ("#e69f00", "#f0b53d", "#8a5f00"),
    "sky": ("#56b4e9", "#83cbf5", "#1f71a3"),
    "wine": ("#882255", "#c8628f", "#7c1f4e"),
    "olive": ("#4d4d00", "#bcbc58", "#474700"),
    "grey": ("#6e6e6e", "#a8a8a8", "#565656"),
}
DARK_ROLES = {INK: "#e8eaed", MUTED: "#a5adb8", GRID: "#353b44", PAPER: "#16191e", ALARM: "#ff8a80"}
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.6, 1.2, 1.6)), (0, (1.4, 1.4)), (0, (7, 2)))
SPARE_MARKERS = "osD^vXPh<>pd*"


@dataclass(frozen=True)
class Style:
    """How a method is drawn: a hue and a marker."""

    hue: str
    marker: str

    @property
    def color(self) -> str:
        return HUES[self.hue][0]

    @property
    def text(self) -> str:
        return HUES[self.hue][2]


STYLES = {
    "ballot": Style("blue", "o"),
    "gap": Style("vermilion", "s"),
    "dp-mlp": Style("green", "^"),
    "dpdgc": Style("purple", "D"),
    "roster": Style("wine", "P"),
    "dpar": Style("orange", "v"),
    "nip-gnn": Style("sky", "X"),
    "dp-sage": Style("olive", "<"),
    "edge-rand": Style("orange", "h"),
    "local": Style("blue", "p"),
    "lpgnn": Style("green", "D"),
    "graph-privatizer": Style("vermilion", "v"),
    "rr-edges": Style("orange", "s"),
    "lga-pgnn": Style("purple", "o"),
    "ldp-gnn": Style("sky", "^"),
    "lap-gnn": Style("olive", "X"),
    "rand-gnn": Style("wine", "<"),
    "random-features-gnn": Style("wine", ">"),
    "degree-gnn": Style("olive", "h"),
    "mlp": Style("grey", "^"),
    "sage": Style("grey", "s"),
    "gcn": Style("grey", "o"),
    "sgc": Style("grey", "D"),
    "linkx": Style("grey", "v"),
    "direction": Style("sky", "o"),  # what an attacker on reports holds
    "multi-bit": Style("vermilion", "D"),
    "clean": Style("grey", "P"),
}


def style_of(method: str) -> Style:
    """The style of a method; one that is not ours gets a hue and a marker by its name, the same ones every time."""
    if method in STYLES:
        return STYLES[method]
    code = zlib.crc32(method.encode())
    hues = [hue for hue in HUES if hue != "grey"]
    taken = {(style.hue, style.marker) for style in STYLES.values()}
    free = [Style(hue, marker) for marker in SPARE_MARKERS for hue in hues if (hue, marker) not in taken]
    return free[code % len(free)]


def in_variables(svg: str) -> str:
    """An SVG whose colours are names that a page defines once for light and once for dark paper."""
    for color, name in variables().items():
        svg = svg.replace(color, f"var({name})")
    return svg


def variables() -> dict[str, str]:
    """The CSS variable of every colour used in pictures."""
    names = {INK: "--ink", MUTED: "--muted", GRID: "--grid", PAPER: "--paper", ALARM: "--alarm"}
    for hue, (light, _, text) in HUES.items():
        names |= {light: f"--{hue}", text: f"--{hue}-text"}
    return names


def css(dark: bool) -> str:
    """The definitions of these variables, for light or for dark paper."""
    shown = {} if not dark else dict(DARK_ROLES)
    if dark:
        for light, on_dark, text in HUES.values():
            shown |= {light: on_dark, text: on_dark}
    return "".join(f"{name}:{shown.get(color, color)};" for color, name in variables().items())
