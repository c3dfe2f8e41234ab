"""Small tables for notebooks: what ``_repr_html_`` of facts, plans, figures and models returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

LEFT = ' style="text-align:left;vertical-align:top"'


def table(title: str, rows: Iterable[Sequence[object]], header: Sequence[str] = ()) -> str:
    """A title and rows of text; the first cell of a row names it. Everything is escaped."""
    head = f"<tr>{''.join(f'<th{LEFT}>{escape(name)}</th>' for name in header)}</tr>" if header else ""
    body = ""
    for name, *cells in rows:
        rest = "".join(f"<td{LEFT}>{escape(str(cell))}</td>" for cell in cells)
        body += f"<tr><th{LEFT}>{escape(str(name))}</th>{rest}</tr>"
    return f"<div><strong>{escape(title)}</strong><table>{head}{body}</table></div>"
