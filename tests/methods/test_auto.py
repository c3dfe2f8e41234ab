"""Auto chooses by the promise; plan and certificate are those of the method it chose."""

from __future__ import annotations

import pytest
import torch

import graphveil as gv
from graphveil.audit.central.neighbours import worst_case_graph
from graphveil.methods.auto import Auto
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import Local

RULES = [
    (gv.NodeLevel(4.0), {}, "roster"),
    (gv.NodeLevel(4.0, relation="replace"), {}, "roster"),
    (gv.NodeLevel(4.0), {"cover_edges": "all"}, "ballot"),
    (gv.NodeLevel(4.0, adjacency="node"), {}, "ballot"),
    (gv.NodeLevel(4.0, adjacency="bounded-degree", max_degree=9), {}, "ballot"),
    (gv.NodeLevel(4.0, adjacency="bounded-degree", max_degree=9), {"cover_edges": "all"}, "ballot"),
    (gv.KNeighborLevel(1, 4.0), {}, "roster"),
    (gv.KNeighborLevel(1, 4.0, relation="replace"), {}, "ballot"),
    (gv.KNeighborLevel(5, 4.0), {}, "ballot"),
    (gv.EdgeLevel(1.0), {}, "ballot"),
    (gv.EdgeLevel(1.0, directed=True), {}, "ballot"),
    (Local("withheld", 1.0, "raw"), {}, "local"),
    (gv.NonPrivate(), {}, "sage"),
]
FACTS = PublicFacts(5000, 6, 3, directed=True)


@pytest.mark.parametrize(("promise", "options", "name"), RULES, ids=lambda value: str(value)[:60])
def test_the_choice_follows_from_the_promise_and_its_plan_is_the_chosen_methods(promise, options, name):
    choice = Auto(**options).choose(promise)
    assert choice.method.name == name
    assert "\n" not in str(choice) and str(choice).startswith(f"auto chose {name}: ")
    if promise.guarantee in choice.method.supports:
        assert Auto(**options).plan(FACTS, promise).to_json() == choice.method.plan(FACTS, promise).to_json()
        assert promise.guarantee in Auto(**options).supports


def test_model_and_certificate_are_those_of_the_chosen_method():
    graph_data = worst_case_graph(seed=2)[0]
    promise = gv.NodeLevel(4.0)
    mine, plain = gv.Auto(steps=4).fit(graph_data, promise, seed=3), gv.Roster(steps=4).fit(graph_data, promise, seed=3)
    assert mine.certificate.to_json() == plain.certificate.to_json()
    assert torch.equal(mine.predict_proba(graph_data), plain.predict_proba(graph_data))


def test_undirected_data_get_edge_cover_and_directed_lists_do_not():
    open_facts = PublicFacts(5000, 6, 3, directed=False)
    implied = [gv.Auto().plan(facts, gv.NodeLevel(4.0)).implied for facts in (open_facts, FACTS)]
    covered, not_covered = (found["epsilon of one undirected edge"] for found in implied)
    assert covered <= 4.0 < not_covered


def test_wrong_input_is_refused_in_words():
    with pytest.raises(gv.InputError, match="released or all"):
        gv.Auto(cover_edges="some")
    with pytest.raises(gv.InputError, match="sound"):
        gv.Auto(mode="published")
    with pytest.raises(gv.InputError, match="no option 'nonsense'"):
        gv.Auto(nonsense=1).choose(gv.NodeLevel(1.0))


def test_the_rules_name_a_method_and_a_reason_for_every_level(capsys):
    from graphveil.cli.app import main
    from graphveil.methods.auto import rules

    assert [rule["method"] for rule in rules()] == [
        "roster",
        "ballot",
        "ballot",
        "roster",
        "ballot",
        "ballot",
        "local",
        "sage",
    ]
    with pytest.raises(SystemExit) as stop:
        main(["methods", "auto", "--json"])
    assert not stop.value.code and '"rules"' in capsys.readouterr().out
