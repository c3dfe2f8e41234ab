"""Audits in words and as one table."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from graphveil.audit.accountants import CrossCheck
from graphveil.audit.result import Audit, Evidence

LIMITS = "An audit can find violations; it cannot prove that there are none. Observed is a lower bound on epsilon."
HEAD = ("method", "mode", "promise", "claimed", "provable", "observed", "verdict")


def number(value: float) -> str:
    return "infinite" if math.isinf(value) else f"{value:.4g}"


def promise_text(audit: Audit) -> str:
    return promise_words(audit.promise)


def promise_words(body: Mapping[str, Any]) -> str:
    """The promise of an audit, or of its JSON."""
    if body["level"] == "local":
        return "local: " + ", ".join(f"{part} {body[part]}" for part in ("features", "labels", "edges"))
    extra = f", k = {body['k']}" if body.get("k") else f", D = {body['max_degree']}" if body.get("max_degree") else ""
    return f"{body['level']} / {body['adjacency']} / {body['relation']}{extra}"


def table_text(audits: Sequence[Audit]) -> str:
    """One row per audit, then what the published modes' own instances show."""
    rows = [HEAD]
    for audit in audits:
        shown = (number(audit.claimed), number(audit.provable), number(audit.observed))
        rows.append((audit.method, audit.mode, promise_text(audit), *shown, audit.verdict))
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEAD))]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    shown_instances = [f"  {audit.method}: {_evidence(entry)}" for audit in audits for entry in audit.witnesses]
    if shown_instances:
        lines += ["", "Known gaps of published modes, on instances of their own:", *dict.fromkeys(shown_instances)]
    return "\n".join([*lines, "", LIMITS])


def cross_check_text(checks: Sequence[CrossCheck]) -> str:
    """Which ways of accounting agree."""
    disagree = [check for check in checks if not check.agrees]
    wrong = [f"  {check.name}: {check.ours:.6g}, by another way {check.reference:.6g}" for check in disagree]
    head = f"Accounting: {len(checks) - len(wrong)} of {len(checks)} cross-checks agree with another way of computing."
    return "\n".join([head, *wrong])


def report_text(audit: Audit) -> str:
    """Everything about one audit."""
    delta = audit.promise.get("delta") or 0.0
    lines = [
        f"AUDIT   {audit.method} ({audit.mode}), {promise_text(audit)}, delta {delta:g}",
        f"  Data        {audit.data}",
        f"  Claimed     epsilon {number(audit.claimed)}",
        f"  Provable    epsilon {number(audit.provable)}",
        f"  Observed    epsilon at least {number(audit.observed)}",
        f"  Verdict     {audit.verdict}",
    ]
    if audit.shares:
        lines.append("  Releases    largest change over all neighbours, and the declared bound")
        lines += [f"              {s.name}: {s.measured:.4g} of {s.declared:.4g}" for s in audit.shares]
    lines += [f"  Evidence    {_evidence(entry)}" for entry in audit.evidence]
    lines += [f"  Accounting  {_evidence(entry)}" for entry in audit.accounting]
    lines += [f"  Instance    {_evidence(entry)}" for entry in audit.witnesses]
    for entry in audit.to_json()["failures"]:
        where = f" {entry['release']}" if entry["release"] else ""
        lines.append(f"  FAILED      {entry['check']}{where} ({entry['count']} times): {entry['first']}")
    lines += [f"  Gaps        {', '.join(audit.codes)}"] if audit.codes else []
    lines += [f"  Checked     {line}" for line in audit.checks]
    lines += [f"  Note        {line}" for line in audit.notes]
    lines.append(
        f"  False alarm a faultless method is called violated with probability at most {audit.false_alarm:.1e}"
    )
    return "\n".join(part for line in lines for part in textwrap.wrap(line, 140, subsequent_indent=" " * 14))


def _evidence(entry: Evidence) -> str:
    code = f"{entry.code}: " if entry.code else ""
    claim = "" if entry.claim is None else f" for a claim of {number(entry.claim)}"
    sure = "exact" if entry.confidence == 1 else f"confidence {entry.confidence:g}"
    return f"{code}{entry.name}: epsilon >= {number(entry.epsilon)}{claim} ({sure}); {entry.how}"
