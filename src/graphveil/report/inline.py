"""A picture inside a page: its own SVG, in the colours and the font of the page."""

from __future__ import annotations

import html
import io
import re

from matplotlib import rc_context
from matplotlib.figure import Figure

from graphveil.report.palette import in_variables


def svg_of(figure: Figure, name: str, words: str) -> str:
    """The picture as an element: ``name`` makes its ids unlike those of other pictures, ``words`` are read to the blind."""
    text = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    body = text.getvalue()
    body = body[body.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', body)
    body = re.sub(r'(href="#|url\(#)', rf"\1{name}-", body)
    head, rest = body.split(">", 1)  # without width and height, a picture is as wide as its place
    head = re.sub(r' (width|height)="[^"]*"', "", head)
    told = html.escape(words, quote=True)
    head = head.replace("<svg ", f'<svg role="img" aria-label="{told}" ', 1)
    return in_variables(f"{head}>{rest}").strip()
