"""Listing data sets, importing tables and handling graph files must not wait for torch."""

from __future__ import annotations

import subprocess
import sys

import pytest

import graphveil.graph

HEAVY = {"matplotlib", "numba", "pandas", "sklearn", "torch", "torch_geometric"}
WORK = {
    "datasets": "from graphveil.cli.datasets import datasets; datasets()",
    "import": (
        "from graphveil.cli.import_graph import import_tables; from pathlib import Path;"
        "Path('e.csv').write_text('from,to\\na,b\\nb,c\\n'); import_tables(Path('e.csv'), Path('g.npz'))"
    ),
    "files": (
        "import numpy as np, scipy.sparse as sp; from graphveil.graph.formats.npz import feature_arrays;"
        "from graphveil.graph.formats.npz import read_arrays, write_arrays;"
        "arrays = feature_arrays(sp.eye(2, format='csr')) | {'edge_index': np.array([[0], [1]])};"
        "read_arrays(write_arrays(arrays, 'g.npz'))"
    ),
    "types": "from graphveil.graph import Graph, Lists, DenseRows; from graphveil.graph.unit import unit_array",
}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The heavy libraries that are there after each piece of work, all done by one process one after the other."""
    count = f"print('loaded:', *({HEAVY!r} & sys.modules.keys()), file=sys.stderr)"
    script = "\n".join(["import sys", *(f"{work}\n{count}" for work in WORK.values())])
    folder = tmp_path_factory.mktemp("light")
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [line.split()[1:] for line in done.stderr.splitlines() if line.startswith("loaded:")]
    return dict(zip(WORK, map(set, lines), strict=True))


@pytest.mark.parametrize("work", WORK)
def test_light_work_loads_no_heavy_library(work: str, loaded: dict[str, set[str]]) -> None:
    assert not loaded[work]


def test_every_public_name_is_listed_once_and_exists() -> None:
    names = graphveil.graph.__all__
    assert len(names) == len(set(names)) and dir(graphveil.graph) == names
    assert all(getattr(graphveil.graph, name) is not None for name in names)
    with pytest.raises(AttributeError, match="nothing"):
        _ = graphveil.graph.nothing
