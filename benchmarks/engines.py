"""One sweep with every engine: the same figures, and how much faster two processes are than one.

    python benchmarks/engines.py [--engines serial process ray] [--workers 2]

3 methods x 2 data sets x 3 epsilons x 3 seeds on generated graphs. Prints a Markdown table; exit code 1 if two engines disagree.
Starting workers costs a few seconds each: the longer the runs, the nearer the ratio comes to the number of workers (2 cores: 1.82
for this sweep of 86 s; with graphs of a third of the size, 28 s in all, 1.2 to 1.3).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from graphveil.experiments import Store, expand, sweep
from graphveil.experiments.engines.choose import ENGINES, choose
from graphveil.experiments.read import experiment_from

BODY = {
    "name": "engines",
    "methods": ["roster", "ballot", {"name": "gap", "options": {"steps": 200}}],
    "data": [
        {"name": "powerlaw-sbm", "options": {"nodes": 60000, "features": 64, "classes": 5}},
        {"name": "csbm", "options": {"nodes": 60000, "features": 64}},
    ],
    "promises": [{"level": "node"}],
    "epsilons": [1, 4, 16],
    "seeds": 3,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=["serial", "process"])
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    runs = expand(experiment_from(BODY, "engines.py"))
    print("| engine | seconds | faster than the first |\n|---|---|---|", flush=True)
    first: float | None = None
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.engines:
            with Store(Path(folder) / f"{name}.sqlite") as store:
                started = time.perf_counter()
                sweep("engines", runs, store, choose(name, options.workers))
                seconds = time.perf_counter() - started
                outcomes.append({row["id"]: (row["status"], row["metrics"]) for row in store.rows()})
            first = first or seconds
            print(f"| {name} | {seconds:.1f} | {first / seconds:.2f} |", flush=True)
    agree = all(found == outcomes[0] for found in outcomes)
    done = sum(status == "done" for status, _ in outcomes[0].values())
    print(f"\n{done} of {len(runs)} runs done; figures are {'the same' if agree else 'DIFFERENT'} on all engines")
    return 0 if agree and done == len(runs) else 1


if __name__ == "__main__":
    sys.exit(main())
