"""Writes ``docs/results/mutants.md``: which check of the suite and of ``graphveil audit`` catches each mutant, and healthy seeds.

    python -m tests.audit.mutants.table [--out docs/results/mutants.md]

Every mutant is audited as ``graphveil audit`` would, with fewer draws and without the one-run audit; mutants of the accounting
also against the cross-checks of ``graphveil audit --all``. Ends with an error if a mutant that should be seen is not, or a
healthy method is called violated.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphveil.audit import audit_method
from graphveil.audit.accountants import cross_checks
from graphveil.audit.result import Audit
from graphveil.privacy.local import Local
from tests.audit.mutants import MUTANTS, Mutant

SEEDS = range(10)
HEAD = """# Mutants

Privacy bugs, each planted in the library (`tests/audit/mutants/`), and what catches it. *Suite*: the cheapest check that
`tests/audit/test_mutants.py` runs against it. *Audit*: the checks of `graphveil audit` that fail (*bound*: an observed
epsilon above the claim; *cross-check*: the accountants of `--all` disagree). Made by `python -m tests.audit.mutants.table`.

| part | mutant | planted in | suite | audit |
|---|---|---|---|---|"""


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


def rows(missed: list[str]) -> Iterator[str]:
    for mutant in MUTANTS:
        with mutant.plant():
            seen = seen_by_the_audit(mutant)
        if bool(seen) == bool(mutant.unseen):
            missed.append(mutant.name)
        where = f"`{mutant.method().name}`"
        shown = ", ".join(seen) or f"not seen: {mutant.unseen}"
        print(f"{mutant.name}: {shown}", file=sys.stderr, flush=True)
        yield f"| {mutant.area} | {mutant.name} | {where} | {mutant.suite} | {shown} |"


def healthy(missed: list[str]) -> Iterator[str]:
    """Every method and promise of the list without a bug, over ten seeds."""
    chosen = {(mutant.method.__name__, str(mutant.promise)): mutant for mutant in MUTANTS}
    violated = [
        f"{name}, seed {seed}"
        for (name, _), mutant in chosen.items()
        for seed in SEEDS
        if audited(mutant.method(), mutant.promise, mutant.samples, seed).violated
    ]
    missed += violated
    yield f"\nWithout a bug: {len(chosen)} methods and promises over {len(SEEDS)} seeds, {len(violated)} called violated."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/results/mutants.md"))
    warnings.simplefilter("ignore")
    missed: list[str] = []
    lines = [HEAD, *rows(missed)]
    unseen = sum(bool(mutant.unseen) for mutant in MUTANTS)
    lines.append(f"\n{len(MUTANTS)} mutants: all caught by the suite, {len(MUTANTS) - unseen} by an audit.")
    lines += healthy(missed)
    parser.parse_args().out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if missed:
        sys.exit(f"not as the list says: {', '.join(missed)}")


if __name__ == "__main__":
    main()
