"""Sums along lists: equal to scipy's on the grid, whatever the width, and measured with all the fields of a report."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from graphveil.bench import aggregate
from graphveil.graph.kernels.lines import LINE, on_lines, zeros_on_lines
from graphveil.graph.kernels.list_sums import placed
from graphveil.graph.lists import OwnLists, on_grid


def drawn(width: int) -> tuple[OwnLists, sp.csr_matrix, np.ndarray]:
    rng = np.random.default_rng(width)
    lists = sp.random(70, 50, 0.2, format="csr", rng=rng)
    lists.data[:] = 1
    return OwnLists(lists.indptr, lists.indices, 50), lists, rng


@pytest.mark.parametrize("width", [1, 3, 4, 7, 8, 11, 16, 23])
def test_both_directions_equal_scipys_product_to_the_last_bit(width: int) -> None:
    own, matrix, rng = drawn(width)
    table, values = (on_grid(rng.uniform(-1, 1, (rows, width))) for rows in (50, 70))
    values[::3] = 0
    assert np.array_equal(own.read(table), matrix @ table)
    assert np.array_equal(own.spread(values), matrix.T @ values)


def test_lists_by_place_keep_the_receivers_alone_in_their_order() -> None:
    own, matrix, rng = drawn(2)
    receives = rng.random(50) < 0.4
    place = np.where(receives, np.cumsum(receives) - 1, -1).astype(np.int32)
    starts, places = placed(own.starts, own.entries, place)
    kept = matrix[:, receives].tocsr()
    assert np.array_equal(starts, kept.indptr)
    assert np.array_equal(places, kept.indices)


def test_large_tables_are_moved_to_the_beginning_of_a_line() -> None:
    assert zeros_on_lines(5, 3).ctypes.data % LINE == 0
    room = zeros_on_lines(70_000, 16).ravel()
    off = room[2 : 2 + 16 * 60_000].reshape(60_000, 16)
    off[...] = np.arange(16)
    moved = on_lines(off)
    assert off.ctypes.data % LINE and moved.ctypes.data % LINE == 0
    assert np.array_equal(moved, off)


def test_a_small_run_reports_rates_shares_ratios_and_exact_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregate, "STREAM", 1000)
    report = aggregate.run(nodes=60, edges=300, width=5, repeats=1)
    assert report["exact"]
    assert set(report["rates_gb_s"]) == {"sequential", "gather", "scatter"}
    for result in report["results"]:
        assert result["ours_ms"] >= 0 and result["two_threads_ms"] >= 0
        assert result["ok"] == (result["scipy_over_ours"] >= 1.2 and result["share"] >= 0.6)
    read, spread = report["results"]
    entries, starts = report["edges"], 60 * 4
    assert read["bytes"] == entries * (5 * 8 + 4) + 60 * 5 * 8 + starts
    assert spread["bytes"] == entries * (2 * 5 * 8 + 4) + 60 * 2 * 5 * 8 + starts
    assert "equal scipy's to the last bit" in aggregate.as_text(report)
    assert "SUMS DIFFER" in aggregate.as_text(report | {"exact": False})
