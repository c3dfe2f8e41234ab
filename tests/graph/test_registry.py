"""The registry's figures are recomputed from the files, and its preparations give the sizes the papers print."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from graphveil.graph import cards, load_dataset, statistics
from graphveil.graph.data.load import local_arrays
from graphveil.graph.data.measures import Statistics, class_insensitive_homophily, edge_homophily
from graphveil.graph.data.places import availability
from graphveil.graph.data.sources import content_digest
from graphveil.graph.formats.npz import read_arrays
from graphveil.graph.layout import data_from_arrays

FILES = sorted({card.file for card in cards().values() if card.sha256})
VARIANTS = [(name, variant) for name, card in cards().items() for variant in card.variants]
PAPERS = {
    "nip-gnn": ["cora", "citeseer", "lastfm-asia", "facebook-pages"],
    "lga-pgnn": [
        "cora",
        "citeseer",
        "pubmed",
        "deezer-hu",
        "deezer-ro",
        "facebook-pages",
        "amazon-computers",
        "amazon-photo",
        "coauthor-cs",
    ],
    "dpdgc": ["squirrel", "chameleon", "facebook100-uiuc", "pubmed", "amazon-computers", "cora", "amazon-photo"],
    "dpar": ["cora-ml", "ms-academic", "coauthor-cs", "reddit", "coauthor-physics"],
    "graphprivatizer": ["cora", "lastfm-asia", "pubmed", "facebook-pages", "amazon-photo"],
}


@cache
def figures_of(name: str, variant: str) -> Statistics:
    """Of a prepared data set, computed once for all tests that look at it."""
    return statistics(load_dataset(name, prepare=variant))


def readme_rows(folder: str) -> dict[str, list[str]]:
    """The printed statistics in the folder's README: name, nodes, edges, features, ..., homophily, class homophily."""
    path = Path(folder) / "README.md"
    if not path.is_file():
        pytest.skip("the data folder has no README.md with printed statistics")
    rows = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if re.search(r"\s+ok$", line)]
    return {row[0]: row[1:] for row in rows}


@pytest.mark.parametrize("name", FILES)
def test_every_known_file_loads_with_the_registered_and_printed_statistics(name: str, shared_data: str) -> None:
    card = cards()[name]
    data = load_dataset(name)
    figures = statistics(data)
    assert (figures.nodes, figures.edges, figures.features, figures.isolated) == (
        card.nodes,
        card.edges,
        card.features,
        card.isolated,
    )
    assert figures.classes == card.classes
    assert (figures.component_nodes, figures.component_edges) == card.component
    for measured, registered in ((figures.homophily, card.homophily), (figures.class_homophily, card.class_homophily)):
        assert measured == registered or measured == pytest.approx(registered, abs=5e-5)
    nodes, edges, features, nonzeros, classes, degree, isolated, component, *homophilies, _ = readme_rows(shared_data)[
        name
    ]
    assert [figures.nodes, figures.edges, figures.features] == [int(nodes), int(edges), int(features)]
    assert figures.classes == (0 if classes == "-" else int(classes))
    assert (figures.isolated, figures.component_nodes) == (int(isolated), int(component))
    assert f"{figures.nonzeros_per_node:.2f} {figures.mean_degree:.2f}" == f"{nonzeros} {degree}"
    if homophilies[0] != "-":
        labels = np.maximum(data.y.numpy(), 0)  # the README counts citeseer's unlabelled nodes as class 0
        arcs = data.edge_index.numpy()
        mine = [f"{edge_homophily(arcs, labels):.3f}", f"{class_insensitive_homophily(arcs, labels):.3f}"]
        assert mine == homophilies
    arrays = local_arrays(name)
    assert card.arcs == (arrays["directed_edge_index"].shape[1] if "directed_edge_index" in arrays else None)
    splits = 0 if "train_mask" not in arrays else 1 if arrays["train_mask"].ndim == 1 else arrays["train_mask"].shape[0]
    assert card.splits == splits


def test_the_registry_covers_every_file_of_the_folder_and_every_data_set_of_the_papers(shared_data: str) -> None:
    here = {path.stem for path in Path(shared_data).glob("*.npz")}
    assert here <= set(FILES) and len(here) == 26
    for paper, names in PAPERS.items():
        assert all(paper in cards()[name].variants for name in names)
    assert {"reddit", "deezer-hr", "facebook100-uiuc", "ms-academic"} <= cards().keys()


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_prepared_variants_have_the_printed_sizes_or_explain_the_difference(
    name: str, variant: str, shared_data: str
) -> None:
    if availability(name) != "here":
        pytest.skip(f"{name} is not in the data folder")
    entry = cards()[name].variants[variant]
    figures = figures_of(name, variant)
    mine = {
        "nodes": figures.nodes,
        "edges": figures.arcs if entry.counts == "arcs" else figures.edges,
        "features": figures.features,
        "classes": figures.classes,
    }
    different = {key for key, printed in entry.printed.items() if mine[key] != printed}
    assert different <= entry.differences.keys()
    if not variant.endswith("-node"):  # a bound of 100 may leave a sparse graph as it is
        assert different == entry.differences.keys()


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("squirrel", 0.0254),
        ("chameleon", 0.0620),
        ("pubmed", 0.6641),
        ("amazon-computers", 0.7002),
        ("cora", 0.7657),
        ("amazon-photo", 0.7722),
    ],
)
def test_the_homophily_printed_by_dpdgc_is_reproduced(name: str, printed: float, shared_data: str) -> None:
    assert round(figures_of(name, "dpdgc").class_homophily, 4) == printed


def test_content_checksums_of_pyg_sources_are_those_of_the_known_files(shared_data: str) -> None:
    """What PyG's classes make of the same sources: no arcs for most, no names, features clipped by its reader."""
    for name, card in cards().items():
        if card.pyg is None or card.pyg.content is None:
            continue
        arrays = read_arrays(Path(shared_data) / f"{card.file}.npz")
        arrays.pop("class_names", None)
        if not card.pyg.arcs:
            arrays.pop("directed_edge_index", None)
        if card.pyg.features == "clipped":
            arrays.pop("x_data")
            arrays["x_binary"] = np.array(True)
        assert content_digest(arrays) == card.pyg.content, name


def test_every_card_says_what_it_is_and_where_it_comes_from() -> None:
    for card in cards().values():
        assert card.summary and card.licence and card.citation and card.origin
        assert card.sha256 or card.pyg or card.notes
        for variant in card.variants.values():
            assert variant.counts in ("edges", "arcs") and variant.differences.keys() <= variant.printed.keys()
            assert variant.split is None or sum(variant.split) == pytest.approx(1)


def test_data_from_a_file_declare_directedness(shared_data: str) -> None:
    assert data_from_arrays(read_arrays(Path(shared_data) / "cora-ml.npz")).directed is False
