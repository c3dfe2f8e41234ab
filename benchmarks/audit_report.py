"""The page ``docs/results/audit.md`` and its chart, written from ``audit.json``; called by ``audit.py``, or alone:

python benchmarks/audit_report.py docs/results/audit.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphveil.audit.text import promise_words
from graphveil.report.audit_chart import audit_plot

HEAD = """# Audit of every method and mode

```
python benchmarks/audit.py --out docs/results/audit --seeds {seeds}
graphveil audit --all --plot audit.svg        # the table alone
```

Epsilon {epsilon:g} (local methods: 1 for each part), delta 1e-4, seed 0, on the generated graph of worst cases; what is done is
in [audit.md](../audit.md). The table took {minutes:.1f} minutes on two shared cores, {cpu:.1f} of processor time. Observed is a
lower bound on epsilon at confidence 0.9999, exact for local methods; raw data in [audit.json](audit.json).

![Claimed, provable and observed epsilon](audit.svg)
"""
RED = """
Where a published row says VIOLATION although observed stays below claimed, a check failed: a release moved by more than declared
(D3, D6), private validation labels chose the epoch (D8), or the noise is accounted for less than it costs (A1, D4, D5).
Released rows and gradients share the budget, so on a graph this small one may be violated without the sum showing it.
"""
ALARMS = """
Sound modes with {seeds} seeds (graph, neighbours, noise and coins drawn anew): {audits} audits, {violations} violations found.
By the confidence levels used, the expected number of false alarms in these audits is at most {bound:.2g}.
"""
MUTANTS = """
Planted bugs are kept in `tests/audit/mutants`; which check catches each is in [mutants.md](mutants.md).
"""


def write_page(path: Path) -> None:
    """Write the Markdown page and the chart beside ``path`` (audit.json)."""
    body = json.loads(path.read_text(encoding="utf-8"))
    audit_plot(body["audits"], path.with_suffix(".svg"))
    path.with_suffix(".md").write_text("\n".join(page(body)) + "\n", encoding="utf-8")


def page(body: dict[str, Any]) -> Iterator[str]:
    spent = {"minutes": body["seconds"] / 60, "cpu": body["cpu_seconds"] / 60}
    yield HEAD.format(epsilon=body["epsilon"], seeds=max(1, len(body["sound"])), **spent)
    columns = ("epsilon_claimed", "epsilon_provable", "epsilon_observed")
    rows = [
        [a["method"], a["mode"], promise_words(a), *(number(a[c]) for c in columns), a["verdict"]]
        for a in body["audits"]
    ]
    yield from table(("method", "mode", "promise", "claimed", "provable", "observed", "verdict"), rows)
    yield RED
    yield "## Known gaps, each on the smallest instance that shows it\n"
    gaps = [
        (a["method"], w["code"], number(w["claimed"]), number(w["epsilon"]), w["how"])
        for a in body["audits"]
        for w in a["witnesses"]
    ]
    yield from table(("method", "gap", "claimed", "loss at least", "instance"), dict.fromkeys(gaps))
    checks = body["accountants"]
    yield f"\n## Accountants\n\n{sum(c['agrees'] for c in checks)} of {len(checks)} cross-checks agree.\n"
    agreed = [(c["name"], f"{c['ours']:.6g}", f"{c['reference']:.6g}") for c in checks]
    yield from table(("check", "ours", "by another way"), agreed)
    sound = body["sound"]
    if sound:
        totals = {
            "seeds": len(sound),
            "audits": sum(row["audits"] for row in sound),
            "violations": sum(len(row["violations"]) for row in sound),
            "bound": sum(row["false_alarm_bound"] for row in sound),
        }
        yield "\n## False alarms"
        yield ALARMS.format(**totals)
    yield MUTANTS


def table(head: tuple[str, ...], rows: Any) -> Iterator[str]:
    for cells in (head, ("---",) * len(head), *rows):
        yield f"| {' | '.join(str(cell) for cell in cells)} |"


def number(value: float | None) -> str:
    return "infinite" if value is None else f"{value:.4g}"


if __name__ == "__main__":
    write_page(Path(sys.argv[1]))
