"""Forecasts beside measured accuracies (docs/forecast.md):

    export GRAPHVEIL_DATA=<folder of data sets> DATA=cora,amazon-photo,pubmed,facebook-pages,chameleon
    graphveil compare --methods ballot,roster --data $DATA --epsilons 1,2,4,8,16 --seeds 900-902 --csv measured.csv
    python benchmarks/forecast.py measured.csv --out docs/results/forecast.json

Sizes and homophily come from the registry; forecasts read nothing of the graphs. What --out has already is not repeated.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from collections import defaultdict
from pathlib import Path

from graphveil.experiments.engines.serial import Serial
from graphveil.experiments.forecast import forecast
from graphveil.experiments.guesses import Guesses
from graphveil.graph import cards
from graphveil.methods.registry import build
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.promise import NodeLevel

EPSILONS = (1, 2, 4, 8, 16)
DATA = ("cora", "amazon-photo", "chameleon", "facebook-pages", "pubmed")
STATED = ("homophily", "nothing")


def measured(path: Path) -> dict[tuple[str, str, float], float]:
    """Mean test accuracy by data set, method and epsilon."""
    found = defaultdict(list)
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            key = row["dataset"], row["method"], float(row["epsilon_target"])
            found[key].append(float(row["metrics.test_accuracy"]))
    return {key: sum(values) / len(values) for key, values in found.items()}


def bands(name: str, method: str, stated: str, scenarios: int) -> dict:
    """The forecast for the sizes of a data set, with its true homophily or with nothing stated."""
    card = cards()[name]
    facts = PublicFacts(card.nodes, card.features, card.classes)
    guesses = Guesses.about(facts, homophily=str(card.homophily) if stated == "homophily" else None)
    started = time.process_time()
    found = forecast(build(method, {}), [NodeLevel(e) for e in EPSILONS], facts, guesses, Serial(), scenarios=scenarios)
    keys = {"data": name, "method": method, "stated": stated, "scenarios": scenarios}
    seconds = round(time.process_time() - started, 1)
    return keys | {"cpu_seconds": seconds, "bands": [band.to_json() for band in found.bands]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("measured", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", nargs="+", default=DATA)
    parser.add_argument("--methods", nargs="+", default=("ballot", "roster"))
    parser.add_argument("--stated", nargs="+", default=STATED)
    parser.add_argument("--scenarios", type=int, default=12)
    asked = parser.parse_args()
    kept = json.loads(asked.out.read_text()) if asked.out.exists() else []
    known = {(entry["data"], entry["method"], entry["stated"]) for entry in kept}
    for stated in asked.stated:
        for name in asked.data:
            for method in asked.methods:
                if (name, method, stated) not in known:
                    kept.append(bands(name, method, stated, asked.scenarios))
                    asked.out.write_text(json.dumps(kept, indent=1) + "\n")
                    print(name, method, stated, kept[-1]["cpu_seconds"], "s", file=sys.stderr, flush=True)
    show(kept, measured(asked.measured))


def show(kept: list[dict], reached: dict[tuple[str, str, float], float]) -> None:
    """One line per data set, method and what was stated; measured accuracies outside the band are bold."""
    inside, widths = defaultdict(list), defaultdict(list)
    print("| data, method | stated | " + " | ".join(f"epsilon {e}" for e in EPSILONS) + " |")
    print("|---|---|" + "---|" * len(EPSILONS))
    for entry in kept:
        cells = []
        for band in entry["bands"]:
            mean = reached[entry["data"], entry["method"], band["epsilon"]]
            held = band["low"] <= mean <= band["high"]
            inside[entry["stated"]].append(held)
            widths[entry["stated"], band["epsilon"]].append(band["high"] - band["low"])
            figure = f"{100 * mean:.1f}" if held else f"**{100 * mean:.1f}**"
            cells.append(f"{figure} in {100 * band['low']:.0f}-{100 * band['high']:.0f}")
        print(f"| {entry['data']}, {entry['method']} | {entry['stated']} | " + " | ".join(cells) + " |")
    for stated, held in inside.items():
        wide = ", ".join(f"{100 * sum(w) / len(w):.0f}" for e in EPSILONS for w in [widths[stated, e]])
        print(f"\nstated {stated}: {sum(held)} of {len(held)} inside; mean width of the band by epsilon: {wide} points")


if __name__ == "__main__":
    main()
