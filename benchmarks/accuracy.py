"""Accuracy of DP-MLP against its floors: node level (record, zero-out), one fixed default, mean of 5 seeds, 75/10/15.

    python benchmarks/accuracy.py                     # every data set that is there
    python benchmarks/accuracy.py --data cora --require   # fail if Cora is not there (used by CI)

Prints one JSON object; exit code 1 if a floor is missed, 2 if a required data set is missing.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings

import numpy as np

import graphveil as gv

FLOORS = {  # data set: {epsilon: (floor, best published node-level figure at epsilon 16)}, DPDGC Table 2
    "cora": {4.0: (69.0, 64.3), 16.0: (72.5, 64.3)},
    "amazon-photo": {4.0: (89.5, 85.6)},
    "pubmed": {4.0: (86.2, 85.7)},
}
SEEDS = range(5)


def measure(name: str, epsilon: float) -> list[float]:
    """Test accuracies in percent, one per seed; the seed draws split and noise."""
    accuracies = []
    for seed in SEEDS:
        data = gv.load_dataset(name, seed=seed)
        model = gv.DpMlp().fit(data, gv.NodeLevel(epsilon=epsilon), seed=seed)
        accuracies.append(100 * model.score(data))
    return accuracies


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", action="append", choices=sorted(FLOORS), help="only this data set; repeatable")
    parser.add_argument("--require", action="store_true", help="fail if a data set is not there")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows, missing = [], []
    for name in options.data or FLOORS:
        try:
            gv.load_dataset(name, seed=0)
        except gv.GraphveilError as error:
            missing.append(f"{name}: {error}")
            continue
        for epsilon, (floor, published) in FLOORS[name].items():
            found = measure(name, epsilon)
            mean, spread = float(np.mean(found)), float(np.std(found))
            row = {
                "data": name,
                "epsilon": epsilon,
                "mean": round(mean, 2),
                "std": round(spread, 2),
                "seeds": len(found),
            }
            rows.append(row | {"floor": floor, "published_best_at_16": published, "ok": mean >= floor})
    print(json.dumps({"method": "dp-mlp", "rows": rows, "missing": missing}, indent=2))
    if missing and options.require:
        return 2
    return 0 if all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
