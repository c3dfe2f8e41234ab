"""The scale benchmark: what it generates, how curves become exponents, and one small run from tables to predictions."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from graphveil.bench import scale
from graphveil.bench.people import write_edges, write_people
from graphveil.errors import InputError


def test_generated_people_have_the_class_of_their_slot_and_mostly_contacts_alike(tmp_path):
    write_people(tmp_path / "people.parquet", 3000, 4, 3)
    write_edges(tmp_path / "edges.parquet", 3000, 20_000, 3, homophily=0.7)
    people, edges = pq.read_table(tmp_path / "people.parquet"), pq.read_table(tmp_path / "edges.parquet")
    assert [int(group) for group in people["group"].to_pylist()] == [slot % 3 for slot in range(3000)]
    x = np.array(people["x"].to_pylist())
    for group in range(3):
        assert x[group::3].mean(axis=0).argmax() == group
    ends = np.array([[int(end) for end in edges[name].to_pylist()] for name in ("from", "to")])
    alike = np.mean(ends[0] % 3 == ends[1] % 3)
    assert 0.77 < alike < 0.83  # 0.7 and a third of the rest
    assert ends.min() == 0 and ends.max() < 3000
    assert np.bincount(ends.ravel()).max() > 10 * len(ends.T) * 2 / 3000  # there are hubs


def test_exponents_are_slopes_of_what_alone_was_varied():
    rows = [
        {
            "what": "ballot",
            "form": "folder",
            "nodes": n,
            "edges": m,
            "features": 8,
            "fit": m**1.5 * n,
            "peak_gib": n**0.5,
        }
        for n, m in ((10, 100), (10, 200), (10, 400), (20, 100), (40, 100), (80, 100))
    ]
    found = {row["in"]: row for row in scale.exponents([row | {"seconds": row["fit"]} for row in rows])}
    assert found["edges"]["cpu"] == pytest.approx(1.5) and found["edges"]["points"] == 3
    assert found["nodes"]["cpu"] == pytest.approx(1.0) and found["nodes"]["peak"] == pytest.approx(0.5)
    assert "features" not in found


def test_a_measurement_is_a_process_of_its_own_with_a_peak_of_its_own():
    ballast = np.ones(50_000_000)  # 0.4 GiB that the other process does not hold
    assert 0.01 < scale.apart(dict)["peak_gib"] < ballast.nbytes / 2**30


def test_a_small_graph_goes_from_tables_to_predictions_in_both_forms(graphveil, tmp_path, monkeypatch):
    monkeypatch.setattr(scale, "apart", lambda function, *given, threads=1: scale._with_peak(function, given))
    flags = ("--sizes", "600:6000:4", "--methods", "ballot", "--keep", tmp_path / "kept", "--plot", tmp_path / "s.svg")
    code, text, err = graphveil("bench", "scale", *flags, "--json")
    assert code == 0, err
    found = json.loads(text)
    whats = [(row["what"], row["form"]) for row in found["results"]]
    assert whats == [("import", "folder"), ("import", "memory"), ("ballot", "folder"), ("ballot", "memory")]
    stored, whole = (row for row in found["results"] if row["what"] == "ballot")
    assert stored["accuracy"] == whole["accuracy"] > 0.2  # the same numbers were released
    assert stored["fit"] > 0 and 0.01 < stored["peak_gib"] < 4
    assert [row["what"] for row in found["ratios"]] == ["ballot"]
    assert (tmp_path / "kept" / "600-6000-4" / "folder" / "graph.json").exists()
    assert (tmp_path / "s.svg").exists()


def test_a_size_that_is_none_is_refused():
    for text in ("1000", "10:0", "a:b", "1:2:3:4"):
        with pytest.raises(InputError, match="NODES:EDGES"):
            scale.Size.read(text)
