"""Utility side by side: method x data set x level x epsilon x seeds, with the published figure, DP-MLP and the ceiling.

    python benchmarks/utility.py                                     # every row of ballot_targets.csv, seeds 100-104
    python benchmarks/utility.py --method roster --seeds 900-904     # every row of roster_targets.csv
    python benchmarks/utility.py --data cora --level node --seeds 100-109
    python benchmarks/utility.py --bounded-degree                    # lists cut to 100, replace, epsilon 16
    python benchmarks/utility.py --seeds 100-102 --figure docs/results/ballot.svg --rows docs/results/ballot.jsonl   # README

Finished runs are kept as JSON lines in ``--out`` and never repeated. Writes ``utility-METHOD.json`` and ``.md`` beside
them. A row holds if the mean over seeds is at least target - max(0.7, 2 standard errors); the exit code is 1 if one
does not. Each seed draws split and noise. Ceiling: the same method without noise. Published: the best figure printed
for the same data set and level; splits, adjacency and delta differ between papers, so these are points
of reference, not a ranking.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import graphveil as gv
from graphveil.graph import prepare
from graphveil.methods.registry import method_class
from graphveil.privacy.promise import Promise
from graphveil.privacy.shares import shares

HERE = Path(__file__).parent
EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0)
FIGURE_DATA = ("cora", "facebook-pages", "amazon-photo", "chameleon")
FIGURE_METHODS = ("ballot", "dp-mlp", "gap")
PRINTED = HERE.parent / "docs" / "results" / "printed.csv"
BOUNDED = {"cora": 64.3, "amazon-photo": 85.6, "amazon-computers": 80.0, "pubmed": 85.7}  # DPDGC Table 2, epsilon 16


@dataclass(frozen=True)
class Row:
    """One line of the table: a data set under a promise, with the figure to reach."""

    dataset: str
    level: str
    adjacency: str
    relation: str
    epsilon: float
    target: float | None = None
    published: float | None = None
    option: str = ""

    @property
    def setting(self) -> str:
        return " / ".join(filter(None, (self.level, self.adjacency, self.relation, self.option)))

    @property
    def options(self) -> dict[str, Any]:
        """The option of the method in this row, as keywords."""
        name, _, value = self.option.partition("=")
        return {name: json.loads(value)} if name else {}

    def promise(self, epsilon: float) -> Promise:
        if self.level == "edge":
            return gv.EdgeLevel(epsilon)
        if self.level == "k-neighbor":
            return gv.KNeighborLevel(int(self.adjacency.partition(":")[2]), epsilon, relation=self.relation)
        name, _, bound = self.adjacency.partition(":")
        return gv.NodeLevel(epsilon, adjacency=name, max_degree=int(bound) if bound else None, relation=self.relation)

    def load(self, seed: int) -> Any:
        """The graph with its split; for bounded-degree, with lists cut so that the promise is true."""
        bound = self.adjacency.partition(":")[2] if self.adjacency.startswith("bounded-degree") else ""
        if not bound:
            return gv.load_dataset(self.dataset, seed=seed)
        return prepare(gv.load_dataset(self.dataset, seed=seed, max_degree=int(bound)), ["mutual"])


@dataclass(frozen=True)
class Run:
    """One fit: what identifies it."""

    method: str
    row: Row
    epsilon: float
    seed: int

    @property
    def key(self) -> str:
        return f"{self.method}|{self.row.dataset}|{self.row.setting}|{self.epsilon:g}|{self.seed}"


def target_rows(method: str) -> list[Row]:
    """The rows of ``METHOD_targets.csv``."""
    number = lambda text: float(text) if text else None
    with (HERE / f"{method}_targets.csv").open(encoding="utf-8") as file:
        return [
            Row(
                line["dataset"],
                line["level"],
                line["adjacency"],
                line["relation"],
                float(line["epsilon"]),
                number(line["target_accuracy"]),
                number(line["published_best_same_setting"]),
                line.get("option", ""),
            )
            for line in csv.DictReader(file)
        ]


def bounded_rows() -> list[Row]:
    return [
        Row(name, "node", "bounded-degree:100", "replace", 16.0, published, published)
        for name, published in BOUNDED.items()
    ]


def runs_of(rows: Iterable[Row], method: str, seeds: list[int], ceiling_seeds: int) -> Iterator[Run]:
    """For every row the method, DP-MLP and (for the first seeds) the ceiling."""
    for row in rows:
        for number, seed in enumerate(seeds):
            yield Run(method, row, row.epsilon, seed)
            yield Run("dp-mlp", replace(row, option=""), row.epsilon, seed)
            if number < ceiling_seeds:
                yield Run(method, row, math.inf, seed)


def figure_runs(seeds: Iterable[int]) -> Iterator[Run]:
    for dataset in FIGURE_DATA:
        for method in FIGURE_METHODS:
            for epsilon in (*EPSILONS, math.inf):
                for seed in seeds:
                    yield Run(method, Row(dataset, "node", "record", "zero-out", epsilon), epsilon, seed)


class Store:
    """Finished runs, one JSON object a line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: dict[str, dict[str, Any]] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line)
                self.found[entry["key"]] = entry

    def add(self, entry: dict[str, Any]) -> None:
        self.found[entry["key"]] = entry
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def accuracies(self, method: str, row: Row, epsilon: float, seeds: Iterable[int]) -> list[float]:
        keys = (Run(method, row, epsilon, seed).key for seed in seeds)
        return [self.found[key]["accuracy"] for key in keys if key in self.found]


def finish(runs: list[Run], store: Store) -> None:
    """Do what is missing, data set by data set, with a bar on stderr."""
    from rich.console import Console
    from rich.progress import Progress

    open_runs = {run.key: run for run in runs if run.key not in store.found}
    loaded: tuple[Any, Any] = (None, None)
    with Progress(console=Console(file=sys.stderr)) as bar:
        task = bar.add_task("runs", total=len(open_runs))
        order = sorted(open_runs.values(), key=lambda run: (run.row.dataset, run.row.adjacency, run.seed))
        for run in order:
            bar.update(task, description=f"{run.method} {run.row.dataset} {run.row.adjacency} epsilon {run.epsilon:g}")
            source = (run.row.dataset, run.row.adjacency.startswith("bounded"), run.seed)
            if loaded[0] != source:
                loaded = (source, run.row.load(run.seed))
            store.add(measure(run, loaded[1]))
            bar.advance(task)


def measure(run: Run, data: Any) -> dict[str, Any]:
    method = method_class(run.method)(**run.row.options)
    started = time.process_time()
    model = method.fit(data, run.row.promise(run.epsilon), seed=run.seed)
    seconds = time.process_time() - started
    mode, found = getattr(model.predictor, "mode", None), model.certificate
    part = shares(found)
    releases = [
        {
            "name": r.name,
            "noise": getattr(r.mechanism, "sigma", None),
            "dimension": getattr(r.mechanism, "dimension", None),
        }
        | {"share": part.get(r.name)}
        for r in found.releases
    ]
    proved = {"epsilon": found.epsilon, "delta": found.delta, "holds": found.holds, "releases": releases}
    figures = {"accuracy": 100 * model.score(data), "cpu_seconds": round(seconds, 3), "mode": mode}
    return {"key": run.key, **figures, **proved}


def summary(row: Row, method: str, seeds: list[int], store: Store) -> dict[str, Any]:
    """Means, standard errors and the verdict of one row."""
    found = store.accuracies(method, row, row.epsilon, seeds)
    mean, error = float(np.mean(found)), standard_error(found)
    floor = None if row.target is None else row.target - max(0.7, 2 * error)
    average = lambda values: round(float(np.mean(values)), 2) if values else None
    return {
        **asdict(row),
        "method": method,
        "seeds": len(found),
        "mean": round(mean, 2),
        "standard_error": round(error, 2),
        "floor": None if floor is None else round(floor, 2),
        "holds": None if floor is None else mean >= floor,
        "dp_mlp": average(store.accuracies("dp-mlp", replace(row, option=""), row.epsilon, seeds)),
        "ceiling": average(store.accuracies(method, row, math.inf, seeds)),
    }


def standard_error(values: list[float]) -> float:
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else 0.0


def as_markdown(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| data set | level / adjacency / relation | epsilon | mean ± s.e. | target | holds | DP-MLP | no noise | published |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    cell = lambda value: "-" if value is None else f"{value:.1f}"
    for row in rows:
        setting = " / ".join(filter(None, (row["level"], row["adjacency"], row["relation"], row["option"])))
        verdict = {True: "yes", False: "**no**", None: "-"}[row["holds"]]
        lines.append(
            f"| {row['dataset']} | {setting} | {row['epsilon']:g} | {row['mean']:.1f} ± {row['standard_error']:.1f} | "
            f"{cell(row['target'])} | {verdict} | {cell(row['dp_mlp'])} | {cell(row['ceiling'])} | {cell(row['published'])} |"
        )
    return "\n".join(lines) + "\n"


NAMES = {"ballot": "Ballot", "dp-mlp": "DP-MLP", "gap": "GAP"}


def as_row(run: Run, found: dict[str, Any]) -> dict[str, Any]:
    """A finished run in the form that pictures and reports are made from."""
    row = run.row
    return {
        "id": run.key,
        "experiment": "utility",
        "method": run.method,
        "mode": "sound",
        "options": row.options,
        "label": NAMES.get(run.method, run.method),
        "dataset": row.dataset,
        "split": "random 75/10/15",
        "level": row.level,
        "adjacency": row.adjacency,
        "relation": row.relation,
        "epsilon_target": run.epsilon if math.isfinite(run.epsilon) else None,
        "parts": None,
        "seed": run.seed,
        "status": "done",
        "gaps": [],
        "metrics": {"test_accuracy": round(found["accuracy"] / 100, 6)},
        "selection": "none",
        "epsilon_claimed": found.get("epsilon"),
        **{key: found[key] for key in ("epsilon", "delta", "holds", "releases", "cpu_seconds") if key in found},
    }


def draw_figure(path: Path, rows: Path | None, seeds: list[int], store: Store) -> None:
    """The picture of the README, and the rows it is drawn from."""
    from graphveil.report.curves import draw
    from graphveil.report.printed import read_printed

    found = [as_row(run, store.found[run.key]) for run in figure_runs(seeds)]
    draw(found, path, read_printed(PRINTED))
    if rows is not None:
        rows.write_text("".join(json.dumps(row) + "\n" for row in found), encoding="utf-8")


def seed_list(text: str) -> list[int]:
    first, _, last = text.partition("-")
    return list(range(int(first), int(last or first) + 1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--method", default="ballot")
    parser.add_argument("--data", action="append", help="only this data set; repeatable")
    parser.add_argument("--level", action="append", help="only this level; repeatable")
    parser.add_argument("--seeds", type=seed_list, default=list(range(100, 105)), help="first-last")
    parser.add_argument("--ceiling-seeds", type=int, default=5, help="seeds for the run without noise")
    parser.add_argument("--bounded-degree", action="store_true", help="the bounded-degree rows instead of the targets")
    parser.add_argument("--figure", type=Path, help="draw accuracy against epsilon to this file")
    parser.add_argument("--rows", type=Path, help="with --figure: keep its runs there, for 'graphveil report'")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of finished runs and tables")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    store = Store(options.out / "utility.jsonl")
    if options.figure:
        finish(list(figure_runs(options.seeds)), store)
        draw_figure(options.figure, options.rows, options.seeds, store)
        return 0
    rows = [
        row
        for row in (bounded_rows() if options.bounded_degree else target_rows(options.method))
        if (not options.data or row.dataset in options.data) and (not options.level or row.level in options.level)
    ]
    finish(list(runs_of(rows, options.method, options.seeds, options.ceiling_seeds)), store)
    table = [summary(row, options.method, options.seeds, store) for row in rows]
    name = "utility-bounded" if options.bounded_degree else f"utility-{options.method}"
    (options.out / f"{name}.json").write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    (options.out / f"{name}.md").write_text(as_markdown(table), encoding="utf-8")
    print(as_markdown(table))
    return 0 if all(row["holds"] is not False for row in table) else 1


if __name__ == "__main__":
    sys.exit(main())
