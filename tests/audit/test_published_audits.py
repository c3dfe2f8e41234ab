"""The audit of a published mode, in the small settings it chooses for itself, finds every gap of the plan and no other."""

from pathlib import Path
from typing import Any

import pytest
import yaml

import graphveil as gv
from graphveil.audit import audit_method
from graphveil.audit.everything import promises_of
from graphveil.audit.result import RED
from graphveil.methods.dpdgc import Dpdgc
from graphveil.methods.registry import PUBLISHED, method_class, method_names, modes_of

ROOT = Path(__file__).parents[2]


def test_codes_without_a_norm_are_found_in_the_table():
    """The small settings once had a norm of 1 where the noise is made for 1e-8: D10 could not be seen."""
    found = audit_method(Dpdgc(mode="published"), gv.EdgeLevel(4.0, 1e-4), runs=1, seed=1)
    assert found.verdict == RED and found.observed > 1e6 and not found.unexpected
    assert set(found.codes) == set(found.known_gaps) == {"A1", "D10"}


def readings() -> list[Any]:
    """Published modes under their defaults, and under every reading of the specification that measures them."""
    plain = [pytest.param(name, {}, id=name) for name in method_names() if PUBLISHED in modes_of(name)]
    asked = yaml.safe_load((ROOT / "benchmarks" / "audit.yaml").read_text())["grids"]
    under = [one for part in asked for one in part.get("methods", ()) if isinstance(one, dict) and one.get("options")]
    assert len(under) > 10
    return plain + [pytest.param(one["name"], one["options"], id=one["label"]) for one in under]


@pytest.mark.long
@pytest.mark.parametrize(("name", "options"), readings())
def test_an_audit_finds_exactly_the_gaps_that_the_plan_declares(name, options):
    method = method_class(name, PUBLISHED)(mode=PUBLISHED, **options)
    for promise in promises_of(method, 4.0, 1):
        found = audit_method(method, promise, runs=1, seed=1)
        assert set(found.codes) == set(found.known_gaps), promise
