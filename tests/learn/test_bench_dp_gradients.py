"""The benchmark runs, compares like with like, and says when Opacus is missing."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from graphveil.bench import dp_gradients
from graphveil.learn import MLP


def test_a_small_run_reports_times_ratios_targets_and_progress():
    pytest.importorskip("opacus")
    told = []
    threads = torch.get_num_threads()
    report = dp_gradients.run(pairs=[(16, 8)], repeats=2, progress=lambda *state: told.append(state))
    assert torch.get_num_threads() == threads
    assert told == [("dp-gradients", done, 2) for done in range(3)]
    [result] = report["results"]
    assert {"plain_ms", "private_ms", "ghost_ms", "hooks_ms", "ok"} <= result.keys()
    assert result["private_over_plain"] == pytest.approx(result["private_ms"] / result["plain_ms"], rel=0.01)
    assert result["targets"] == {"private_over_plain": 2.0, "hooks_over_private": 3.0, "ghost_over_private": 1.0}
    assert report["ok"] == (result["ok"] and report["sparse"]["ok"])
    json.dumps(report)


def test_without_opacus_the_rest_is_measured_and_the_report_says_so(monkeypatch):
    monkeypatch.setattr(dp_gradients, "version", lambda package: None)
    report = dp_gradients.run(pairs=[(16, 8)], repeats=1)
    assert "not installed" in report["opacus"]
    [result] = report["results"]
    assert result["hooks_over_private"] is None and result["ghost_ms"] is None
    assert result["private_over_plain"] > 0
    assert "Opacus not installed" in dp_gradients.as_text(report)


def test_the_text_shows_every_ratio_with_its_limit_and_marks_what_is_missed():
    result = {"width": 256, "batch": 256, "plain_ms": 1.0, "private_ms": 2.5, "ghost_ms": 5.0, "hooks_ms": 50.0}
    result |= {"private_over_plain": 2.5, "hooks_over_private": 20.0, "ghost_over_private": 2.0, "ok": False}
    result["targets"] = dp_gradients.targets(256, 256)
    sparse = {"width": 4714, "batch": 256, "density": 0.01, "dense_ms": 3.0, "sparse_ms": 2.0, "dense_over_sparse": 1.5}
    report = {"network": "n", "dtype": "float64", "unit": "ms", "opacus": "1.6.0", "results": [result], "ok": False}
    text = dp_gradients.as_text(report | {"sparse": sparse})
    assert "2.50 (at most 2) !" in text and "20.00 (at least 3)" in text
    assert "1.50 times faster" in text and text.endswith("a target is missed")


def test_targets_are_those_of_the_acceptance_list():
    assert dp_gradients.targets(4714, 2048) == {
        "private_over_plain": 1.5,
        "hooks_over_private": 8.0,
        "ghost_over_private": 1.0,
    }
    assert dp_gradients.targets(500, 256)["hooks_over_private"] == 3.0


def test_the_private_step_adds_fresh_noise_and_moves_the_parameters(monkeypatch):
    rows, labels = dp_gradients._batch(16, 8, density=1.0)
    made: list[MLP] = []
    monkeypatch.setattr(dp_gradients, "MLP", lambda widths: made.append(MLP(widths)) or made[-1])
    first, second = dp_gradients.dense_step(rows, labels), dp_gradients.dense_step(rows, labels)
    start = made[0].parameters.clone()
    assert torch.equal(start, made[1].parameters)
    first()
    second()
    assert (made[0].parameters != start).all()
    assert not torch.equal(made[0].parameters, made[1].parameters)


def test_sparse_and_dense_steps_read_the_same_batch():
    rows, labels = dp_gradients._batch(200, 30, density=0.05)
    assert 0.02 < float((rows != 0).double().mean()) < 0.09
    np.testing.assert_allclose(rows.norm(dim=1)[rows.any(dim=1)], 1.0)
    dp_gradients.sparse_step(rows, labels)()
