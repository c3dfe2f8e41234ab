"""Audit every method, keep the table and the chart, and count false alarms over further seeds.

    python benchmarks/audit.py --out docs/results/audit --seeds 10

Writes ``audit.json``, ``audit.md`` and ``audit.svg`` and prints the table. Seed 0 audits every mode; the other seeds audit
the sound modes, which must all be green.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from audit_report import write_page

from graphveil.audit.accountants import cross_checks
from graphveil.audit.everything import audit_everything
from graphveil.audit.result import Audit
from graphveil.audit.text import cross_check_text, promise_text, table_text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/results/audit"), help="where to write, without ending")
    parser.add_argument("--seeds", type=int, default=10, help="how many seeds in all")
    parser.add_argument("--workers", type=int, default=2, help="processes for the further seeds")
    parser.add_argument("--epsilon", type=float, default=4.0)
    options = parser.parse_args()
    torch.set_num_threads(1)

    started, cpu = time.perf_counter(), time.process_time()
    found = audit_everything(options.epsilon)
    checks = list(cross_checks())
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    print(table_text(found))
    print(cross_check_text(checks), flush=True)
    body: dict[str, Any] = {
        "epsilon": options.epsilon,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu, 1),
        "audits": [audit.to_json() for audit in found],
        "accountants": [check.to_json() for check in checks],
        "sound": [],
    }
    save(options.out, body)
    with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
        further = [pool.submit(sound_audits, options.epsilon, seed) for seed in range(1, options.seeds)]
        note(summary(0, [audit for audit in found if audit.mode == "sound"]), body, options.out)
        for job in as_completed(further):
            note(job.result(), body, options.out)


def note(row: dict[str, Any], body: dict[str, Any], out: Path) -> None:
    """Keep the outcome of one seed."""
    print(f"seed {row['seed']}: {row['audits']} sound audits, {len(row['violations'])} violations found", flush=True)
    body["sound"] = sorted([*body["sound"], row], key=lambda entry: entry["seed"])
    save(out, body)


def sound_audits(epsilon: float, seed: int) -> dict[str, Any]:
    """All sound modes with another seed: graph, noise, coins and neighbours."""
    torch.set_num_threads(1)
    return summary(seed, audit_everything(epsilon, seed=seed, runs=1, modes=("sound",)))


def summary(seed: int, audits: list[Audit]) -> dict[str, Any]:
    red = [f"{audit.method}: {promise_text(audit)}" for audit in audits if audit.violated]
    bound = sum(audit.false_alarm for audit in audits)
    return {"seed": seed, "audits": len(audits), "violations": red, "false_alarm_bound": bound}


def save(out: Path, body: dict[str, Any]) -> None:
    path = out.with_suffix(".json")
    path.write_text(json.dumps(body, indent=1, allow_nan=False, default=str) + "\n", encoding="utf-8")
    write_page(path)


if __name__ == "__main__":
    main()
