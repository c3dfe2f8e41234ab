"""Writes the rows of ``docs/results/mutants.jsonl``: which check of the suite and of ``graphveil audit`` catches each mutant.

    python -m tests.audit.mutants.table [--out docs/results/mutants.jsonl] [--missing]
    graphveil report docs/results                                             # makes the page of them

Every mutant is audited as ``graphveil audit`` would, with fewer draws and without the one-run audit; mutants of the accounting
also against the cross-checks of ``graphveil audit --all``. Ends with an error if a mutant that should be seen is not, or a
healthy method is called violated. ``--missing`` keeps the rows that are there and adds those that are in the list and not there.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from graphveil import __version__
from graphveil.audit import audit_method
from graphveil.audit.accountants import cross_checks
from graphveil.audit.result import Audit
from graphveil.experiments.audits import WORST_CASES
from graphveil.experiments.export import read_rows, write_rows
from graphveil.experiments.mutant_table import HEALTHY, MUTANT
from graphveil.experiments.run import promise_fields
from graphveil.experiments.summary import PARTS
from graphveil.privacy.local import Local
from tests.audit.mutants import MUTANTS, Mutant

SEEDS = range(10)


def audited(method: Any, promise: Any, samples: int, seed: int = 0) -> Audit:
    quick = {} if isinstance(promise, Local) else {"samples": samples, "outside": False}
    return audit_method(method, promise, runs=1, seed=seed, **quick)


def seen_by_the_audit(mutant: Mutant) -> list[str]:
    """The names of the checks of an audit that fail."""
    found = audited(mutant.method(), mutant.promise, mutant.samples)
    names = dict.fromkeys(failure.check for failure in found.failures)
    if found.observed > found.claimed * (1 + 1e-9) + 1e-9:
        names["bound"] = None
    if mutant.suite == "accountants" and not all(check.agrees for check in cross_checks()):
        names["cross-check"] = None
    return list(names)


def row(kind: str, mutant: Mutant, label: str, **more: Any) -> dict[str, Any]:
    """The fields that every row has."""
    method, promise = mutant.method(), promise_fields(mutant.promise)
    told = {name: promise.get(name) for name in ("level", "adjacency", "relation", "k", "max_degree", "delta")}
    return {
        "id": f"{kind}/{label}",
        "kind": kind,
        "experiment": "mutants",
        "method": method.name,
        "mode": method.mode,
        "label": label,
        "dataset": WORST_CASES,
        **told,
        "epsilon_target": None if promise["level"] == "local" else promise["epsilon"],
        "parts": {part: promise[part] for part in PARTS} if promise["level"] == "local" else None,
        "version": __version__,
        **more,
    }


def mutants(missed: list[str], there: Collection[str]) -> Iterator[dict[str, Any]]:
    for mutant in MUTANTS:
        if f"{MUTANT}/{mutant.name}" in there:
            continue
        with mutant.plant():
            seen = seen_by_the_audit(mutant)
        if bool(seen) == bool(mutant.unseen):
            missed.append(mutant.name)
        print(f"{mutant.name}: {', '.join(seen) or f'not seen: {mutant.unseen}'}", file=sys.stderr, flush=True)
        details = {"part": mutant.area, "suite": mutant.suite, "seen": seen, "unseen": mutant.unseen}
        yield row(MUTANT, mutant, mutant.name, details=details)


def healthy(missed: list[str], there: Collection[str]) -> Iterator[dict[str, Any]]:
    """Every method and promise of the list without a bug, over ten seeds."""
    chosen = {f"{mutant.method.__name__}, {mutant.promise}": mutant for mutant in MUTANTS}
    for label, mutant in chosen.items():
        if f"{HEALTHY}/{label}" in there:
            continue
        violated = [s for s in SEEDS if audited(mutant.method(), mutant.promise, mutant.samples, s).violated]
        missed += [f"{label}, seed {seed}" for seed in violated]
        yield row(HEALTHY, mutant, label, metrics={"audits": len(SEEDS), "violated": len(violated)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/results/mutants.jsonl"))
    parser.add_argument("--missing", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    missed: list[str] = []
    kept = read_rows(asked.out) if asked.missing else []
    there = {row["id"] for row in kept}
    rows = [*kept, *mutants(missed, there), *healthy(missed, there)]
    order = [mutant.name for mutant in MUTANTS]
    place = lambda row: (row["kind"] == HEALTHY, order.index(row["label"]) if row["label"] in order else 0)
    write_rows(sorted(rows, key=place), asked.out)
    if missed:
        sys.exit(f"not as the list says: {', '.join(missed)}")


if __name__ == "__main__":
    main()
