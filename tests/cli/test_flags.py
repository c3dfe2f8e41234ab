"""One declaration of the promise flags, one set of rules behind them."""

import pytest

from graphveil import EdgeLevel, InputError, KNeighborLevel, Local, NodeLevel, NonPrivate, Promise
from graphveil.cli.flags import PromiseFlags
from graphveil.privacy.promise import Adjacency, Guarantee, Level, Relation

BOUNDED = {Guarantee(Level.NODE, Adjacency.BOUNDED_DEGREE, Relation.ZERO_OUT)}


@pytest.mark.parametrize(
    ("flags", "promise"),
    [
        ({"epsilon": 2.0}, NodeLevel(2.0)),
        ({"epsilon": 2.0, "max_degree": 7, "supported": BOUNDED}, NodeLevel(2.0, None, "bounded-degree", 7)),
        ({"epsilon": 2.0, "relation": "replace", "delta": 1e-6}, NodeLevel(2.0, 1e-6, relation="replace")),
        ({"level": "edge", "epsilon": 1.0, "directed": True}, EdgeLevel(1.0, directed=True)),
        ({"level": "edge", "epsilon": 1.0, "adjacency": "edge-directed"}, EdgeLevel(1.0, directed=True)),
        ({"level": "k-neighbor", "epsilon": 1.0, "k": 3}, KNeighborLevel(3, 1.0)),
        ({"level": "none"}, NonPrivate()),
        ({"level": "local", "labels": "1", "edges": "raw"}, Local("withheld", 1.0, "raw")),
        ({"level": None}, NonPrivate()),
        ({"level": None, "epsilon": 3.0}, NodeLevel(3.0)),
        ({"level": None, "features": "0.5"}, Local(0.5, "withheld", "withheld")),
    ],
)
def test_flags_describe_a_promise(flags, promise):
    assert Promise.parse(**flags) == promise


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        ({"level": "local", "epsilon": 1.0}, "--epsilon"),
        ({"level": "local", "max_degree": 3}, "--max-degree"),
        ({"epsilon": 1.0, "labels": "1"}, "belong to --level local"),
        ({"level": "edge", "epsilon": 1.0, "adjacency": "record"}, "edge-undirected"),
        ({"level": "k-neighbor", "epsilon": 1.0, "k": 1, "adjacency": "node"}, "no adjacency"),
        ({"level": "galaxy", "epsilon": 1.0}, "galaxy"),
    ],
)
def test_flags_that_contradict_each_other_are_refused(flags, word):
    with pytest.raises(InputError, match=word):
        Promise.parse(**flags)


def test_given_names_the_flags_as_they_are_written():
    flags = PromiseFlags(epsilon=2.0, features_epsilon="1", settings=["steps=2"])
    assert flags.given() == ["--epsilon", "--features-epsilon", "--set"]
    assert flags.given("epsilon", "settings") == ["--features-epsilon"]


@pytest.mark.parametrize("command", ["train", "plan", "audit", "attack"])
def test_every_command_that_makes_a_promise_has_all_its_flags(graphveil, command):
    code, out, _ = graphveil(command, "--help")
    missing = [name for name in PromiseFlags.__dataclass_fields__ if f"--{name.replace('_', '-')}" not in out]
    assert code == 0 and missing == ["settings"] and "--set" in out


def test_a_saved_run_refuses_every_promise_flag(graphveil, tmp_path):
    code, _, err = graphveil("attack", "lsa2", "--run", tmp_path, "--data", "cora", "--labels-epsilon", "1")
    assert code == 2 and "leave --labels-epsilon out" in err
