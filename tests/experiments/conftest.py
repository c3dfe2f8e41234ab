"""Small experiments on generated graphs."""

from __future__ import annotations

import pytest

from graphveil.experiments.read import experiment_from
from tests.cli.conftest import graphveil  # noqa: F401 - a fixture

SMALL = {"name": "powerlaw-sbm", "options": {"nodes": 120, "features": 6, "classes": 3}}
OTHER = {"name": "csbm", "options": {"nodes": 100, "features": 6}}


@pytest.fixture
def body():
    """What a specification holds: two methods, one data set, two epsilons, two seeds."""
    return {
        "name": "small",
        "methods": [{"name": "dp-mlp", "options": {"steps": 3}}, {"name": "gap", "options": {"steps": 2, "hidden": 4}}],
        "data": [SMALL],
        "promises": [{"level": "node"}],
        "epsilons": [1, 4],
        "seeds": 2,
    }


@pytest.fixture
def experiment(body):
    return experiment_from(body, "small.yaml")
