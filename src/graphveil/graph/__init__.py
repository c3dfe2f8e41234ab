"""What we learn from: data sets, file formats, validation, splits, synthetic graphs and contact lists.

Tables (:mod:`graphveil.graph.formats.importing`) and pictures (:mod:`graphveil.report.graph_plots`) have their own modules.
"""

from graphveil.graph.data.load import dataset_names, load_dataset
from graphveil.graph.data.measures import Statistics, statistics
from graphveil.graph.data.preparation import prepare
from graphveil.graph.data.registry import Card, cards
from graphveil.graph.data.splits import (
    inductive_split,
    official_split,
    per_class_split,
    random_split,
    seeded_splits,
    stratified_split,
)
from graphveil.graph.data.synthetic import csbm, powerlaw_sbm
from graphveil.graph.formats.convert import from_networkx, from_scipy, to_networkx, to_scipy_graph
from graphveil.graph.formats.npz import read_npz, write_npz
from graphveil.graph.graph import KINDS, UNLABELLED, Graph
from graphveil.graph.lists import GRID, Lists
from graphveil.graph.rows import DenseRows, Rows, SparseRows
from graphveil.graph.validate import validate

__all__ = [
    "GRID",
    "KINDS",
    "UNLABELLED",
    "Card",
    "DenseRows",
    "Graph",
    "Lists",
    "Rows",
    "SparseRows",
    "Statistics",
    "cards",
    "csbm",
    "dataset_names",
    "from_networkx",
    "from_scipy",
    "inductive_split",
    "load_dataset",
    "official_split",
    "per_class_split",
    "powerlaw_sbm",
    "prepare",
    "random_split",
    "read_npz",
    "seeded_splits",
    "statistics",
    "stratified_split",
    "to_networkx",
    "to_scipy_graph",
    "validate",
    "write_npz",
]
