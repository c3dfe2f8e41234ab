"""Pages that need nothing but themselves: templates, style and script go into one file."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import jinja2

from graphveil import __version__
from graphveil.report.palette import css


@cache
def _environment() -> jinja2.Environment:
    loader = jinja2.FunctionLoader(lambda name: _text(name))
    options: dict[str, Any] = {"autoescape": True, "undefined": jinja2.StrictUndefined, "trim_blocks": True}
    return jinja2.Environment(loader=loader, **options)


def _text(name: str) -> str:
    return (files("graphveil.report") / "templates" / name).read_text("utf-8")


def rendered(template: str, **values: Any) -> str:
    """The page of this template: colours for light and dark paper, style and script inside."""
    common = {"version": __version__, "light": css(False), "dark": css(True)}
    inside = {"style": _text("style.css"), "script": _text("page.js")}
    return _environment().get_template(template).render(**common, **inside, **values)
