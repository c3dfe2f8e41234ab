"""Audits, attacks on reports and forecasts are runs of an experiment like any other: expanded, kept, resumed and shown."""

import math

import pytest

from graphveil.experiments import Store, expand, sweep
from graphveil.experiments.engines.serial import Serial
from graphveil.experiments.execute import execute
from graphveil.experiments.export import plain, read_rows, write_rows
from graphveil.experiments.read import experiment_from
from graphveil.experiments.show import all_tables

from .test_spec import refused, runs_of

AUDITS = {
    "name": "a",
    "audit": {"runs": 1},
    "methods": ["mlp", {"name": "rr-edges", "mode": "published"}],
    "epsilons": [4],
    "seeds": 1,
}
GRAPH = {"name": "powerlaw-sbm", "options": {"nodes": 120, "features": 6, "classes": 3}}
REPORTS = {
    "name": "r",
    "reports": ["clean", "multi-bit", {"name": "direction", "options": {"projected": 3}}],
    "data": [GRAPH],
    "epsilons": [1],
    "seeds": 1,
    "attacks": [
        {"name": "link-stealing", "count": 60},
        {"name": "attribute-inference", "attribute": "2", "people": 80, "label": "hidden"},
    ],
}
FORECASTS = {
    "name": "f",
    "methods": ["dp-mlp"],
    "data": ["cora"],
    "promises": [{"level": "node"}],
    "epsilons": [4],
    "seeds": 1,
    "forecast": [{"homophily": "card", "scenarios": 2}, {"scenarios": 2}],
}


def swept(body, path):
    experiment = experiment_from(body, "s.yaml")
    runs = expand(experiment)
    with Store(path) as store:
        counts = sweep(experiment.name, runs, store, Serial())
        assert counts.failed == 0, [row["error"] for row in store.rows()]
        again = sweep(experiment.name, runs, store, Serial(), resume=True)
        assert (again.kept, again.done, store.check()) == (len(runs), 0, [])
    return read_rows(path)


def test_an_audit_is_kept_with_what_it_found_and_shown_as_a_table(tmp_path):
    rows = swept(AUDITS, tmp_path / "a.sqlite")
    assert {row["kind"] for row in rows} == {"audit"}
    mlp, raw, private = rows  # rr-edges with public and with private lists
    assert (mlp["epsilon"], mlp["metrics"]["violated"], mlp["holds"]) == (0.0, 0.0, True)
    assert raw["metrics"]["epsilon_observed"] == pytest.approx(2) and raw["holds"]
    assert private["epsilon"] is None and private["metrics"]["violated"] == 1 and "G4" in private["gaps"]
    write_rows(rows, tmp_path / "a.jsonl")
    assert read_rows(tmp_path / "a.jsonl") == rows
    (table,) = all_tables(rows)
    assert [line[-2] for line in table.body] == ["no violation found", "no violation found", "violation found"]
    assert "1 audits over 1 seeds, 0 violations" in " ".join(table.notes)
    from graphveil.report.audit_chart import audit_plot, bodies

    picture = audit_plot(bodies(rows), tmp_path / "a.svg")
    assert len(picture.axes) == 2 and "VIOLATION: randomised edges G4" in (tmp_path / "a.svg").read_text()


def test_over_seeds_the_worst_is_shown(tmp_path):
    from graphveil.report.audit_chart import bodies

    green = plain(swept(AUDITS | {"methods": ["mlp"]}, tmp_path / "a.sqlite")[0])
    found = green["metrics"] | {"epsilon_observed": 5.0, "violated": 1.0}
    red = green | {"seed": 1, "metrics": found, "details": green["details"] | {"verdict": "violation found"}}
    for rows in ([green, red], [red, green]):
        (line,) = all_tables(rows)[0].body
        assert line[5:] == ("5", "violation found", "2")
        (body,) = bodies(rows)
        assert (body["epsilon_observed"], body["verdict"]) == (5.0, "violation found")


def test_every_method_and_mode_is_audited_where_none_is_named():
    body = {"name": "a", "audit": {"runs": 1, "cross_checks": True}, "epsilons": [4], "seeds": 1}
    runs = runs_of(body)
    seen = {(run.method, run.mode) for run in runs}
    assert {("ballot", "sound"), ("gap", "sound"), ("gap", "published"), ("local", "sound")} <= seen
    assert ("gcn", "sound") not in seen and len(seen) >= 25  # an ordinary network promises nothing
    assert [run.kind for run in runs].count("cross-checks") == 1
    sound = runs_of(body | {"audit": {"runs": 1, "modes": ["sound"]}})
    assert {run.mode for run in sound} == {"sound"} and {run.id for run in sound} < {run.id for run in runs}


def test_reports_are_attacked_without_a_model_and_clean_rows_once(tmp_path):
    rows = swept(REPORTS, tmp_path / "r.sqlite")
    assert len(runs_of(REPORTS | {"epsilons": [1, 20], "seeds": 2})) == 2 * (1 + 2 + 2)
    assert {row["kind"] for row in rows} == {"reports"}
    clean = [row for row in rows if row["method"] == "clean"]
    noisy = [row for row in rows if row["parts"]["features"] == 1.0]
    assert not any(row["holds"] for row in clean) and all(row["epsilon"] == 1.0 and row["holds"] for row in noisy)
    assert {"link-stealing.auc", "hidden.auc", "hidden/random.auc"} <= set(rows[0]["metrics"])
    (table,) = all_tables(rows, ["link-stealing.auc", "hidden.auc"])
    assert [line[1] for line in table.body] == ["clean", "multi-bit", "direction (projected=3)"]


def test_published_readings_of_reports_cost_what_they_spend():
    """Every attribute with epsilon is d epsilon (L2), others in the clear are without bound (L3); m of d with epsilon/m holds."""
    readings = [{"name": f"piecewise-{name}", "options": {"sampled": 2}} for name in ("algorithm", "raw", "zero")]
    whole = {"name": "piecewise-algorithm", "label": "all"}
    attack = {"name": "link-stealing", "count": 100, "models": ["lr"]}
    runs = runs_of(REPORTS | {"reports": [*readings, whole], "attacks": [attack]})
    found = [execute(run.to_json()) for run in runs]
    assert [row["error"] for row in found] == [None] * 4 and {row["mode"] for row in found} == {"published"}
    told = [(row["holds"], row["gaps"], row["epsilon_claimed"]) for row in found]
    assert told == [(False, ["L3"], 1.0), (False, ["L3"], 1.0), (True, [], 1.0), (False, ["L2"], 1.0)]
    assert [row["epsilon"] for row in found[:3]] == [None, None, 1.0] and found[3]["epsilon"] == pytest.approx(
        6.0, rel=1e-5
    )


def test_both_orders_ask_again_what_is_known_and_most_pairs_are_all_of_a_small_graph():
    """A forest that saw (v, u) knows (u, v): its product and difference are the same row."""
    game = {"name": "link-stealing", "models": ["rf"], "count": "most"}
    once, twice = (
        runs_of(REPORTS | {"reports": ["clean"], "attacks": [game]}),
        runs_of(REPORTS | {"reports": ["clean"], "attacks": [game | {"both_orders": True}]}),
    )
    accuracy = [execute(run.to_json())["metrics"]["link-stealing.accuracy"] for run in (*once, *twice)]
    assert accuracy[1] > accuracy[0] + 0.1


def test_attacks_that_say_nothing_new_keep_their_identifiers():
    (run, *_) = runs_of(REPORTS)
    assert set(run.attacks[0]) == {"name", "label", "pairs", "count", "combine", "attribute", "people"}


def test_a_forecast_reads_the_card_alone_and_stands_beside_what_was_measured(tmp_path, monkeypatch):
    from graphveil.graph import data as graphs

    loaded = []
    original = graphs.load.load_dataset
    monkeypatch.setattr(
        "graphveil.graph.load_dataset", lambda name, **how: loaded.append(name) or original(name, **how)
    )
    rows = swept(FORECASTS, tmp_path / "f.sqlite")
    assert set(loaded) == {"stand-in"}
    assert [row["details"]["stated"] for row in rows] == ["homophily", "nothing"]
    low, high = (rows[0]["metrics"][f"forecast_{end}"] for end in ("low", "high"))
    assert 0 < low <= rows[0]["metrics"]["forecast_median"] <= high < 1
    trained = rows[0] | {"kind": "training", "details": None, "label": "dp-mlp"}
    measured = [trained | {"seed": seed, "metrics": {"test_accuracy": low - 0.01 + 0.01 * seed}} for seed in (0, 1)]
    (table,) = all_tables([*rows, *measured])
    assert "OUTSIDE" in table.body[0][3] and "homophily stated: 0 of 1 inside" in table.notes[0]


def test_what_does_not_belong_together_is_refused_before_anything_runs():
    refused(AUDITS | {"data": ["cora"]}, "data", "worst cases")
    refused(AUDITS | {"epsilons": None}, "no epsilon")
    refused(AUDITS | {"reports": ["clean"]}, "exclude")
    refused(REPORTS | {"attacks": None}, "attacks")
    refused(REPORTS | {"attacks": ["link-teller"]}, "link-teller", "methods")
    refused(REPORTS | {"attacks": ["attribute-inference"]}, "attribute")
    refused(REPORTS | {"reports": [{"name": "multi-bit", "options": {"projected": 3}}]}, "reports.0", "projected")
    refused(REPORTS | {"epsilons": None}, "no epsilon")
    refused(REPORTS | {"attacks": [{"name": "attribute-inference", "attribute": "0", "count": "most"}]}, "no pairs")
    refused(FORECASTS | {"data": [GRAPH]}, "public card")
    trained = {key: value for key, value in FORECASTS.items() if key != "forecast"}
    refused(trained | {"attacks": ["link-stealing"]}, "link-stealing", "reports")


def test_ids_of_trainings_do_not_know_of_other_kinds(body):
    from dataclasses import replace

    (first, *_) = runs_of(body)
    assert replace(first, settings={"runs": 2}).id == first.id != replace(first, kind="audit").id
    assert math.isfinite(first.promise["epsilon"])
