"""The benchmark of the local methods: its rows, and when a target counts as kept."""

import importlib.util
import sys
from pathlib import Path

import pytest

from graphveil.methods.registry import method_names

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "local.py"


@pytest.fixture(scope="module")
def benchmark():
    if not SCRIPT.exists():
        pytest.skip("the benchmarks are not part of this installation")
    spec = importlib.util.spec_from_file_location("local_benchmark", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["local_benchmark"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["local_benchmark"]


def test_every_target_row_names_a_promise_and_no_row_stands_twice(benchmark):
    rows = list(benchmark.targets())
    assert len(rows) == 14 and len({row.key for row in rows}) == 14
    assert all(row.target and row.method == "local" and row.features == "withheld" for row in rows)
    lists_only = list(benchmark.edges())
    assert len(lists_only) == 16 and len({row.key for row in lists_only}) == 16
    assert all(row.target and row.features == row.labels == "raw" and row.edges in (1, 2, 4, 8) for row in lists_only)


@pytest.mark.parametrize("group", ["targets", "edges", "histogram", "lga", "baselines"])
def test_every_setting_names_a_method_with_these_options(benchmark, group):
    settings = list(benchmark.GROUPS[group]())
    assert len({one.key for one in settings}) == len(settings)
    for one in settings:
        assert one.method in method_names()
        benchmark.method_class(one.method)(**one.options)


def test_a_target_is_kept_up_to_the_larger_of_seven_tenths_and_two_standard_errors(benchmark):
    setting = benchmark.Setting("targets", "cora", "local", "withheld", 3.0, "raw", target=80.0)
    result = lambda value, seed: {
        "accuracy": value,
        "f1": 70.0,
        "seed": seed,
        "seconds": 1.0,
        "epsilon": 3.0,
        "per_edge": None,
    }
    ok = lambda *values: benchmark.summary(setting, [result(v, s) for s, v in enumerate(values)])["ok"]
    assert ok(79.4, 79.4, 79.4) and not ok(79.2, 79.2, 79.2)
    assert ok(77.0, 79.0, 81.0)  # mean 79, standard error 1.15
    assert "79.4 ± 0.0" in benchmark.table([benchmark.summary(setting, [result(79.4, 1), result(79.4, 2)])])
