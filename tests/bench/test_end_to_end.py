"""Whole runs against PyG and Opacus: what is reported, and that the peers spend what they claim."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from graphveil.bench import end_to_end
from graphveil.errors import InputError

pytest.importorskip("opacus")

from graphveil.bench.peers import gap, training
from graphveil.bench.peers.training import Settings, noise_multiplier, spent


def tiny(seed: int) -> Data:
    rng = np.random.default_rng(seed)
    y = torch.from_numpy(rng.integers(0, 2, 120))
    x = torch.randn(120, 6, generator=torch.Generator().manual_seed(seed))
    x[:, 0] += 4 * y
    ends = rng.integers(0, 120, (2, 400))
    kind = torch.from_numpy(rng.integers(0, 4, 120))
    data = Data(x=x, y=y, edge_index=torch.from_numpy(np.concatenate([ends, ends[::-1]], axis=1)))
    data.train_mask, data.val_mask, data.test_mask = kind >= 2, kind == 1, kind == 0
    data.num_classes, data.directed, data.ids = 2, False, np.arange(120).astype(str)
    return data


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("clipping", ["ghost", "hooks"])
def test_a_tiny_run_reports_times_accuracies_and_where_promises_differ(
    clipping: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(end_to_end, "EPOCHS", {"gap": 2, "dpdgc": 2})
    told: list[tuple[str, int, int]] = []
    report = end_to_end.run(tiny, 8.0, [3], clipping=clipping, progress=lambda *state: told.append(state))
    assert told[-1] == ("end-to-end", 4, 4)
    assert report["promise"] == {"level": "node", "adjacency": "record", "relation": "zero-out", "epsilon": 8.0}
    for row, method in zip(report["results"], ("gap", "dpdgc"), strict=True):
        assert row["method"] == method
        assert row["ours_cpu_s"] > 0 and row["peer_cpu_s"] > 0
        assert 0 <= row["peer_accuracy"] <= 1 and row["ours_runs"][0]["seed"] == 3
        assert row["ours_runs"][0]["delta"] == row["peer_runs"][0]["delta"]
        assert row["ok"] == (row["peer_over_ours"] >= 10 and row["accuracy_gain"] >= 0)
        assert row["differences"] in end_to_end.as_text(report)


def test_unknown_peers_and_ways_of_clipping_are_refused() -> None:
    with pytest.raises(InputError, match="no peer for roster"):
        end_to_end.run(tiny, methods=["roster"])
    with pytest.raises(InputError, match="ghost or hooks"):
        end_to_end.run(tiny, clipping="flat")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("sums", [0, 2])
def test_opacus_own_accountants_agree_with_the_epsilon_that_the_peers_claim(sums: int) -> None:
    from opacus.accountants import PRVAccountant, RDPAccountant

    steps, rate, delta = 660, 1 / 66, 1e-5
    noise = noise_multiplier(8.0, delta, 2, sums, steps, rate)
    claimed = spent(noise, delta, 2, sums, steps, rate)
    assert 7.9 < claimed <= 8.0
    history = [(noise, rate, 2 * steps), (noise, 1.0, sums)][: 1 + bool(sums)]
    tight, loose = PRVAccountant(), RDPAccountant()
    tight.history = loose.history = history
    assert tight.get_epsilon(delta, eps_error=0.03) == pytest.approx(claimed, abs=0.06)
    assert loose.get_epsilon(delta) > claimed


def test_noise_is_for_the_batches_that_opacus_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    from opacus import PrivacyEngine

    drawn: list[tuple[float, int]] = []
    make = PrivacyEngine.make_private

    def watched(self: PrivacyEngine, **given: object) -> object:
        made = make(self, **given)
        drawn.append((made[-1].sample_rate, len(made[-1])))
        return made

    monkeypatch.setattr(PrivacyEngine, "make_private", watched)
    asked: list[tuple[int, float]] = []
    monkeypatch.setattr(training, "noise_multiplier", lambda *given: asked.append(given[4:]) or 1.0)
    data = tiny(0)
    settings = Settings(epochs=3, learning_rate=0.01, batch=20)
    gap.run(data, 8.0, 1e-3, settings)
    (steps, rate), *_ = asked
    assert drawn == [(rate, steps // 3)] * 2
    assert rate == 1 / math.ceil(int(data.train_mask.sum()) / 20)


def test_one_blank_record_moves_a_sum_over_cut_lists_by_at_most_the_square_root_of_the_cut() -> None:
    torch.manual_seed(0)
    senders = torch.cat([torch.zeros(40, dtype=torch.long), torch.randint(1, 50, (60,))])
    lists = gap.cut_lists(torch.stack([senders, torch.randint(0, 50, (100,))]), 50, 9)
    assert lists[0].bincount(minlength=50).max() == 9
    rows = torch.nn.functional.normalize(torch.randn(50, 4))
    columns = torch.zeros(50, 50).index_put_((lists[1], lists[0]), torch.ones(lists.shape[1]), accumulate=True)
    moved = [torch.outer(columns[:, k], rows[k]).norm() for k in range(50) if columns[:, k].max() <= 1]
    assert moved and max(moved) <= 3 + 1e-5
