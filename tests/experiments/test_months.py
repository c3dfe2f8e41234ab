"""The two exports of ``benchmarks/months.py``: one person in ten is new, one edge in ten another, roles stay."""

import runpy
from pathlib import Path

import numpy as np

MONTHS = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "months.py"))


def test_two_months_differ_by_a_tenth_of_the_people_and_of_the_edges(cora):
    del cora  # skips where it is not there
    first, second = MONTHS["two_months"]("cora", 3)
    place = {name: row for row, name in enumerate(second.ids)}
    rows = np.array([place[name] for name in first.ids])
    assert first.num_nodes == round(0.9 * second.num_nodes)
    for mask in ("train_mask", "val_mask", "test_mask"):
        assert (second[mask].numpy()[rows] == first[mask].numpy()).all()
    assert (second.y.numpy()[rows] == first.y.numpy()).all()
    then = {tuple(pair) for pair in rows[first.edge_index.numpy()].T.tolist()}
    now = {tuple(pair) for pair in second.edge_index.numpy().T.tolist()}
    assert 0.86 < len(then & now) / len(then) < 0.92
    assert {(b, a) for a, b in then} == then and {(b, a) for a, b in now} == now
