"""Accuracy of local methods next to their targets and to printed figures. Prints one JSON object per run.

    python benchmarks/local.py targets [--data cora pubmed] [--seeds 300 301 302] [--results FILE]
    python benchmarks/local.py edges | histogram | lga | baselines ...
    python benchmarks/local.py GROUP --results FILE --summary        # a Markdown table of finished runs, runs nothing
    python benchmarks/local.py GROUP --results FILE --plot FILE.svg  # accuracy against epsilon (histogram, lga)

``targets``: the method ``local`` on the rows of ``local_targets.csv`` (50/25/25; exit code 1 if a mean over the seeds misses
its target by more than max(0.7, 2 standard errors)). ``edges``: its rows with raw features and labels, where nothing but
contact lists is protected; epsilon is for one entry of a list that is there or not, printed are Blink's best. ``histogram``:
private edges with public and with noisy degrees. ``lga``: LGA-PGNN and LDP-GNN in both readings with the budgets of the paper's
Table V. ``baselines``: its other baselines. Runs that are in the results file already are not repeated. Accuracies are exact
figures on test labels.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

import graphveil as gv
from graphveil.methods.registry import method_class
from graphveil.report.plots import Curve, Panel, accuracy_panels

HERE = Path(__file__).parent
HALVES = "50/25/25"
OFFICIAL = "official"
TABLE_V = {  # printed accuracies by budget: (data set, method)
    ("cora", "lga-pgnn"): {0.01: 25.2, 0.1: 23.2, 1: 25.0, 5: 79.3, 10: 80.3},
    ("cora", "ldp-gnn"): {0.01: 19.3, 0.1: 40.6, 1: 25.9, 5: 76.4, 10: 76.2},
    ("amazon-photo", "lga-pgnn"): {0.01: 80.95, 0.1: 86.55, 1: 89.1, 5: 89.56, 10: 90.81},
    ("amazon-photo", "ldp-gnn"): {0.01: 49.95, 0.1: 76.59, 1: 88.86, 5: 89.54, 10: 89.79},
}


@dataclass(frozen=True)
class Setting:
    """One cell: what is trained on what under which promise, and the figures it stands beside."""

    group: str
    data: str
    method: str
    features: float | str
    labels: float | str
    edges: float | str
    options: dict[str, Any] = field(default_factory=dict)
    split: str = HALVES
    target: float | None = None
    printed: float | None = None

    @property
    def key(self) -> str:
        body = {k: v for k, v in asdict(self).items() if k not in ("target", "printed")}
        return json.dumps(body, sort_keys=True)


def rows_of(group: str, features: str) -> Iterator[Setting]:
    """The rows of the targets with these features."""
    number = lambda text: float(text) if text else None
    budget = lambda text: text if text == "raw" else float(text)
    with (HERE / "local_targets.csv").open() as file:
        for row in csv.DictReader(file):
            if row["features"] == features:
                labels, lists = budget(row["labels"]), budget(row["edges"])
                figures = {"target": number(row["target_accuracy"]), "printed": number(row["published_same_total"])}
                yield Setting(group, row["dataset"], "local", features, labels, lists, **figures)


def targets() -> Iterator[Setting]:
    return rows_of("targets", "withheld")


def edges() -> Iterator[Setting]:
    return rows_of("edges", "raw")


def histogram() -> Iterator[Setting]:
    for data, epsilons in (("amazon-photo", (1.0, 2.0, 4.0, 8.0)), ("cora", (4.0, 8.0))):
        for epsilon in epsilons:
            for options in ({"histogram_rounds": 1}, {"histogram_rounds": 2}):
                for degrees in ("public", "noisy"):
                    chosen = options | {"degrees": degrees}
                    yield Setting("histogram", data, "local", "withheld", 3.0, epsilon, chosen)


def lga() -> Iterator[Setting]:
    """Labels and edges raw as in the paper; Cora on its public split (the printed figures are multiples of 0.1)."""
    for (data, method), printed in TABLE_V.items():
        split, less = (OFFICIAL, {}) if data == "cora" else (HALVES, {"width": 256, "epochs": 50})
        variants: tuple[dict[str, Any], ...] = tuple({"mode": "published", "reading": one} for one in ("zero", "raw"))
        variants += ({},) if method == "lga-pgnn" else ()
        for epsilon, figure in printed.items():
            for options in variants:
                yield Setting("lga", data, method, epsilon, "raw", "raw", options | less, split, printed=figure)


def baselines() -> Iterator[Setting]:
    for data in ("cora", "amazon-photo"):
        for epsilon in (1.0, 5.0, 10.0):
            for method in ("lga-pgnn", "ldp-gnn", "lap-gnn", "lpgnn"):
                yield Setting("baselines", data, method, epsilon, 3.0, "raw", {"backbone": "gcn"})
        for method in ("rand-gnn", "random-features-gnn", "degree-gnn"):
            yield Setting("baselines", data, method, "withheld", 3.0, "raw", {"backbone": "gcn"})
        yield Setting("baselines", data, "local", "withheld", 3.0, "raw")


GROUPS = {"targets": targets, "edges": edges, "histogram": histogram, "lga": lga, "baselines": baselines}


def run(setting: Setting, seed: int) -> dict[str, Any]:
    if setting.split == OFFICIAL:
        data = gv.load_dataset(setting.data, seed=seed, split="official")
    else:
        data = gv.load_dataset(setting.data, seed=seed, fractions=(0.5, 0.25, 0.25))
    method: Any = method_class(setting.method)().set_params(**setting.options)
    started = time.perf_counter()
    model = method.fit(data, gv.Local(setting.features, setting.labels, setting.edges), seed=seed)
    seconds = time.perf_counter() - started
    scores = model.scores(data, "query")
    certificate = model.certificate
    return {
        "key": setting.key,
        "group": setting.group,
        "data": setting.data,
        "method": setting.method,
        "seed": seed,
        "accuracy": round(100 * scores["accuracy"], 3),
        "f1": round(100 * scores["f1"], 3),
        "epsilon": certificate.epsilon,
        "per_edge": certificate.per_edge,
        "holds": certificate.holds,
        "gaps": [gap.code for gap in certificate.gaps],
        "seconds": round(seconds, 1),
    }


def summary(setting: Setting, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over the seeds, and whether the target is kept."""
    reached = [one["accuracy"] for one in runs]
    mean = statistics.mean(reached)
    spread = statistics.stdev(reached) if len(reached) > 1 else 0.0
    allowance = max(0.7, 2 * spread / len(reached) ** 0.5)
    return {
        "setting": setting,
        "accuracies": reached,
        "mean": mean,
        "spread": spread,
        "f1": statistics.mean(one["f1"] for one in runs),
        "seeds": [one["seed"] for one in runs],
        "seconds": statistics.mean(one["seconds"] for one in runs),
        "epsilon": runs[0]["epsilon"],
        "per_edge": runs[0]["per_edge"],
        "ok": None if setting.target is None else mean >= setting.target - allowance,
    }


def table(rows: list[dict[str, Any]]) -> str:
    plain = lambda value: "" if value is None else f"{value:g}"
    proved = lambda value: "none" if value is None else f"{value:.4g}"
    heads = ("data", "method", "features / labels / edges", "options", "split", "accuracy (%)", "F-score (%)", "target")
    heads += ("holds", "printed", "measured / beside", "proved epsilon", "per edge", "seeds", "s")
    body = []
    for row in rows:
        one: Setting = row["setting"]
        beside = one.target or one.printed
        seeds = row["seeds"]
        cells = (
            one.data,
            one.method,
            f"{one.features} / {one.labels} / {one.edges}",
            ", ".join(f"{key}={value}" for key, value in one.options.items()),
            one.split,
            f"{row['mean']:.1f} ± {row['spread']:.1f}",
            f"{row['f1']:.1f}",
            plain(one.target),
            {None: "", True: "yes", False: "no"}[row["ok"]],
            plain(one.printed),
            f"{row['mean'] / beside:.3f}" if beside else "",
            proved(row["epsilon"]),
            proved(row["per_edge"]),
            f"{seeds[0]}-{seeds[-1]} ({len(seeds)})",
            f"{row['seconds']:.1f}",
        )
        body.append(cells)
    used = [number for number in range(len(heads)) if any(cells[number] for cells in body)]
    lines = [[heads[number] for number in used], ["---"] * len(used)]
    lines += [[cells[number] for number in used] for cells in body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Accuracy against the epsilon that varies (edges or features), one panel per data set, a curve per setting."""
    names = {"raw": "published, other attributes raw: no epsilon", "zero": "published, other attributes zero"}
    panels = []
    for data in dict.fromkeys(row["setting"].data for row in rows):
        curves: dict[str, dict[float, list[float]]] = {}
        points = {}
        for row in rows:
            one: Setting = row["setting"]
            if one.data != data:
                continue
            epsilon = float(one.features if one.group == "lga" else one.edges)
            label = names.get(one.options.get("reading", ""), "sound")
            if one.group == "histogram":
                label = f"{one.options['degrees']} degrees, rounds: {one.options['histogram_rounds']}"
            curves.setdefault(f"{one.method}: {label}", {})[epsilon] = [value / 100 for value in row["accuracies"]]
            if one.printed is not None:
                points[f"printed {epsilon:g}"] = (epsilon, one.printed / 100)
        panels.append(Panel(data, [Curve(label, values) for label, values in curves.items()], points))
    varies = "features" if rows[0]["setting"].group == "lga" else "one contact list entry"
    accuracy_panels(panels, f"epsilon of {varies}", path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("group", choices=sorted(GROUPS))
    parser.add_argument("--data", nargs="+", help="only these data sets")
    parser.add_argument("--method", nargs="+", help="only these methods")
    parser.add_argument("--reading", help="only settings with this option")
    parser.add_argument("--seeds", type=int, nargs="+", default=[300, 301, 302, 303, 304])
    parser.add_argument("--results", type=Path, help="JSON lines: read what is there, append what is new")
    parser.add_argument("--summary", action="store_true", help="print a Markdown table of the results file")
    parser.add_argument("--plot", type=Path, help="draw the results file as accuracy against epsilon")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    known: dict[tuple[str, int], dict[str, Any]] = {}
    if options.results is not None and options.results.exists():
        runs = [json.loads(line) for line in options.results.read_text().splitlines()]
        known = {(one["key"], one["seed"]): one for one in runs}
    chosen = [one for one in GROUPS[options.group]() if options.data is None or one.data in options.data]
    chosen = [one for one in chosen if options.method is None or one.method in options.method]
    chosen = [one for one in chosen if options.reading in (None, one.options.get("reading"))]
    for seed in [] if options.summary or options.plot else options.seeds:
        for setting in chosen:
            if (setting.key, seed) in known:
                continue
            known[setting.key, seed] = found = run(setting, seed)
            line = json.dumps(found)
            print(line, flush=True)
            if options.results is not None:
                with options.results.open("a") as file:
                    file.write(line + "\n")
    rows = []
    for setting in chosen:
        runs = [known[setting.key, seed] for seed in options.seeds if (setting.key, seed) in known]
        if runs:
            rows.append(summary(setting, runs))
    if options.summary:
        print(table(rows))
    if options.plot:
        plot(rows, options.plot)
    missed = [row for row in rows if row["ok"] is False]
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
