"""All tables of some rows: each kind of run has its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphveil.experiments.audit_tables import audit_tables
from graphveil.experiments.forecast_table import forecast_tables
from graphveil.experiments.mutant_table import mutant_tables
from graphveil.experiments.run import REPORTS, TRAINING
from graphveil.experiments.tables import Table, side_by_side, tables


def all_tables(
    rows: Iterable[Mapping[str, Any]], metrics: Sequence[str] = ("test_accuracy",), baseline: str | None = None
) -> list[Table]:
    """Trainings and attacks on reports by promise, several metrics side by side; then audits, forecasts and mutants.

    Beside forecasts, trainings are what was measured: they are in the table of forecasts.
    """
    found = list(rows)
    beside = forecast_tables(found)
    plain = [row for row in found if row["kind"] in ((REPORTS,) if beside else (TRAINING, REPORTS))]
    shown = tables(plain, metrics[0], baseline) if len(metrics) == 1 else side_by_side(plain, metrics)
    return [*shown, *audit_tables(found), *beside, *mutant_tables(found)]
