"""What a dashboard shows of a collection: counts, rounds, jobs, quality, the certificate in words, and budgets.

All of it is about reports or computed from them, and is no more than what the certificate declares public.
Tests: ``tests/service/test_dashboard.py``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from graphveil.exchange.protocol import Protocol
from graphveil.exchange.wire import FIRST
from graphveil.privacy.certificate import Certificate
from graphveil.privacy.local import Openness, Part
from graphveil.service.jobs import jobs_of, last_done
from graphveil.service.schema import arrivals, broadcasts, collections, owners, refusals
from graphveil.service.store import Store

MINUTES = 60  # of arrivals that are shown
MOST_ATTACKS = 20
PAID_BY_RECORDS = (
    "A record pays when its report is drawn, once for every stage it answers; the same report again costs nothing. Training and "
    "scores ask nobody anything new and spend nothing."
)


def summary_of(store: Store, number: int, protocol: Protocol) -> dict[str, Any]:
    """Everything at once; a few questions to the store, none of which reads a report."""
    with store.reading() as connection:
        state = connection.execute(select(collections.c.state).where(collections.c.id == number)).scalar_one()
        people = connection.execute(select(func.count()).where(owners.c.collection == number)).scalar_one()
        holders = select(func.count(owners.c.holder.distinct())).where(owners.c.collection == number)
        counted = connection.execute(holders).scalar_one()
        each = arrivals.c
        arrived = connection.execute(
            select(each.stage, each.minute, each.reports).where(each.collection == number)
        ).all()
        bad = refusals.c
        refused = connection.execute(
            select(bad.stage, bad.reason, bad.reports).where(bad.collection == number).order_by(bad.reports.desc())
        ).all()
        told = broadcasts.c
        asked = {row.stage for row in connection.execute(select(told.stage).where(told.collection == number))}
    by_minute: dict[int, int] = {}
    by_stage: dict[str, int] = {}
    for row in arrived:
        by_minute[row.minute] = by_minute.get(row.minute, 0) + row.reports
        by_stage[row.stage] = by_stage.get(row.stage, 0) + row.reports
    newest = sorted(by_minute)[-MINUTES:]
    return {
        "name": protocol.name,
        "method": protocol.method,
        "state": state,
        "people": people,
        "holders": counted,
        "reports": sum(by_minute.values()),
        "arrivals": [{"minute": minute, "reports": by_minute[minute]} for minute in newest],
        "refused": [{"stage": row.stage, "reason": row.reason, "reports": row.reports} for row in refused],
        "rounds": [_round(protocol, name, by_stage.get(name, 0), asked) for name in protocol.stages],
        "budgets": [_budget(protocol, part, asked) for part in Part],
        "paid": [_paid(protocol, name, by_stage.get(name, 0)) for name in protocol.stages],
        "paid_words": PAID_BY_RECORDS,
        "jobs": [_job(row) for row in jobs_of(store, number)[:5]],
        "model": _model(store, number),
    }


def _round(protocol: Protocol, name: str, reports: int, asked: set[str]) -> dict[str, Any]:
    stage = protocol.stage(name)
    later = protocol.stages[protocol.stages.index(name) + 1 :]
    state = "over" if asked & {*later} else "open" if name == FIRST or name in asked else "not asked yet"
    what = [f"{round.name}: {round.randomizer.words()}" for round in stage.rounds]
    what += [f"{part.value}: in the clear" for part in Part if stage.raw(part)]
    return {"name": name, "state": state, "reports": reports, "asks": what}


def _budget(protocol: Protocol, part: Part, asked: set[str]) -> dict[str, Any]:
    """What a part may cost each person, and what the rounds asked so far have cost who answered all of them."""
    allowed = protocol.promise.budget(part)
    if isinstance(allowed, Openness):
        told = part in protocol.tells
        return {"part": part.value, "allowed": allowed.value, "spent": None, "left": None, "told": told}
    rounds = [round for round in protocol.rounds if round.part is part and (not round.hears or round.name in asked)]
    spent = sum(round.randomizer.cost for round in rounds)
    return {"part": part.value, "allowed": allowed, "spent": spent, "left": max(allowed - spent, 0.0), "told": False}


def _paid(protocol: Protocol, name: str, records: int) -> dict[str, Any]:
    """What every record pays that answers all of a stage, and how many have answered."""
    return {"stage": name, "epsilon": stage_cost(protocol, name), "records": records}


def stage_cost(protocol: Protocol, name: str, *, labelled: bool = True) -> float:
    """The epsilon of one record that answers what a stage asks; who has no label does not pay for one."""
    rounds = protocol.stage(name).rounds
    return float(sum(one.randomizer.cost for one in rounds if labelled or one.part is not Part.LABELS))


def _job(row: Any) -> dict[str, Any]:
    names = ("id", "state", "step", "done", "total", "message", "attempts")
    return {name: getattr(row, name) for name in names}


def _model(store: Store, number: int) -> dict[str, Any] | None:
    row = last_done(store, number)
    if row is None:
        return None
    certificate = Certificate.from_json(json.loads(row.certificate))
    return {
        "job": row.id,
        "figures": json.loads(row.figures),
        "epsilon": certificate.epsilon,
        "holds": certificate.holds,
        "words": str(certificate).splitlines(),
        "warnings": list(certificate.warnings),
        "attacks": attacks_of(store.folder / row.run / "attacks"),
    }


def attacks_of(folder: Path) -> list[dict[str, Any]]:
    """What 'graphveil attack --json' said about a run, for every file that was put beside it."""
    found = []
    for path in sorted(folder.glob("*.json"))[:MOST_ATTACKS]:
        try:
            body = json.loads(path.read_text(encoding="utf-8"))
            first = body["findings"][0]
            auc = first["auc"]
            found.append(
                {
                    "attack": str(body["attack"]),
                    "variant": str(first["name"]),
                    "auc": float(auc["value"]),
                    "low": float(auc["low"]),
                    "high": float(auc["high"]),
                }
            )
        except (OSError, ValueError, LookupError, TypeError):
            found.append({"attack": path.stem, "variant": "cannot be read", "auc": None, "low": None, "high": None})
    return found
