"""Stand-ins have the sizes, the homophily, the degrees and the feature strength that were stated."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from graphveil.errors import InputError
from graphveil.graph import load_dataset, stand_in, statistics
from graphveil.graph.data.words import feature_strength
from graphveil.graph.layout import scipy_features
from graphveil.graph.validate import validate


def test_sizes_masks_degrees_and_homophily_are_the_stated_ones():
    data = stand_in(
        1, nodes=4000, features=40, classes=4, mean_degree=9, homophily=0.6, train=1000, validation=200, test=300
    )
    figures = statistics(data)
    assert (figures.nodes, figures.features, figures.classes) == (4000, 40, 4)
    assert [int(data[f"{kind}_mask"].sum()) for kind in ("train", "val", "test")] == [1000, 200, 300]
    assert figures.mean_degree == pytest.approx(9, rel=0.12) and figures.homophily == pytest.approx(0.6, abs=0.03)
    assert figures.max_degree > 10 * figures.degree_quantiles["50%"]
    assert figures.isolated < 40  # only whose own edge was a loop
    shares = np.array(figures.class_sizes) / 4000
    assert shares[0] > 1.3 * shares[3]
    assert validate(data).lists.duplicates == 0 and data.is_undirected()


def test_low_homophily_and_directed_lists():
    data = stand_in(2, nodes=3000, features=0, classes=5, mean_degree=10, homophily=0.1, directed=True)
    assert data.directed and not data.is_undirected() and data.x.shape == (3000, 0)
    assert statistics(data).homophily == pytest.approx(0.1, abs=0.03)
    assert data.num_edges / 3000 == pytest.approx(10, rel=0.12)


def test_equal_seeds_give_equal_graphs():
    first, again, other = (load_dataset("stand-in", seed=seed, split="official", nodes=300) for seed in (4, 4, 5))
    assert torch.equal(first.edge_index, again.edge_index) and torch.equal(first.y, again.y)
    assert torch.equal(first.x.to_dense(), again.x.to_dense()) and torch.equal(first.train_mask, again.train_mask)
    assert not torch.equal(first.y, other.y)


@pytest.mark.parametrize(
    ("features", "words", "strength"), [(400, 15, 0.3), (400, 15, 0.8), (200, 80, 0.5), (6, 1, 0.5)]
)
def test_an_ordinary_classifier_reaches_the_stated_strength(features, words, strength):
    """Measured by another classifier than the one of the calibration (a standard error is 0.025)."""
    data = stand_in(
        3, nodes=3200, features=features, classes=4, feature_strength=strength, words=words, misfits=0.3, imbalance=0.7
    )
    x, y = scipy_features(data), data.y.numpy()
    x = x.multiply(1 / np.maximum(np.sqrt(x.multiply(x).sum(axis=1)), 1e-12)).tocsr()
    accuracy = LogisticRegression(C=5.0).fit(x[:2400], y[:2400]).score(x[2400:], y[2400:])
    largest = np.bincount(y).max() / y.size
    assert (accuracy - largest) / (1 - largest) == pytest.approx(strength, abs=0.08)


def test_strength_is_zero_for_noise_and_one_for_labels():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 900)
    assert feature_strength(csr_matrix(np.eye(3)[labels]), labels) == 1
    assert abs(feature_strength(csr_matrix(rng.standard_normal((900, 5))), labels)) < 0.12


def test_people_of_a_circle_share_contacts():
    def common(circles):
        data = stand_in(5, nodes=1500, features=0, classes=3, homophily=0.3, mean_degree=12, circles=circles, misfits=0)
        a = torch.zeros(1500, 1500)
        a[data.edge_index[0], data.edge_index[1]] = 1
        shared = (a @ a).fill_diagonal_(0)
        return float((shared**2).sum() / shared.sum())

    assert common(1.0) > 1.5 * common(0.0)


def test_nobody_gets_misfits_right():
    """The class of most of one's neighbours, all labels known: without misfits it is nearly always one's own."""

    def votes(misfits):
        data = stand_in(6, nodes=2000, features=0, classes=4, homophily=0.75, feature_strength=0.5, misfits=misfits)
        tally = torch.zeros(2000, 4).index_add_(0, data.edge_index[0], torch.eye(4)[data.y[data.edge_index[1]]])
        assert statistics(data).homophily == pytest.approx(0.75, abs=0.04)
        return float((tally.argmax(dim=1) == data.y).float().mean())

    assert votes(0.0) > 0.93 and votes(1.0) < 0.9


@pytest.mark.parametrize(
    "options",
    [{"homophily": 1.2}, {"feature_strength": -1}, {"classes": 1}, {"nodes": 5}, {"mean_degree": 0}, {"words": 0}]
    + [{"nodes": 50, "train": 40, "test": 20}],
)
def test_impossible_stand_ins_are_explained(options):
    with pytest.raises(InputError, match="stand-in"):
        stand_in(0, **options)
