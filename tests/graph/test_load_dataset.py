"""``load_dataset``: search order, checksums, splits, options."""

from __future__ import annotations

import shutil
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from graphveil.errors import InputError
from graphveil.graph import cards, load_dataset, write_npz
from graphveil.graph.data.places import WHEEL, availability, cora_arrays, wheel_files
from graphveil.graph.validate import validate

MASKS = ("train_mask", "val_mask", "test_mask")
needs_wheel = pytest.mark.skipif(wheel_files() is None, reason=f"{WHEEL} is not installed")


@needs_wheel
def test_cora_of_the_wheel_is_identical_to_the_known_file(
    shared_data: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from graphveil.graph.formats.npz import read_arrays

    known = read_arrays(Path(shared_data) / "cora.npz", sha256=cards()["cora"].sha256)
    found = cora_arrays(wheel_files())
    assert known.keys() == found.keys()
    for name in known:
        assert known[name].dtype == found[name].dtype and np.array_equal(known[name], found[name]), name
    from_file = load_dataset("cora", seed=5)
    monkeypatch.delenv("GRAPHVEIL_DATA")
    monkeypatch.setenv("GRAPHVEIL_CACHE", str(tmp_path))
    from_wheel = load_dataset("cora", seed=5)
    for name in ("y", "edge_index", *MASKS):
        assert torch.equal(from_file[name], from_wheel[name])
    assert (from_file.num_classes, from_file.directed, from_file.name) == (7, False, "cora")


@needs_wheel
def test_the_wheel_is_read_without_importing_its_package(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphveil.graph.data.load.wheel_files", wheel_files)
    data = load_dataset("cora")
    assert WHEEL not in sys.modules
    assert (data.num_nodes, data.num_edges, data.x.shape[1], data.num_classes) == (2708, 2 * 5278, 1433, 7)


@needs_wheel
def test_a_changed_file_of_the_wheel_is_refused(tmp_path: Path) -> None:
    paths = tuple(Path(shutil.copy(path, tmp_path)) for path in wheel_files())
    paths[1].write_bytes(paths[1].read_bytes() + b"x")
    with pytest.raises(InputError, match=r"cora_rels\.parquet\.gzip is not the known file"):
        cora_arrays(paths)


def test_a_machine_without_the_wheel_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> None:
        raise metadata.PackageNotFoundError

    monkeypatch.setattr("graphveil.graph.data.places.metadata.distribution", missing)
    assert wheel_files() is None


def test_the_data_folder_comes_before_the_cache(
    small: Data, alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone.mkdir()
    write_npz(small, alone / "mine.npz")
    assert load_dataset("mine").num_classes == 2 and load_dataset("mine").name == "mine"
    (tmp_path / "data").mkdir()
    small.num_classes = 9
    write_npz(small, tmp_path / "data" / "mine.npz")
    monkeypatch.setenv("GRAPHVEIL_DATA", str(tmp_path / "data"))
    assert load_dataset("mine").num_classes == 9
    assert load_dataset(tmp_path / "data" / "mine.npz").name == "mine"


def test_a_known_name_with_another_content_is_refused(small: Data, alone: Path) -> None:
    alone.mkdir()
    write_npz(small, alone / "citeseer.npz")
    with pytest.raises(InputError, match=r"citeseer\.npz is not the known file \(sha256 differs\)"):
        load_dataset("citeseer")


def test_an_unknown_name_gets_close_matches(alone: Path) -> None:
    with pytest.raises(InputError, match=r"unknown data set 'amazon-foto': did you mean amazon-photo"):
        load_dataset("amazon-foto")
    with pytest.raises(InputError, match="see `graphveil datasets`"):
        load_dataset("qqqqqq")
    with pytest.raises(InputError, match="No such file"):
        load_dataset("nowhere.npz")


def test_the_split_is_75_10_15_and_follows_the_seed(cora: Data) -> None:
    assert [int(cora[name].sum()) for name in MASKS] == [2031, 271, 406]
    assert torch.equal(load_dataset("cora", seed=0).train_mask, cora.train_mask)
    assert not torch.equal(load_dataset("cora", seed=1).train_mask, cora.train_mask)


def test_every_kind_of_split_can_be_asked_for_by_name(cora: Data) -> None:
    sizes = {
        split: [int(load_dataset("cora", split=split)[name].sum()) for name in MASKS]
        for split in ("random", "stratified", "per-class", "official", "inductive")
    }
    assert sizes["official"] == sizes["per-class"] == [140, 500, 1000]
    assert sizes["random"] == sizes["inductive"] == [2031, 271, 406] and sum(sizes["stratified"]) == 2708
    inductive = load_dataset("cora", split="inductive")
    crossing = inductive.test_mask[inductive.edge_index]
    assert (crossing[0] == crossing[1]).all() and 0 < inductive.num_edges < cora.num_edges


def test_a_paper_brings_its_preparation_and_its_split(cora: Data) -> None:
    data = load_dataset("cora", prepare="graphprivatizer", split="paper")
    assert [int(data[name].sum()) for name in MASKS] == [1354, 677, 677]
    assert load_dataset("cora", prepare="lga-pgnn").num_nodes == 2485
    assert load_dataset("cora", prepare=["largest-component", "clip-counts"]).num_nodes == 2485
    assert load_dataset("cora", prepare="largest-component,drop-isolated").num_nodes == 2485
    with pytest.raises(InputError, match="dpar does not use cora: papers that do: nip-gnn, lga-pgnn"):
        load_dataset("cora", prepare="dpar")
    with pytest.raises(InputError, match="needs prepare="):
        load_dataset("cora", split="paper")
    with pytest.raises(InputError, match="unknown split 'half'"):
        load_dataset("cora", split="half")


def test_a_degree_bound_is_recorded_as_an_assumption(cora: Data) -> None:
    data = load_dataset("cora", max_degree=10)
    graph = validate(data)
    assert graph.lists.out_degrees.max() == 10 and any("cut to 10 entries" in note for note in graph.notes)


def test_unlabelled_nodes_of_a_benchmark_are_in_no_mask(shared_data: str) -> None:
    data = load_dataset("citeseer")
    unlabelled = data.y == -1
    assert int(unlabelled.sum()) == 15 and not any((data[name] & unlabelled).any() for name in MASKS)
    assert "15 nodes have no label" in data.notes[0] and data.num_classes == 6


def test_own_files_keep_masks_that_read_the_number_of_nodes_only(small: Data, tmp_path: Path) -> None:
    write_npz(small, tmp_path / "g.npz")
    data = load_dataset(tmp_path / "g.npz", fractions=(0.4, 0.3, 0.3))
    assert sum(int(data[name].sum()) for name in MASKS) == 7 and "notes" not in data


def test_arcs_and_undirected_view_of_a_directed_source(shared_data: str) -> None:
    assert load_dataset("chameleon").num_edges == 2 * 31371
    arcs = load_dataset("chameleon", directed=True)
    assert arcs.directed and arcs.num_edges == 36051
    assert "directed_edge_index" not in load_dataset("chameleon")
    with pytest.raises(InputError, match="this graph is undirected"):
        load_dataset("cora", directed=True)


def test_official_splits_are_chosen_by_the_seed(shared_data: str) -> None:
    first, again, other = (load_dataset("actor", seed=seed, split="official").train_mask for seed in (0, 10, 3))
    assert torch.equal(first, again) and not torch.equal(first, other) and first.shape == (7600,)


def test_generated_graphs_take_options_and_refuse_others() -> None:
    data = load_dataset("csbm", seed=1, nodes=100, features=5, phi=0.1)
    assert data.num_nodes == 100 and data.name == "csbm" and data.num_classes == 2
    with pytest.raises(
        InputError, match="csbm has no option 'colour': it takes nodes, features, average_degree, phi, arc"
    ):
        load_dataset("csbm", colour=1)
    with pytest.raises(InputError, match="only generated graphs take options"):
        load_dataset("cora", phi=1)


def test_availability_is_told_without_reading(alone: Path, small: Data) -> None:
    assert [availability(name) for name in ("cora", "facebook100-uiuc", "csbm")] == ["download", "by hand", "generated"]
    alone.mkdir()
    write_npz(small, alone / "cora.npz")
    assert availability("cora") == "here"


def test_multi_label_sets_need_a_chosen_label(shared_data: str) -> None:
    with pytest.raises(InputError, match="data has no labels"):
        validate(load_dataset("deezer-ro"))
    graph = validate(load_dataset("deezer-ro", prepare="lga-pgnn"))
    assert graph.classes == 2 and graph.features == 83
