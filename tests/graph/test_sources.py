"""Downloads through PyG's classes, from a server on the loopback interface."""

from __future__ import annotations

import dataclasses
import io
import pickle
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
import torch_geometric.datasets
from torch_geometric.data import Data

from graphveil.errors import InputError
from graphveil.graph import load_dataset
from graphveil.graph.data import registry
from graphveil.graph.data.sources import RAW, content_digest


def planetoid_files(data: Data) -> dict[str, bytes]:
    """Cora in Planetoid's own raw format: training rows, test rows in the order of test.index, a dictionary of lists."""
    x = sp.csr_matrix(data.x.to_dense().numpy())
    y = np.eye(7, dtype=np.int32)[data.y.numpy()]
    order = np.random.default_rng(0).permutation(np.arange(1708, 2708))
    graph: dict[int, list[int]] = {node: [] for node in range(2708)}
    for u, v in data.edge_index.T.tolist():
        graph[u].append(v)
    parts = {
        "x": x[:140],
        "tx": x[order],
        "allx": x[:1708],
        "y": y[:140],
        "ty": y[order],
        "ally": y[:1708],
        "graph": graph,
    }
    files = {f"ind.cora.{name}": pickle.dumps(part) for name, part in parts.items()}
    return files | {"ind.cora.test.index": "".join(f"{node}\n" for node in order).encode()}


@pytest.fixture
def planetoid(cora: Data, serve, alone: Path, monkeypatch: pytest.MonkeyPatch):
    server = serve(planetoid_files(cora))
    monkeypatch.setattr(torch_geometric.datasets.Planetoid, "url", server.url)
    return server


def test_cora_downloaded_through_pyg_equals_the_known_file(planetoid, cora: Data, alone: Path) -> None:
    data = load_dataset("cora", seed=0)
    assert torch.equal(data.x.to_dense(), cora.x.to_dense())
    for name in ("y", "edge_index", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(data[name], cora[name])
    assert sorted(path.relative_to(alone).as_posix() for path in alone.rglob("*") if path.is_file()) == [
        "built/cora.npz",
        "built/cora.npz.sha256",
    ]
    requests = len(planetoid.requests)
    assert requests == 8
    load_dataset("cora", seed=1)
    assert len(planetoid.requests) == requests  # the second load comes from the cache


def test_a_download_that_breaks_off_is_resumed_by_the_next_load(planetoid, alone: Path) -> None:
    planetoid.break_after = [10**9, 10**9, 5000, 5000, 5000]
    with pytest.raises(InputError, match=r"cannot download ind\.cora\.allx .* put it into .*Cora/raw"):
        load_dataset("cora")
    assert not (alone / "built").exists()
    load_dataset("cora")
    names = [name for name, _ in planetoid.requests]
    assert names.count("ind.cora.x") == 1 and planetoid.requests[5] == ("ind.cora.allx", "bytes=15000-")


def test_a_tampered_download_is_refused_and_deleted(planetoid, alone: Path) -> None:
    graph = pickle.loads(planetoid.files["ind.cora.graph"])
    graph[0].append(2000)
    planetoid.files["ind.cora.graph"] = pickle.dumps(graph)
    with pytest.raises(
        InputError, match=r"cora is not the known data set \(content checksum differs\): it was deleted"
    ):
        load_dataset("cora")
    assert [path for path in alone.rglob("*") if path.is_file()] == []


def test_a_damaged_download_is_refused_and_deleted(planetoid, alone: Path) -> None:
    planetoid.files["ind.cora.graph"] = b"not a pickle"
    with pytest.raises(InputError, match="the downloaded files of cora are damaged"):
        load_dataset("cora")
    assert [path for path in alone.rglob("*") if path.is_file()] == []


def test_a_cached_file_that_was_changed_is_refused(planetoid, alone: Path) -> None:
    load_dataset("cora")
    path = alone / "built" / "cora.npz"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(InputError, match=r"cora\.npz is not the known file"):
        load_dataset("cora")


def amazon_file(data: Data) -> bytes:
    """The raw format of the Amazon files: one CSR matrix of edges in one direction, one of attributes, labels."""
    arcs = data.edge_index.numpy()
    arcs = arcs[:, arcs[0] < arcs[1]]
    nodes = int(data.num_nodes)
    adjacency = sp.coo_matrix((np.ones(arcs.shape[1]), tuple(arcs)), shape=(nodes, nodes)).tocsr()
    attributes = sp.csr_matrix((data.x.numpy() > 1).astype(np.float32))
    buffer = io.BytesIO()
    np.savez(
        buffer,
        **{f"adj_{key}": getattr(adjacency, key) for key in ("data", "indices", "indptr", "shape")},
        **{f"attr_{key}": getattr(attributes, key) for key in ("data", "indices", "indptr", "shape")},
        labels=data.y.numpy(),
    )
    return buffer.getvalue()


@pytest.fixture
def photo(serve, alone: Path, monkeypatch: pytest.MonkeyPatch):
    """A small stand-in for amazon-photo, with a card whose checksum is not known."""
    from graphveil.graph import powerlaw_sbm

    graph = powerlaw_sbm(0, nodes=60, classes=3, features=4)
    server = serve({"amazon_electronics_photo.npz": amazon_file(graph)})
    monkeypatch.setattr(torch_geometric.datasets.Amazon, "url", server.url + "/")
    known = registry.cards()["amazon-photo"]
    card = dataclasses.replace(
        known,
        nodes=60,
        edges=graph.num_edges // 2,
        classes=3,
        pyg=dataclasses.replace(known.pyg, content=None),
    )
    monkeypatch.setitem(registry.cards(), "amazon-photo", card)
    return server, graph, card


def test_a_source_without_known_checksum_is_checked_by_size_and_says_so(photo) -> None:
    _, graph, _ = photo
    data = load_dataset("amazon-photo")
    assert torch.equal(data.edge_index, graph.edge_index) and data.num_classes == 3
    assert any("no checksum of this data set is known" in note for note in data.notes)


def test_a_source_of_the_wrong_size_is_refused(photo, monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, card = photo
    monkeypatch.setitem(registry.cards(), "amazon-photo", dataclasses.replace(card, edges=card.edges + 1))
    with pytest.raises(InputError, match="edges instead of"):
        load_dataset("amazon-photo")


def test_a_set_that_cannot_be_downloaded_says_which_file_goes_where(alone: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_dataset("facebook100-berkeley")
    assert "facebook100-berkeley.npz" in str(caught.value) and str(alone) in str(caught.value)


def test_every_pyg_source_names_a_class_and_absolute_addresses() -> None:
    for card in registry.cards().values():
        if card.pyg is not None:
            raw = RAW[card.pyg.dataset](getattr(torch_geometric.datasets, card.pyg.dataset), card.pyg.name)
            assert raw.folder.endswith("raw") and raw.urls and all(url.startswith("https://") for url in raw.urls)


def test_raw_folders_and_files_are_those_pyg_looks_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all raw files in place PyG must not download: its own list of raw files is compared with ours."""

    class Stop(Exception):
        pass

    def stop(*_: object) -> None:
        raise Stop

    for card in registry.cards().values():
        if card.pyg is None or card.pyg.dataset in ("Reddit", "PolBlogs"):  # archives, unpacked by PyG's own download
            continue
        source = getattr(torch_geometric.datasets, card.pyg.dataset)
        raw = RAW[card.pyg.dataset](source, card.pyg.name)
        folder = tmp_path / card.name / raw.folder
        folder.mkdir(parents=True)
        for url in raw.urls:
            (folder / url.rsplit("/", 1)[-1]).touch()
        monkeypatch.setattr(source, "download", lambda self: pytest.fail(f"{type(self).__name__} would download"))
        monkeypatch.setattr(source, "process", stop)
        options = {"name": card.pyg.name} if card.pyg.name else {}
        with pytest.raises(Stop):
            source(root=str(tmp_path / card.name), **options)


def test_the_content_digest_reads_names_types_shapes_and_values() -> None:
    base = {"a": np.arange(4, dtype=np.int32)}
    variants = [
        {"b": base["a"]},
        {"a": base["a"].astype(np.int64)},
        {"a": base["a"].reshape(2, 2)},
        {"a": base["a"][::-1]},
    ]
    assert len({content_digest(each) for each in [base, *variants]}) == 5
