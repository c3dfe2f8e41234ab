"""Accuracy of the papers' central systems beside the figures the papers print (``central_printed.csv``).

    python benchmarks/central.py --data cora --seeds 3 [--only dpdgc gap] [--variant published] [--out FILE]
    python benchmarks/central.py --table                       # finished runs as Markdown tables

Every data set is prepared and split as the paper of the printed table does (registered preparations); each seed draws split and
noise. Accuracies are exact figures on test labels. Finished runs are kept as JSON lines in ``--out`` and never repeated, so
the script can be stopped and resumed.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import graphveil as gv
from graphveil.errors import InputError

HERE = Path(__file__).parent
PAPER_DELTA = {"cora-ml": 2e-3, "coauthor-cs": 8e-4, "coauthor-physics": 1e-4}  # DPAR, section on settings
LARGE_BATCHES = {"pubmed": 256}  # DPDGC: 256 for PubMed and Facebook, 64 otherwise
AVAILABLE = (
    *("cora", "amazon-photo", "pubmed", "amazon-computers", "chameleon", "squirrel"),
    *("citeseer", "lastfm-asia", "facebook-pages", "cora-ml", "coauthor-cs", "coauthor-physics"),
)


@dataclass(frozen=True)
class Setting:
    """One line of a results table: the printed figure it belongs to, what is run, and how the data are prepared."""

    figure: str
    variant: str
    method: Any
    promise: Any
    prepare: str

    def key(self, data: str, seed: int) -> str:
        return f"{self.prepare}/{data}/{self.figure}/{self.variant}/{seed}"


def settings(data: str) -> Iterator[Setting]:
    """Everything that is run on one data set: the papers' tables, sound modes first."""
    batch = {"batch_size": LARGE_BATCHES.get(data, 64)}
    people = {"adjacency": "node", "relation": "replace"}
    node, replaced = gv.NodeLevel(16.0), gv.NodeLevel(16.0, **people)
    contacts = [(f"k={k} 16", gv.KNeighborLevel(k, 16.0)) for k in (1, 5, 25)]
    yield Setting("sage", "not private", gv.Sage(), gv.NonPrivate(), "dpdgc")
    yield Setting("dp-mlp node 16", "sound", gv.DpMlp(), node, "dpdgc")
    yield Setting("gap node 16", "sound", gv.Gap(), node, "dpdgc")
    yield Setting("gap edge 1", "sound", gv.Gap(), gv.EdgeLevel(1.0), "dpdgc")
    for codes in ("learned", "labels"):
        for level, promise in (("edge 1", gv.EdgeLevel(1.0)), *contacts, ("node 16", node)):
            yield Setting(f"dpdgc {level}", f"sound, {codes} codes", gv.Dpdgc(codes=codes), promise, "dpdgc")
    yield Setting("dpdgc node 16", "sound, random codes", gv.Dpdgc(codes="random"), node, "dpdgc")
    yield Setting("dp-sage node 16", "sound", gv.DpSage(), node, "dpdgc")
    for epsilon, variant, options in (
        (4, "sound", {}),
        (4, "sound, uniform", {"allocation": "uniform"}),
        (4, "sound, no residual", {"residual": False}),
        (7, "sound", {}),
        (12, "sound", {}),
    ):
        method = gv.NipGnn(**options)
        yield Setting(f"nip-gnn node {epsilon}", variant, method, gv.NodeLevel(float(epsilon)), "nip-gnn")
    anybody = {"adjacency": "node", "delta": PAPER_DELTA.get(data)}
    for epsilon in (1, 8):
        promise = gv.NodeLevel(float(epsilon), **anybody)
        for select in ("gm", "em0", "em1"):
            yield Setting(f"dpar {select} node {epsilon}", "sound", gv.Dpar(select=select), promise, "dpar")
        for rows in ("identity", "random"):
            yield Setting(f"dpar gm node {epsilon}", f"sound, {rows} rows", gv.Dpar(rows=rows), promise, "dpar")
        yield Setting(f"dpar gm node {epsilon}", "sound, aggregate route", gv.Dpar(route="aggregate"), promise, "dpar")
    yield Setting("dp-mlp node 16", "published", gv.DpMlp(mode="published", **batch), replaced, "dpdgc")
    for hops, variant in ((2, "published"), (1, "published, 1 hop")):  # the paper tunes the number, its scripts have 2
        yield Setting("gap node 16", variant, gv.Gap(hops=hops, mode="published", **batch), replaced, "dpdgc")
    for level, promise in (("edge 1", gv.EdgeLevel(1.0)), ("node 16", replaced), *contacts):
        yield Setting(f"dpdgc {level}", "published", gv.Dpdgc(mode="published", **batch), promise, "dpdgc")
    for hops, variant in ((2, "published"), (1, "published, 1 hop")):
        yield Setting("gap edge 1", variant, gv.Gap(hops=hops, mode="published", **batch), gv.EdgeLevel(1.0), "dpdgc")
    yield Setting("dp-mlp edge 1", "published", gv.DpMlp(mode="published", **batch), gv.EdgeLevel(1.0), "dpdgc")
    for epsilon in (7, 12):
        promise = gv.NodeLevel(float(epsilon))
        for ablation, options in (("uniform", {"allocation": "uniform"}), ("no residual", {"residual": False})):
            figure = f"nip-gnn {ablation} node {epsilon}"
            yield Setting(figure, "sound", gv.NipGnn(**options), promise, "nip-gnn")
    for epsilon in (4, 7, 12):
        whole = gv.NodeLevel(float(epsilon), adjacency="node")
        yield Setting(f"nip-gnn node {epsilon}", "published", gv.NipGnn(mode="published"), whole, "nip-gnn")
    for epsilon in (1, 8):
        for select in ("gm", "em0", "em1"):
            method = gv.Dpar(mode="published", select=select)
            yield Setting(
                f"dpar {select} node {epsilon}", "published", method, gv.NodeLevel(float(epsilon), **anybody), "dpar"
            )
    yield Setting("edge-rand edge 1", "sound", gv.EdgeRand(), gv.EdgeLevel(1.0), "dpdgc")


def printed() -> dict[tuple[str, str, str], float]:
    """(paper, setting, data set) -> percent."""
    with (HERE / "central_printed.csv").open(newline="") as file:
        return {(r["table"].split()[0], r["setting"], r["dataset"]): float(r["percent"]) for r in csv.DictReader(file)}


def measure(data: str, seed: int, setting: Setting) -> dict[str, Any]:
    started = time.perf_counter()
    graph = gv.load_dataset(data, seed=seed, prepare=setting.prepare, split="paper")
    model = setting.method.fit(graph, setting.promise, seed=seed)
    own = 100 * model.score(graph)
    reached = 100 * model.score(graph, access="public-graph") if setting.method.name == "dpar" else own
    certificate = model.certificate
    return {
        "key": setting.key(data, seed),
        "data": data,
        "method": setting.method.name,
        "figure": setting.figure,
        "variant": setting.variant,
        "paper": setting.prepare,
        "seed": seed,
        "accuracy": round(reached, 2),
        "own_row_accuracy": round(own, 2),
        "val_accuracy": validation_accuracy(model, graph),
        "epsilon": certificate.epsilon,
        "claimed": certificate.epsilon_claimed,
        "corrected": next((v for k, v in (certificate.implied or {}).items() if "corrected" in k), None),
        "gaps": [gap.code for gap in certificate.gaps],
        "seconds": round(time.perf_counter() - started, 1),
    }


def validation_accuracy(model: Any, graph: Any) -> float | None:
    """What hyper-parameters are chosen by, in percent; None without validation nodes."""
    held = graph.val_mask
    return round(100 * float((model.predict(graph)[held] == graph.y[held]).double().mean()), 2) if held.any() else None


def finished(path: Path) -> list[dict[str, Any]]:
    """Finished runs, each once."""
    entries = [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []
    return list({entry["key"]: entry for entry in entries}.values())


def run(options: argparse.Namespace) -> None:
    done, figures = {entry["key"] for entry in finished(options.out)}, printed()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for data in options.data:
        for setting in settings(data):
            known = (setting.prepare, setting.figure, data) in figures
            chosen = options.only is None or setting.method.name in options.only
            chosen = chosen and options.figure in setting.figure and options.variant in setting.variant
            if not (known and chosen):
                continue
            for seed in range(options.start, options.seeds):
                if setting.key(data, seed) not in done:
                    try:
                        line = json.dumps(measure(data, seed, setting))
                    except InputError as error:  # published nip-gnn refuses what it cannot draw
                        print(f"{setting.key(data, seed)}: {error}", flush=True)
                        break
                    print(line, flush=True)
                    with options.out.open("a") as file:
                        file.write(line + "\n")


def table(entries: list[dict[str, Any]]) -> Iterator[str]:
    """One Markdown table per data set, in the order of :func:`settings`: mean and spread beside the printed figure."""
    figures = printed()
    for data in (name for name in AVAILABLE if any(entry["data"] == name for entry in entries)):
        yield f"\n### {data}\n"
        yield "| setting | variant | accuracy (%) | printed (%) | difference | proved epsilon | gaps | seeds | s per run |"
        yield "|---|---|---|---|---|---|---|---|---|"
        groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {
            (setting.prepare, setting.figure, setting.variant): [] for setting in settings(data)
        }
        for entry in (entry for entry in entries if entry["data"] == data):
            groups[entry["paper"], entry["figure"], entry["variant"]].append(entry)
        for (paper, figure, variant), runs in groups.items():
            if not runs:
                continue
            values, last = [entry["accuracy"] for entry in runs], runs[-1]
            spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
            own = statistics.mean(entry["own_row_accuracy"] for entry in runs)
            shown = f"{statistics.mean(values):.1f}{spread}" + (f" (own row {own:.1f})" if own not in values else "")
            if last["method"] != "dpar":
                shown = f"{statistics.mean(values):.1f}{spread}"
            target = figures.get((paper, figure, data))
            proved = "-" if last["claimed"] is None and last["epsilon"] is None else "none"
            proved = f"{last['epsilon']:.4g}" if last["epsilon"] is not None else proved
            if last["corrected"] is not None:
                proved += f" (corrected {last['corrected']:.4g})"
            beside = ("", "") if target is None else (f"{target:.1f}", f"{statistics.mean(values) - target:+.1f}")
            seconds = statistics.mean(entry["seconds"] for entry in runs)
            cells = (figure, variant, shown, *beside, proved, ", ".join(last["gaps"]), len(runs), f"{seconds:.1f}")
            yield "| " + " | ".join(str(cell) for cell in cells) + " |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["cora"], choices=AVAILABLE)
    parser.add_argument("--seeds", type=int, default=3, help="seeds 0 .. SEEDS - 1")
    parser.add_argument("--start", type=int, default=0, help="first seed")
    parser.add_argument("--only", nargs="+", default=None, help="names of methods")
    parser.add_argument("--figure", default="", help="only printed figures whose name contains this, such as 'edge 1'")
    parser.add_argument("--variant", default="", help="only variants that contain this")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "central.jsonl")
    parser.add_argument("--table", action="store_true", help="print finished runs instead of running")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if chosen.table:
        print("\n".join(table(finished(chosen.out))))
    else:
        run(chosen)
