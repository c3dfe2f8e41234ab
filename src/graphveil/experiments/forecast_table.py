"""Forecasts beside what was measured: inside the band, or not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from graphveil.experiments.run import FORECAST, TRAINING
from graphveil.experiments.summary import PROMISE
from graphveil.experiments.tables import EXACT, Table

Row = Mapping[str, Any]
TITLE = "measured accuracy in the band that was forecast, %"


def forecast_tables(rows: Iterable[Row]) -> list[Table]:
    """One line per data set, method and what was stated, a column per epsilon; nothing if there is no forecast."""
    done = [row for row in rows if row["status"] == "done"]
    forecasts = [row for row in done if row["kind"] == FORECAST]
    if not forecasts:
        return []
    measured: dict[Any, list[float]] = {}
    for row in done:
        if row["kind"] == TRAINING and row["metrics"].get("test_accuracy") is not None:
            measured.setdefault(_key(row), []).append(row["metrics"]["test_accuracy"])
    epsilons = sorted({row["epsilon_target"] for row in forecasts})
    lines: dict[tuple[str, ...], dict[float, str]] = {}
    inside: dict[str, list[bool]] = {}
    widths: dict[tuple[str, float], list[float]] = {}
    for row in forecasts:
        stated, epsilon = row["details"]["stated"], row["epsilon_target"]
        low, high = row["metrics"]["forecast_low"], row["metrics"]["forecast_high"]
        band = f"{100 * low:.0f}-{100 * high:.0f}"
        widths.setdefault((stated, epsilon), []).append(high - low)
        known = measured.get(_key(row))
        if known:
            mean = float(np.mean(known))
            held = low <= mean <= high
            inside.setdefault(stated, []).append(held)
            band = f"{100 * mean:.1f} {'in' if held else 'OUTSIDE'} {band}"
        lines.setdefault((row["dataset"], row["method"], stated), {})[epsilon] = band
    head = ("data", "method", "stated", *(f"epsilon {epsilon:g}" for epsilon in epsilons))
    body = tuple((*told, *(cells.get(epsilon, "") for epsilon in epsilons)) for told, cells in lines.items())
    notes = [_summary(stated, held, widths, epsilons) for stated, held in inside.items()]
    return [Table(TITLE, head, body, (*notes, EXACT))]


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("dataset", "method", "mode", "epsilon_target", *PROMISE))


def _summary(stated: str, held: list[bool], widths: Mapping[tuple[str, float], list[float]], epsilons: Any) -> str:
    wide = ", ".join(f"{100 * np.mean(widths[stated, e]):.0f}" for e in epsilons if (stated, e) in widths)
    return f"{stated} stated: {sum(held)} of {len(held)} inside; mean width of the band by epsilon: {wide} points"
