"""Inputs as factors give what the propagated rows give, and so do the gradients of a first layer on them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from graphveil.learn.arcs import Arcs
from graphveil.learn.backbones import ON_ARCS, as_lpgnn_builds
from graphveil.learn.propagated import PropagatedRows
from graphveil.methods.common.denoise import kprop
from graphveil.methods.common.published_network import along_arcs

NODES, WIDTH, STEPS, SCALE, SHIFT = 40, 60, 3, 2.5, 0.5


@pytest.fixture
def graph() -> tuple[np.ndarray, sp.csr_matrix, sp.csr_matrix]:
    coins = np.random.default_rng(0)
    arcs = np.unique(coins.integers(0, NODES - 1, (2, 150)), axis=1)  # the last one neither hears nor is heard
    places = np.arange(NODES), coins.integers(0, WIDTH, NODES)
    reports = sp.csr_matrix((coins.choice([-1, 1], NODES).astype(np.int8), places), (NODES, WIDTH))
    return arcs, along_arcs(arcs, NODES), reports


def dense_rows(matrix: sp.csr_matrix, reports: sp.csr_matrix) -> torch.Tensor:
    return torch.from_numpy(kprop(matrix, np.float32(SCALE) * reports.toarray().astype(np.float32) + SHIFT, STEPS))


@pytest.mark.parametrize("backbone", ON_ARCS)
def test_logits_and_gradients_are_those_of_the_rows_themselves(backbone: str, graph: tuple) -> None:
    pairs, matrix, reports = graph
    arcs = Arcs.of(pairs, NODES)
    found = []
    for x in (dense_rows(matrix, reports), PropagatedRows(matrix, reports, STEPS, SCALE, SHIFT)):
        network = as_lpgnn_builds(backbone, WIDTH, 8, 3, 0.0, 1)
        logits = network.above(network.first(x, arcs), arcs)
        logits.square().sum().backward()
        found.append([logits.detach(), *(p.grad for p in network.parameters() if p.grad is not None)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5 * float(one.abs().max() + 1))


def test_shape_is_that_of_the_reports(graph: tuple) -> None:
    _, matrix, reports = graph
    x = PropagatedRows(matrix, reports, STEPS, SCALE, SHIFT)
    assert x.shape == (NODES, WIDTH)
    assert len(x) == NODES


def test_factors_are_worth_it_for_wide_rows_of_few_entries_only() -> None:
    step = sp.identity(1000, format="csr")
    wide, narrow = (sp.random(1000, width, density=1 / width, format="csr", random_state=0) for width in (5000, 50))
    assert PropagatedRows.worth(step, wide, 4)
    assert not PropagatedRows.worth(step, narrow, 4)
    assert not PropagatedRows.worth(step, wide, 500)
