"""Sums along contact lists against scipy's product and against what the memory gives.

Random lists of ``edges`` entries over ``nodes`` people, rows of ``width`` float64 numbers on the grid 2^-24. Both directions:
*read* (every list adds up the rows it names, as scores do) and *spread* (every list adds its row to those it names, as messages
do); ``engine.spread`` is the latter as methods call it, with receivers, weights, truncation and blocks. scipy multiplies a CSR
matrix by the same rows, for *spread* one that somebody has transposed already. All results are compared: equal to the last bit.

Bounds, measured in the same rounds: *sequential* (a triad, three streams) and, since lists name rows anywhere, the same rows in
the same order with one number of each cache line read (*gather*) or changed (*scatter*). A share is how long the bytes of a pass
would take at that rate, by how long the pass took. Figures are medians of CPU time; of two threads, the busier one's.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numba import njit

from graphveil.bench.machine import machine, one_thread
from graphveil.graph import Graph, Lists
from graphveil.graph.kernels.lines import LINE, prefetch, zeros_on_lines
from graphveil.graph.kernels.list_sums import placed, read, spread
from graphveil.graph.lists import on_grid
from graphveil.graph.rows import DenseRows
from graphveil.learn import engine
from graphveil.progress import Progress, silent

Pass = Callable[[], Sequence[float] | None]  # of threads, each one's CPU seconds

TARGETS = {"scipy_over_ours": 1.2, "share": 0.6}
NUMBER, AHEAD = 8, 32
PER_LINE = LINE // NUMBER
STREAM = 16_000_000


@dataclass(frozen=True)
class Case:
    """Lists both ways round, and one row per person."""

    starts: np.ndarray
    entries: np.ndarray
    turned: sp.csr_matrix
    rows: np.ndarray

    @classmethod
    def drawn(cls, nodes: int, edges: int, width: int) -> Case:
        rng = np.random.default_rng(0)
        ends = rng.integers(0, nodes, (2, edges), dtype=np.int32)
        lists = sp.coo_matrix((np.ones(edges), (ends[0], ends[1])), shape=(nodes, nodes)).tocsr()
        lists.sort_indices()
        lists.data[:] = 1  # drawn twice, listed once
        rows = zeros_on_lines(nodes, width)
        rows[...] = on_grid(rng.uniform(-1, 1, rows.shape) / np.sqrt(width))
        return cls(lists.indptr, lists.indices, lists.T.tocsr(), rows)

    @property
    def lists(self) -> sp.csr_matrix:
        return sp.csr_matrix((np.ones(len(self.entries)), self.entries, self.starts), shape=self.turned.shape)

    def bytes(self, direction: str) -> int:
        """What one pass moves: entries and starts, a row per entry and one per list; to spread, rows go there and back and are
        set to zero first.
        """
        row, ways = NUMBER * int(self.rows.shape[1]), 2 if direction == "spread" else 1
        entry, start = int(self.entries.itemsize), int(self.starts.itemsize)
        return len(self.entries) * (ways * row + entry) + len(self.rows) * (ways * row + start)


def run(
    nodes: int = 1_000_000, edges: int = 10_000_000, width: int = 16, repeats: int = 5, progress: Progress = silent
) -> dict[str, Any]:
    """Measure everything in turn, ``repeats`` times: times, bytes, rates, shares and ratios, and whether the targets hold."""
    case = Case.drawn(nodes, edges, width)
    kept: dict[str, np.ndarray] = {}
    with one_thread():
        passes = _passes(case, kept)
        times = _measure(passes, repeats, progress)
    rates = {
        "sequential": 3 * NUMBER * STREAM / times["sequential"],
        "gather": len(case.entries) * NUMBER * width / times["gather"],
        "scatter": 2 * len(case.entries) * NUMBER * width / times["scatter"],
    }
    results = [
        _compared(case, "read", "gather", times, rates),
        _compared(case, "spread", "scatter", times, rates),
    ]
    exact = all(np.array_equal(kept[name], kept[f"scipy {name.split()[0]}"]) for name in kept if "scipy" not in name)
    return {
        "benchmark": "aggregate",
        "unit": "CPU milliseconds per pass, median",
        "nodes": nodes,
        "edges": len(case.entries),
        "width": width,
        "table_mib": round(case.rows.nbytes / 2**20, 1),
        "repeats": repeats,
        "machine": machine(),
        "rates_gb_s": {name: round(rate / 1e9, 2) for name, rate in rates.items()},
        "results": results,
        "engine_spread_ms": round(1e3 * times["engine"], 2),
        "exact": exact,
        "ok": exact and all(result["ok"] for result in results),
    }


def as_text(report: Mapping[str, Any]) -> str:
    """The report of ``run`` for people."""
    rates = ", ".join(f"{name} {rate:.1f} GB/s" for name, rate in report["rates_gb_s"].items())
    lines = [
        f"{report['nodes']} lists, {report['edges']} entries, rows of {report['width']} float64: a table of "
        f"{report['table_mib']:g} MiB; {report['unit']}",
        f"memory, one thread: {rates}",
        f"{'direction':<10}{'ours':>9}{'2 threads':>11}{'scipy':>9}{'float32':>9}{'GB/s':>7}"
        f"{'scipy/ours':>24}{'of random rows':>24}{'of sequential':>15}",
    ]
    for row in report["results"]:
        ratio, share = (f"{row[name]:.2f} (at least {limit:g})" for name, limit in row["targets"].items())
        lines.append(
            f"{row['direction']:<10}{row['ours_ms']:>9.1f}{row['two_threads_ms']:>11.1f}{row['scipy_ms']:>9.1f}"
            f"{row['scipy_float32_ms']:>9.1f}{row['gb_s']:>7.1f}{ratio:>24}{share:>24}{row['share_of_sequential']:>15.2f}"
        )
    lines.append(f"engine.spread, with receivers, weights, truncation and blocks: {report['engine_spread_ms']:.1f}")
    lines.append("sums equal scipy's to the last bit" if report["exact"] else "SUMS DIFFER from scipy's")
    lines.append("all targets hold" if report["ok"] else "a target is missed")
    return "\n".join(lines)


def _compared(
    case: Case, direction: str, probe: str, times: Mapping[str, float], rates: Mapping[str, float]
) -> dict[str, Any]:
    moved, seconds = case.bytes(direction), times[direction]
    found: dict[str, Any] = {
        "direction": direction,
        "bytes": moved,
        "ours_ms": round(1e3 * seconds, 2),
        "two_threads_ms": round(1e3 * times[f"{direction}, two threads"], 2),
        "scipy_ms": round(1e3 * times[f"scipy {direction}"], 2),
        "scipy_float32_ms": round(1e3 * times[f"scipy {direction}, float32"], 2),
        "gb_s": round(moved / seconds / 1e9, 2),
        "scipy_over_ours": round(times[f"scipy {direction}"] / seconds, 3),
        "share": round(moved / rates[probe] / seconds, 3),
        "share_of_sequential": round(moved / rates["sequential"] / seconds, 3),
    }
    return found | {"targets": TARGETS, "ok": all(found[name] >= limit for name, limit in TARGETS.items())}


def _passes(case: Case, kept: dict[str, np.ndarray]) -> dict[str, Pass]:
    """What is measured; ``kept`` gets every result, those that must be equal under names that begin alike."""
    starts, entries, rows = case.starts, case.entries, case.rows
    (nodes, width), half = rows.shape, len(rows) // 2
    place = np.arange(nodes, dtype=np.int32)
    sides = [placed(starts, entries, np.where(mask, place, -1)) for mask in (place < half, place >= half)]
    graph, everybody = _graph(case), np.ones(nodes, dtype=bool)
    shorter = {
        "read": case.lists.astype(np.float32),
        "spread": case.turned.astype(np.float32),
        "rows": rows.astype(np.float32),
    }
    whole = case.lists
    streams = [np.ones(STREAM) for _ in range(3)]
    flat, touched = rows.ravel(), zeros_on_lines(nodes, width).ravel()
    one, two = np.empty((nodes, width)), np.empty((nodes, width))
    total, halves = zeros_on_lines(nodes, width), zeros_on_lines(nodes, width)
    kept |= {"read": one, "read by two": two, "spread": total, "spread by two": halves}

    def keep(name: str, found: np.ndarray) -> None:
        kept[name] = found

    def spread_all() -> None:
        total[...] = 0
        spread(starts, entries, rows, total)

    def read_by_two() -> Sequence[float]:
        return _together(
            lambda: read(starts[: half + 1], entries, rows, two[:half]),
            lambda: read(starts[half:], entries, rows, two[half:]),
        )

    def spread_by_two() -> Sequence[float]:
        halves[...] = 0
        return _together(*(partial(spread, starts, places, rows, halves) for starts, places in sides))

    return {
        "sequential": lambda: _triad(*streams),
        "gather": lambda: _done(_gather(entries, flat, width)),
        "scatter": lambda: _scatter(entries, touched, width),
        "read": lambda: read(starts, entries, rows, one),
        "read, two threads": read_by_two,
        "scipy read": lambda: keep("scipy read", whole @ rows),
        "scipy read, float32": lambda: _done(shorter["read"] @ shorter["rows"]),
        "spread": spread_all,
        "spread, two threads": spread_by_two,
        "scipy spread": lambda: keep("scipy spread", case.turned @ rows),
        "scipy spread, float32": lambda: _done(shorter["spread"] @ shorter["rows"]),
        "engine": lambda: _done(engine.spread(graph, lambda block: rows[block.slots], everybody, 1)),
    }


def _graph(case: Case) -> Graph:
    """The same lists as methods get them: repeated entries and entries about oneself are gone."""
    nodes = len(case.rows)
    senders = np.repeat(np.arange(nodes), np.diff(case.starts))
    nobody = {kind: np.zeros(nodes, dtype=bool) for kind in ("train", "calibration", "query")}
    lists = Lists.from_edge_index(np.stack([senders, case.entries]), nodes)
    return Graph(DenseRows(torch.zeros(nodes, 1, dtype=torch.float64)), np.full(nodes, -1), lists, nobody, classes=2)


def _measure(passes: Mapping[str, Pass], repeats: int, progress: Progress) -> dict[str, float]:
    """Median CPU seconds of each pass; all take turns."""
    times: dict[str, list[float]] = {name: [] for name in passes}
    for done in range(repeats + 1):
        progress("aggregate", done, repeats + 1)
        for name, work in passes.items():
            start = time.process_time()
            threads = work()
            spent = time.process_time() - start
            if done:  # the first round compiles
                times[name].append(max(threads) if threads else spent)
    progress("aggregate", repeats + 1, repeats + 1)
    return {name: statistics.median(values) for name, values in times.items()}


def _done(found: Any) -> None:
    """A pass whose result nobody looks at."""


def _together(*parts: Callable[[], None]) -> Sequence[float]:
    """CPU seconds of each part, every one in a thread of its own."""

    def timed(part: Callable[[], None]) -> float:
        start = time.thread_time()
        part()
        return time.thread_time() - start

    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(timed, parts))


@njit(cache=True)
def _triad(out: Any, left: Any, right: Any) -> None:
    for at in range(len(out)):
        out[at] = left[at] + 3.0 * right[at]


@njit(cache=True)
def _gather(entries: Any, table: Any, width: int) -> float:
    """Reads one number of every line of the listed rows."""
    columns, last, total = np.uint64(width), len(entries) - 1, 0.0
    for at in range(len(entries)):
        ahead = np.uint64(entries[min(at + AHEAD, last)]) * columns
        row = np.uint64(entries[at]) * columns
        for column in range(0, width, PER_LINE):
            prefetch(table, ahead + np.uint64(column))
            total += table[row + np.uint64(column)]
    return total


@njit(cache=True)
def _scatter(entries: Any, table: Any, width: int) -> None:
    """Changes one number of every line of the listed rows."""
    columns, last = np.uint64(width), len(entries) - 1
    for at in range(len(entries)):
        ahead = np.uint64(entries[min(at + AHEAD, last)]) * columns
        row = np.uint64(entries[at]) * columns
        for column in range(0, width, PER_LINE):
            prefetch(table, ahead + np.uint64(column))
            table[row + np.uint64(column)] += 1.0
