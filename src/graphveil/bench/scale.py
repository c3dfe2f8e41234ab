"""What a graph of so many people, edges and features costs: CPU time and peak memory, from tables to a trained model.

Every measurement is a process of its own. The graph is generated as two tables (``bench/people.py``), imported as anybody would
import it, once as a folder of Parquet files and once as one file for memory, and trained on at node level. Sizes are varied one
at a time around a middle point; the exponent of a curve is the slope of a straight line through the logarithms.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from graphveil.bench.people import FEATURES, LABEL, write_edges, write_people
from graphveil.errors import InputError
from graphveil.progress import Progress, silent

EPSILON, CLASSES = 8.0, 10
MIDDLE = (200_000, 2_000_000, 32)
VARIED = {
    "nodes": (100_000, 200_000, 400_000, 800_000),
    "edges": (1_000_000, 2_000_000, 4_000_000, 8_000_000),
    "features": (16, 32, 64, 128),
}
FORMS = ("folder", "memory")
HEAD = ("what", "from", "nodes", "edges", "features", "load", "fit", "all", "GiB", "accuracy")
LINE = "{:<10} {:<7} {:>10} {:>11} {:>8} {:>7} {:>8} {:>8} {:>6} {:>8}"
WARM = (2_000, 10_000, 4)


@dataclass(frozen=True)
class Size:
    """Of a graph: people, undirected edges, feature columns."""

    nodes: int
    edges: int
    features: int

    @classmethod
    def read(cls, text: str) -> Size:
        """``NODES:EDGES[:FEATURES]``."""
        parts = text.split(":")
        if len(parts) not in (2, 3) or not all(part.isdecimal() and int(part) > 0 for part in parts):
            raise InputError(
                f"{text!r} is no size: give NODES:EDGES or NODES:EDGES:FEATURES, such as 1000000:10000000:32"
            )
        return cls(int(parts[0]), int(parts[1]), int(parts[2]) if len(parts) == 3 else MIDDLE[2])


def default_sizes() -> tuple[Size, ...]:
    """The middle point and the sizes around it, each once."""
    middle = Size(*MIDDLE)
    around = [replace(middle, **{name: value}) for name, values in VARIED.items() for value in values]
    return tuple(dict.fromkeys([middle, *around]))


def run(
    methods: Sequence[str] = ("ballot", "roster"),
    sizes: Sequence[Size] = (),
    forms: Sequence[str] = FORMS,
    threads: int = 1,
    kept: Path | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Measure every method on every size in every form; tables and imported graphs stay in ``kept`` if it is given."""
    sizes = sizes or default_sizes()
    if unknown := set(forms) - set(FORMS):
        raise InputError(f"a graph is trained on from {' or '.join(FORMS)}, not from {', '.join(sorted(unknown))}")
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="graphveil-scale-") as beside:
        _warm(Path(beside), methods, forms)
        for done, size in enumerate(sizes):
            progress("sizes", done, len(sizes))
            place = (kept or Path(beside)) / f"{size.nodes}-{size.edges}-{size.features}"
            made = {form: place / ("folder" if form == "folder" else "graph.npz") for form in forms}
            for form, out in made.items():
                if not out.exists():
                    rows.append(_row("import", form, size, apart(_import, place, out, size, threads=threads)))
            for method in methods:
                for form, path in made.items():
                    rows.append(_row(method, form, size, apart(_train, method, path, threads=threads)))
        progress("sizes", len(sizes), len(sizes))
    return {
        "benchmark": "scale",
        "unit": "CPU seconds and GiB at most, each in a process of its own",
        "promise": f"node level, epsilon {EPSILON:g}, the first adjacency that a method proves",
        "classes": CLASSES,
        "threads": threads,
        "results": rows,
        "exponents": exponents(rows),
        "ratios": ratios(rows),
    }


def apart(function: Callable[..., dict[str, Any]], *given: Any, threads: int = 1) -> dict[str, Any]:
    """What ``function`` returns in a new process, and the most memory that process held."""
    before = dict(os.environ)
    os.environ.update({name: str(threads) for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")})
    try:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            return pool.submit(_with_peak, function, given).result()
    finally:
        os.environ.clear()
        os.environ.update(before)


def _with_peak(function: Callable[..., dict[str, Any]], given: tuple[Any, ...]) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    found = function(*given)
    return found | {"peak_gib": peak_gib()}


def peak_gib() -> float:
    """The most memory this program held; ``ru_maxrss`` would count what the program that started it held as well."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**20
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _warm(beside: Path, methods: Sequence[str], forms: Sequence[str]) -> None:
    """A first look at a small graph, so that no measurement compiles anything."""
    size = Size(*WARM)
    for form in forms:
        out = beside / "warm" / ("folder" if form == "folder" else "graph.npz")
        apart(_import, beside / "warm", out, size)
        for method in methods:
            apart(_train, method, out)


def _import(place: Path, out: Path, size: Size) -> dict[str, Any]:
    """Write the tables if they are not there, and import them."""
    from graphveil.graph.formats.columns import Column
    from graphveil.graph.formats.importing import ImportPlan, import_graph
    from graphveil.graph.formats.streaming import import_folder
    from graphveil.graph.formats.tables import TableFile

    place.mkdir(parents=True, exist_ok=True)
    people, edges = place / "people.parquet", place / "edges.parquet"
    if not edges.exists():
        write_people(people, size.nodes, size.features, CLASSES)
        write_edges(edges, size.nodes, size.edges, CLASSES)
    label = Column(LABEL, categories=tuple(str(number) for number in range(CLASSES)))
    features = (Column(FEATURES, low=-8.0, high=8.0),)
    plan = ImportPlan(TableFile(edges), TableFile(people), label=label, features=features)
    started = time.process_time()
    (import_folder if out.suffix == "" else import_graph)(plan, out)
    return {"seconds": time.process_time() - started}


def _train(method: str, path: Path) -> dict[str, Any]:
    """Load, train and predict for everybody; the seconds of each."""
    import torch

    import graphveil as gv
    from graphveil.graph.data.load import load_folder
    from graphveil.graph.validate import validate
    from graphveil.learn.engine.threads import threads_given
    from graphveil.methods.registry import build
    from graphveil.privacy.promise import Promise

    torch.set_num_threads(threads_given())
    marks = [time.process_time()]
    graph = load_folder(path) if path.is_dir() else validate(gv.load_dataset(path))
    marks.append(time.process_time())
    chosen = build(method, {})
    promise = (
        Promise.parse(level="node", epsilon=EPSILON, supported=chosen.supports) if chosen.supports else gv.NonPrivate()
    )
    model = chosen.fit(graph, promise, seed=0)
    marks.append(time.process_time())
    guesses = np.asarray(model.predict(graph))
    marks.append(time.process_time())
    asked = graph.masks["query"]
    accuracy = float(np.mean(guesses[asked] == graph.labels[asked]))
    load, fit, predict = np.diff(marks)
    return {"load": load, "fit": fit, "predict": predict, "seconds": marks[-1] - marks[0], "accuracy": accuracy}


def _row(what: str, form: str, size: Size, found: dict[str, Any]) -> dict[str, Any]:
    return {"what": what, "form": form, **asdict(size), **found}


def exponents(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """For every method and form, the slopes in each size that was varied while the others stood still."""
    found = []
    for what, form in dict.fromkeys((row["what"], row["form"]) for row in rows):
        mine = [row for row in rows if (row["what"], row["form"]) == (what, form)]
        for name in VARIED:
            curve = curve_of(mine, name)
            if len(curve) > 2:
                spent = [row.get("fit", row["seconds"]) for row in curve]
                slope = {
                    key: _slope([row[name] for row in curve], values)
                    for key, values in (("cpu", spent), ("peak", [row["peak_gib"] for row in curve]))
                }
                found.append({"what": what, "form": form, "in": name, **slope, "points": len(curve)})
    return found


def curve_of(rows: Sequence[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """The longest run of rows that differ in ``name`` alone, by its value."""
    others = [other for other in VARIED if other != name]
    groups: dict[tuple[int, ...], dict[int, dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[other] for other in others), {})[row[name]] = row
    longest = max(groups.values(), key=len, default={})
    return [longest[value] for value in sorted(longest)]


def ratios(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """CPU time from a folder over that from memory, for load, training and predictions together."""
    by = {(row["what"], row["form"], row["nodes"], row["edges"], row["features"]): row["seconds"] for row in rows}
    return [
        {"what": what, "nodes": nodes, "edges": edges, "features": features, "folder_over_memory": spent / by[other]}
        for (what, form, nodes, edges, features), spent in by.items()
        if form == "folder" and what != "import" and (other := (what, "memory", nodes, edges, features)) in by
    ]


def _slope(sizes: Sequence[float], spent: Sequence[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(spent), 1)[0])


def as_text(result: dict[str, Any]) -> str:
    """Tables for people."""
    lines = [f"{result['promise']}; {result['threads']} thread(s); CPU seconds, GiB at most", "", LINE.format(*HEAD)]
    for row in result["results"]:
        load, fit = (f"{row[key]:.1f}" if key in row else "" for key in ("load", "fit"))
        right = f"{100 * row['accuracy']:.1f}" if "accuracy" in row else ""
        sizes = row["nodes"], row["edges"], row["features"]
        spent = load, fit, f"{row['seconds']:.1f}", f"{row['peak_gib']:.2f}"
        lines.append(LINE.format(row["what"], row["form"], *sizes, *spent, right))
    if result["exponents"]:
        lines += ["", "exponents (CPU time of training or import; peak memory)"]
    for row in result["exponents"]:
        where = f"{row['what']} from {row['form']}, in {row['in']}"
        lines.append(f"{where}: {row['cpu']:.2f}; {row['peak']:.2f} ({row['points']} points)")
    if result["ratios"]:
        lines += ["", "CPU time from a folder / from memory"]
    for row in result["ratios"]:
        where = f"{row['what']}, {row['nodes']} nodes, {row['edges']} edges, {row['features']} features"
        lines.append(f"{where}: {row['folder_over_memory']:.2f}")
    return "\n".join(lines)
