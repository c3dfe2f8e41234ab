"""A forecast as a picture: the median and both ends of the band against epsilon."""

from __future__ import annotations

import math
from pathlib import Path

from graphveil.errors import InputError
from graphveil.experiments.forecast import QUANTILES, Forecast
from graphveil.experiments.summary import Group
from graphveil.experiments.tables import promise_title


def draw(found: Forecast, path: Path) -> None:
    """Three lines, named where they end; what is reached without noise stands at the right."""
    from graphveil.report.panel import Panel, Series, draw_sheet

    bands = {band.epsilon: band for band in found.bands if band.epsilon is not None and math.isfinite(band.epsilon)}
    if not bands:
        raise InputError("--plot draws accuracy against epsilon: this promise has none")
    open_ones = [band for band in found.bands if band.epsilon is None]
    low, high = (f"{100 * share:g} %" for share in QUANTILES)
    series = []
    for variant, (name, part) in enumerate((("median", "median"), (high, "high"), (low, "low"))):
        values = {epsilon: [getattr(band, part)] for epsilon, band in bands.items()}
        ceiling = [getattr(band, part) for band in open_ones] if part == "median" else []
        series.append(Series(name, found.method.name, values, ceiling, min(variant, 1)))
    graphs = len({row["seed"] for row in found.rows})
    drawn = f"splits of {found.stand_in}" if found.stand_in else "generated graphs"
    notes = [f"quantiles over {graphs} {drawn}; nothing private was read"]
    notes += ["dashed at the right: without noise"] if open_ones else []
    panel = Panel(found.method.name, "test accuracy, %", series, promise_title(Group((found.rows[0],))))
    draw_sheet([panel], path, "Forecast", notes)
