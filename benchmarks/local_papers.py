"""Accuracy of LPGNN, GraphPrivatizer and its randomised-response baseline next to the printed figures.

    python benchmarks/local_papers.py run --data cora pubmed --seeds 300 301 302 >> results.jsonl
    python benchmarks/local_papers.py table results.jsonl > docs/results/local-papers.md

One JSON object per run. Features and labels have epsilon 3 each, splits are 50/25/25 by seed, KProp steps are those of the
paper's appendix. Accuracies are exact figures on test labels; nothing is chosen by them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import graphveil as gv
from graphveil.methods.registry import method_class

HALVES = (0.5, 0.25, 0.25)
STEPS = {  # K_x, K_y of GraphPrivatizer's appendix A
    "cora": (16, 2),
    "pubmed": (16, 0),
    "facebook-pages": (4, 2),
    "amazon-photo": (4, 2),
    "lastfm-asia": (16, 0),
}
PREPARE = {"lastfm-asia": ["top-classes:10"]}
ORDER = ("cora", "pubmed", "facebook-pages", "amazon-photo", "lastfm-asia")
# (setting, backbone, edge epsilon) -> percent in the order above; lpgnn: Table 6, column infinity; t and m: base rows of
# Tables 8 to 12; rr-edges: Table 6, column RR
PRINTED = {
    ("lpgnn", "gcn", "raw"): (81.7, 82.4, 91.9, 80.8, 86.5),
    ("lpgnn", "sage", "raw"): (81.8, 82.0, 91.9, 86.4, 86.0),
    ("graph-privatizer t", "gcn", "0.1"): (75.4, 80.6, 86.6, 68.7, 82.6),
    ("graph-privatizer t", "gcn", "8"): (80.9, 82.3, 91.9, 85.9, 86.4),
    ("graph-privatizer m", "gcn", "0.1"): (76.4, 80.5, 89.0, 82.7, 83.1),
    ("graph-privatizer m", "gcn", "8"): (81.9, 82.3, 91.9, 86.2, 86.7),
    ("rr-edges", "gcn", "0.1"): (72.6, 80.3, 80.6, 72.3, 78.9),
}


def settings(name: str) -> Iterator[dict[str, Any]]:
    """Every run of a data set: which printed figure it belongs to, the method, its options and the edge epsilon."""
    kx, ky = STEPS[name]
    steps = {"feature_steps": kx, "label_steps": ky}
    for backbone in ("gcn", "sage"):
        yield row("lpgnn", backbone, "raw", "sound", steps)
    for strategy in ("t", "m"):
        for edges in ("0.1", "8"):
            yield row(f"graph-privatizer {strategy}", "gcn", edges, "published", steps | {"strategy": strategy})
    if name == "cora":
        yield row("lpgnn", "gcn", "raw", "published", steps)
        yield row("lpgnn", "gcn", "raw", "sound", steps | {"features": "random"}, features="withheld")
        yield row("rr-edges", "gcn", "0.1", "published", steps)
        yield row("rr-edges", "gcn", "8", "sound", steps)
    if name in ("cora", "amazon-photo"):
        for edges in ("1", "2", "4", "8"):
            yield row("graph-privatizer t", "gcn", edges, "sound", steps)
        yield row("graph-privatizer t", "gcn", "4", "sound", steps | {"mechanism": "mean"}, delta=1e-6)
        yield row("graph-privatizer t", "gcn", "8", "sound", steps | {"edge_rounds": 2})


def row(figure: str, backbone: str, edges: str, mode: str, options: dict[str, Any], **promise: Any) -> dict[str, Any]:
    full = {"backbone": backbone, "mode": mode, **options}
    return {"setting": figure, "backbone": backbone, "edges": edges, "mode": mode, "options": full, "promise": promise}


def measure(name: str, wanted: dict[str, Any], seed: int) -> dict[str, Any]:
    graph = gv.load_dataset(name, seed=seed, fractions=HALVES, prepare=PREPARE.get(name))
    method = method_class(wanted["setting"].split()[0])().set_params(**wanted["options"])
    promise = gv.Local(**{"features": 3, "labels": 3, "edges": wanted["edges"]} | wanted["promise"])
    started = time.process_time()
    model = method.fit(graph, promise, seed=seed)
    certificate = model.certificate
    return {
        "data": name,
        **wanted,
        "seed": seed,
        "accuracy": round(100 * model.score(graph), 2),
        "chosen": model.predictor.config(),
        "epsilon": certificate.epsilon,
        "claimed": certificate.epsilon_claimed,
        "holds": certificate.holds,
        "gaps": [gap.code for gap in certificate.gaps],
        "cpu_seconds": round(time.process_time() - started, 1),
    }


def table(paths: list[Path]) -> str:
    """Markdown: measured beside printed, mean and standard deviation over seeds."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            run = json.loads(line)
            groups[(run["data"], run["setting"], run["backbone"], run["edges"], run["mode"], variant(run))].append(run)
    lines = []
    for name in ORDER:
        if not any(key[0] == name for key in groups):
            continue
        lines += [
            f"\n## {name}\n",
            "| method | backbone | edge epsilon | mode | variant | accuracy (%) | printed (%) | proved epsilon | seeds | CPU s |",
        ]
        lines.append("|---|---|---|---|---|---|---|---|---|---|")
        for (data, setting, backbone, edges, mode, what), runs in groups.items():
            if data != name:
                continue
            found = [run["accuracy"] for run in runs]
            spread = f" ± {statistics.stdev(found):.1f}" if len(found) > 1 else ""
            printed = PRINTED.get((setting, backbone, edges), (None,) * len(ORDER))[ORDER.index(name)]
            beside = "" if printed is None or (mode == "sound" and setting != "lpgnn") else f"{printed:.1f}"
            proved = "none" if runs[0]["epsilon"] is None else f"{runs[0]['epsilon']:.4g}"
            seeds = ", ".join(str(run["seed"]) for run in runs)
            seconds = statistics.mean(run["cpu_seconds"] for run in runs)
            lines.append(
                f"| {setting} | {backbone} | {edges} | {mode} | {what} | {statistics.mean(found):.1f}{spread} | {beside} "
                f"| {proved} | {seeds} | {seconds:.0f} |"
            )
    return "\n".join(lines)


def variant(run: dict[str, Any]) -> str:
    """Options that tell runs of one setting apart."""
    hidden = ("backbone", "mode", "strategy", "feature_steps", "label_steps")
    return ", ".join(f"{key}={value}" for key, value in run["options"].items() if key not in hidden)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    run_parser = verbs.add_parser("run")
    run_parser.add_argument("--data", nargs="+", default=["cora"])
    run_parser.add_argument("--seeds", nargs="+", type=int, default=[300, 301, 302])
    run_parser.add_argument("--only", default="", help="only settings that begin with this")
    run_parser.add_argument("--mode", default="", help="only this mode")
    table_parser = verbs.add_parser("table")
    table_parser.add_argument("results", nargs="+", type=Path)
    asked = parser.parse_args()
    if asked.verb == "table":
        sys.stdout.write(table(asked.results) + "\n")
        sys.exit()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for name in asked.data:
        for seed in asked.seeds:
            for wanted in settings(name):
                if wanted["setting"].startswith(asked.only) and asked.mode in ("", wanted["mode"]):
                    print(json.dumps(measure(name, wanted, seed)), flush=True)
