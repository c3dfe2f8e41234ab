"""Audits as tables: what was claimed, proved and observed, the instances of known gaps, and whether accountants agree."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphveil.audit.text import promise_words
from graphveil.experiments.run import AUDIT, CHECKS
from graphveil.experiments.summary import PROMISE
from graphveil.experiments.tables import Table

Row = Mapping[str, Any]
LIMITS = "an audit can find violations, it cannot prove that there are none; observed is a lower bound on epsilon"
LARGEST = "over seeds: the largest observed epsilon, and a violation if one seed found one"
HEAD = ("method", "mode", "promise", "claimed", "provable", "observed", "verdict", "seeds")


def audit_tables(rows: Iterable[Row]) -> list[Table]:
    """Of the audits and cross-checks among the rows; nothing if there are none."""
    kept = [row for row in rows if row["status"] == "done"]
    audits = [row for row in kept if row["kind"] == AUDIT]
    checks = [check for row in kept if row["kind"] == CHECKS for check in row["details"]["checks"]]
    found = [_outcomes(audits), *_instances(audits)] if audits else []
    return found + ([_accountants(checks)] if checks else [])


def number(value: float | None, none: str = "infinite") -> str:
    return none if value is None else f"{value:.4g}"


def observed(row: Row) -> float | None:
    """None: no bound can hold."""
    value: float | None = row["metrics"]["epsilon_observed"]
    return value


def over_seeds(audits: Iterable[Row]) -> list[list[Row]]:
    """Audits that differ in their seed only, in order of appearance."""
    found: dict[str, list[Row]] = {}
    for row in audits:
        key = json.dumps([row[name] for name in ("method", "mode", "options", "parts", *PROMISE)], sort_keys=True)
        found.setdefault(key, []).append(row)
    return list(found.values())


def _outcomes(audits: Sequence[Row]) -> Table:
    body = []
    for mine in over_seeds(audits):
        seen = [observed(row) for row in mine]
        most = None if None in seen else max(value for value in seen if value is not None)
        red = next((row["details"]["verdict"] for row in mine if row["metrics"]["violated"]), None)
        told = (
            mine[0]["label"].removesuffix(" (published)"),
            mine[0]["mode"],
            promise_words(dict(mine[0]) | (mine[0]["parts"] or {})),
        )
        figures = (number(mine[0]["epsilon_claimed"]), number(mine[0]["epsilon"]), number(most))
        body.append((*told, *figures, red or mine[0]["details"]["verdict"], str(len(mine))))
    sound = [row for row in audits if row["mode"] == "sound"]
    bound = sum(row["metrics"]["false_alarm_rate"] for row in sound)
    violated = sum(int(row["metrics"]["violated"]) for row in sound)
    alarms = (
        f"sound modes: {len(sound)} audits over {len({row['seed'] for row in sound})} seeds, {violated} violations found; by "
        f"the confidence levels used at most {bound:.2g} false alarms are expected"
    )
    return Table("claimed, provable and observed epsilon", HEAD, tuple(body), (LARGEST, alarms, LIMITS))


def _instances(audits: Sequence[Row]) -> list[Table]:
    lines = [
        (
            row["method"],
            witness["code"] or "",
            number(witness["claimed"], ""),
            number(witness["epsilon"]),
            witness["how"],
        )
        for row in audits
        for witness in row["details"]["witnesses"]
    ]
    head = ("method", "gap", "claimed", "loss at least", "instance")
    title = "known gaps, each on the smallest instance that shows it"
    return [Table(title, head, tuple(dict.fromkeys(lines)))] if lines else []


def _accountants(checks: Sequence[Mapping[str, Any]]) -> Table:
    agreed = sum(check["agrees"] for check in checks)
    lines = tuple((check["name"], f"{check['ours']:.6g}", f"{check['reference']:.6g}") for check in checks)
    return Table(f"accountants: {agreed} of {len(checks)} agree", ("check", "ours", "by another way"), lines)
