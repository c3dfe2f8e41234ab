"""A generated graph with hubs and communities that every attack can win on."""

from __future__ import annotations

import pytest

import graphveil as gv
from graphveil.attacks.target import as_graph
from graphveil.graph import powerlaw_sbm, random_split


@pytest.fixture(scope="session")
def data():
    """600 nodes with hubs, four classes, features that follow the class."""
    return random_split(powerlaw_sbm(1, nodes=600, features=16, classes=4, average_degree=5.0, signal=2.0), seed=0)


@pytest.fixture(scope="session")
def graph(data):
    return as_graph(data)


@pytest.fixture(scope="session")
def gcn(data):
    return gv.Gcn(epochs=60, hidden=16).fit(data, gv.NonPrivate(), seed=0)


@pytest.fixture(scope="session")
def hard():
    """600 nodes whose features hardly tell the class: a model that fits them must have learned them by heart."""
    return random_split(powerlaw_sbm(1, nodes=600, features=64, classes=4, average_degree=5.0, signal=0.3), seed=0)
