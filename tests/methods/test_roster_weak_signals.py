"""Unequal classes, features or lists that say little: released statistics decide well, never far below the own predictor."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import graphveil as gv

SEEDS = range(5)
NOTHING = None  # lists of random strangers


def drawn(seed, share, strength, homophily, nodes=600, degree=8, width=30):
    """Two classes of ``share`` and 1 - share; one feature leans by ``strength``; same-class contacts are kept that often."""
    rng = np.random.default_rng([seed, 4])
    y = (rng.random(nodes) > share).astype(np.int64)
    x = rng.normal(size=(nodes, width))
    x[:, 0] += strength * (2 * y - 1)
    ends = rng.integers(0, nodes, (2, 3 * nodes * degree))
    if homophily is not NOTHING:
        same = y[ends[0]] == y[ends[1]]
        ends = ends[:, rng.random(ends.shape[1]) < np.where(same, homophily, 1 - homophily)]
    ends = ends[:, : nodes * degree // 2]
    kind = rng.permutation(nodes) / nodes
    masks = {"train_mask": kind < 0.75, "val_mask": (kind >= 0.75) & (kind < 0.85), "test_mask": kind >= 0.85}
    data = Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(np.concatenate([ends, ends[::-1]], axis=1)))
    data.y = torch.from_numpy(y)
    for name, mask in masks.items():
        data[name] = torch.from_numpy(mask)
    return data


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cover", [True, False])
@pytest.mark.parametrize(
    ("share", "strength", "homophily"),
    [
        (0.8, 0.0, NOTHING),
        (0.95, 0.0, NOTHING),
        (0.78, 0.5, 0.6),
        (0.8, 1.5, NOTHING),
        (0.95, 0.5, 0.6),
        (0.8, 0.0, 0.9),
    ],
)
def test_roster_is_not_below_the_majority_or_the_own_predictor_at_epsilon_one(share, strength, homophily, cover):
    """Mean over five seeds; the standard error of a difference on 90 test nodes each is at most about two points."""
    of_roster, of_features, of_majority = [], [], []
    for seed in SEEDS:
        data, promise = drawn(seed, share, strength, homophily), gv.NodeLevel(1.0)
        of_roster.append(gv.Roster(edge_cover=cover).fit(data, promise, seed=seed).score(data))
        of_features.append(gv.DpMlp().fit(data, promise, seed=seed).score(data))
        of_majority.append(float((data.y[data.test_mask] == 0).double().mean()))
    assert np.mean(of_roster) >= max(np.mean(of_features), np.mean(of_majority)) - 0.025
