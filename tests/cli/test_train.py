"""``train``, ``plan``, ``predict``, ``certificate`` and ``verify`` keep the contract."""

import json

import pytest

import graphveil as gv

CONTRACT = {
    "method", "dataset", "level", "adjacency", "relation", "mode", "epsilon_target", "epsilon", "epsilon_claimed", "delta",
    "holds", "gaps", "val_accuracy", "test_accuracy", "test_f1", "seconds", "seed", "out",
}  # fmt: skip
SMALL = ("--set", "steps=3", "--set", "epochs=2")


@pytest.mark.parametrize(
    "flags",
    [
        ("gap", "--level", "node", "--epsilon", 8, *SMALL),
        ("gap", "--level", "edge", "--epsilon", 1, *SMALL),
        ("gap", "--level", "k-neighbor", "--k", 1, "--epsilon", 8, *SMALL),
        ("gap", "--level", "node", "--epsilon", 8, "--relation", "replace", *SMALL),
        ("gap", "--level", "node", "--epsilon", 8, "--max-degree", 12, *SMALL),
        ("dp-mlp", "--level", "node", "--epsilon", 8, *SMALL),
        ("dp-mlp", "--level", "node", "--adjacency", "node", "--epsilon", 8, *SMALL),
    ],
    ids=lambda flags: " ".join(map(str, flags[:6])),
)
def test_train_prints_the_fields_of_the_contract(graphveil, graph_file, flags):
    code, out, err = graphveil("train", *flags, "--data", graph_file, "--seed", 0, "--json")
    result = json.loads(out)
    assert code == 0 and result.keys() >= CONTRACT, err
    assert result["holds"] is True and 0 < result["epsilon"] <= result["epsilon_target"]
    assert result["epsilon"] == result["epsilon_claimed"] and result["gaps"] == []
    assert 0 <= result["test_accuracy"] <= 1 and 0 <= result["test_f1"] <= 1 and "not cover" in result["accuracy_note"]


@pytest.mark.parametrize(
    ("flags", "codes", "epsilon"),
    [
        (("gap", "--level", "node", "--epsilon", 8), {"D3", "D8"}, None),
        (("gap", "--level", "edge", "--epsilon", 1, "--delta", 1e-6), {"A1"}, pytest.approx(1.455, abs=2e-3)),
        (("dp-mlp", "--level", "node", "--epsilon", 8), {"D8"}, None),
    ],
)
def test_published_mode_prints_both_epsilons_and_why_it_does_not_hold(graphveil, graph_file, flags, codes, epsilon):
    published = ("--mode", "published", "--set", "epochs=2", "--json")
    code, out, _ = graphveil("train", *flags, "--data", graph_file, *published)
    result = json.loads(out)
    assert code == 0 and result["holds"] is False and set(result["gaps"]) == codes
    assert result["epsilon"] == epsilon and result["epsilon_claimed"] == result["epsilon_target"]


def test_nothing_is_evaluated_when_told_not_to(graphveil, graph_file):
    _, out, _ = graphveil("train", "dp-mlp", "--data", graph_file, "--epsilon", 2, "--no-evaluate", "--json")
    result = json.loads(out)
    assert result["val_accuracy"] is result["test_accuracy"] is result["test_f1"] is None


def test_a_run_is_saved_shown_verified_and_used(graphveil, graph_file, tmp_path):
    run = tmp_path / "run"
    code, out, _ = graphveil("train", "gap", "--data", graph_file, "--epsilon", 4, "--out", run, *SMALL)
    assert code == 0 and "PRIVACY CERTIFICATE" in out and "HOLDS" in out and str(run) in out
    code, out, _ = graphveil("certificate", run)
    assert code == 0 and "one person's features, label and own contact list" in out
    code, out, _ = graphveil("verify", run, "--json")
    assert code == 0 and json.loads(out)["consistent"] and json.loads(out)["epsilon"] <= 4
    code, out, _ = graphveil("predict", run, "--data", graph_file)
    assert code == 0 and out.splitlines()[0] == "node,prediction,probability"
    code, out, _ = graphveil("predict", run, "--data", graph_file, "--json")
    assert code == 0 and [p["node"] for p in json.loads(out)["predictions"]] == list(range(33))
    code, _, err = graphveil("train", "gap", "--data", graph_file, "--epsilon", 4, "--out", run, *SMALL)
    assert code == 2 and "already holds a run" in err


def test_verify_fails_after_an_edit(graphveil, graph_file, tmp_path):
    run = tmp_path / "run"
    graphveil("train", "dp-mlp", "--data", graph_file, "--epsilon", 4, "--out", run)
    certificate = run / "certificate.json"
    certificate.write_text(certificate.read_text().replace('"sigma": ', '"sigma": 1'))
    code, _, err = graphveil("verify", run)
    assert code == 1 and "edited" in err


def test_preparation_and_split_reach_the_loader_and_the_certificate(graphveil, graph_file, tmp_path):
    flags = ("--data", graph_file, "--prepare", "max-degree:3", "--split", "stratified", "--epsilon", 4)
    code, out, _ = graphveil("train", "dp-mlp", *flags, "--out", tmp_path / "run")
    assert code == 0 and "cut to" in out and "stratified" in out
    code, out, _ = graphveil("predict", tmp_path / "run", *flags[:4])
    assert code == 0


def test_equal_seeds_give_equal_runs(graphveil, graph_file):
    runs = [
        graphveil("train", "dp-mlp", "--data", graph_file, "--epsilon", 4, "--seed", 3, "--json")[1] for _ in range(2)
    ]
    results = [json.loads(out) for out in runs]
    assert results[0]["test_accuracy"] == results[1]["test_accuracy"] and results[0]["seeded"]


def test_a_method_without_privacy_says_so(graphveil, graph_file):
    code, out, _ = graphveil("train", "mlp", "--data", graph_file, "--level", "none", "--set", "epochs=2")
    assert code == 0 and "not private" in out


def test_plan_needs_sizes_only(graphveil):
    sizes = ("--nodes", 1000000, "--features", 128, "--classes", 10)
    code, out, _ = graphveil("plan", "gap", *sizes, "--level", "node", "--epsilon", 2, "--json")
    body = json.loads(out)
    assert code == 0 and body["epsilon"] <= 2 and len(body["releases"]) == 5
    code, out, _ = graphveil("plan", "gap", *sizes, "--level", "edge", "--epsilon", 2)
    assert code == 0 and "hop 2" in out


def test_methods_are_listed_and_described(graphveil):
    code, out, _ = graphveil("methods", "--json")
    cards = {card["name"]: card for card in json.loads(out)}
    assert code == 0 and {"mlp", "dp-mlp", "gap"} <= cards.keys()
    needed = {"paper", "trust", "levels", "modes", "protects", "supports"}
    assert all(card.keys() >= needed for card in cards.values())
    code, out, _ = graphveil("methods", "gap")
    assert code == 0 and "gap D3 (published)" in out and "defaults" in out
    assert graphveil("methods")[0] == 0


@pytest.mark.parametrize(
    "name", ["dpar", "dpdgc", "graph-privatizer", "ldp-gnn", "lga-pgnn", "lpgnn", "nip-gnn", "rr-edges"]
)
def test_the_card_of_a_paper_says_how_published_mode_reads_it(graphveil, name):
    code, out, _ = graphveil("methods", name)
    lines = [line.split() for line in out.splitlines()]
    assert code == 0 and [line[0] for line in lines].count("readings") == 1
    assert [line[1] for line in lines if line[0] == "defaults"] == ["mode=sound,", "mode=published,"]


def test_help_and_version_work(graphveil):
    assert graphveil("--version")[1].startswith("graphveil ")
    assert "train" in graphveil("--help")[1]
    assert "--epsilon" in graphveil("train", "--help")[1]


NODE = ("--level", "node", "--adjacency", "node", "--epsilon", 8)


def test_json_for_ballot_under_adjacency_node_says_who_is_covered_as_a_record_only(graphveil, graph_file):
    code, out, err = graphveil("train", "ballot", *NODE, "--data", graph_file, "--seed", 0, "--json")
    result = json.loads(out)
    assert code == 0 and result["holds"] is True, err
    assert result["weaker"] == {"calibration": "record", "query": "record"}
    (words,) = result["weaker_texts"]
    assert words.startswith("for calibration and query nodes:") and "not hidden is that others list" in words
    everybody = json.loads(graphveil("train", "dp-mlp", *NODE, *SMALL, "--data", graph_file, "--json")[1])
    assert everybody["holds"] is True and everybody["weaker"] == {} and everybody["weaker_texts"] == []


def test_a_plan_under_adjacency_node_says_so_too(graphveil):
    plan = ("plan", "ballot", *NODE, "--nodes", 100, "--features", 5, "--classes", 3)
    assert json.loads(graphveil(*plan, "--json")[1])["weaker"] == {"calibration": "record", "query": "record"}
    assert "BUT ONLY for calibration and query nodes" in graphveil(*plan)[1]


def test_warnings_print_no_private_counts():
    """Seven duplicate arcs and one training node without label: said to the operator, in words without numbers."""
    import torch

    from graphveil.audit.central.neighbours import worst_case_graph

    data = worst_case_graph(seed=2)[0]
    data.edge_index = torch.cat([data.edge_index, data.edge_index[:, :7]], dim=1)
    data.y[data.train_mask.nonzero()[0]] = -1
    data.y[(~(data.train_mask | data.val_mask | data.test_mask)).nonzero()[:1]] = -1
    with pytest.warns(match="removed|unlabelled") as told:
        gv.DpMlp(steps=2).fit(data, gv.NodeLevel(4.0, 1e-4))
    words = [str(warning.message) for warning in told]
    assert any("duplicate arcs" in line for line in words) and any("(train)" in line for line in words)
    for line in words:
        assert not any(letter.isdigit() for letter in line) and "for the operator only" in line


def test_auto_says_what_it_chose_and_saves_a_run_of_that_method(graphveil, graph_file, tmp_path):
    flags = ("--data", graph_file, "--epsilon", 4, "--seed", 0, "--set", "steps=4")
    code, out, err = graphveil("train", "auto", *flags, "--out", tmp_path / "run", "--json")
    assert code == 0 and "auto chose roster: a person's own contact list is part of the record" in err
    result = json.loads(out)
    assert result["method"] == "roster" and result["holds"] is True and result["val_accuracy"] is None
    assert graphveil("verify", tmp_path / "run")[0] == 0
    code, out, err = graphveil("plan", "auto", "--epsilon", 4, "--cover-edges", "all", "--data", graph_file, "--json")
    assert code == 0 and json.loads(out)["method"] == "ballot" and "read no lists" in err


def test_cover_edges_belongs_to_auto(graphveil, graph_file):
    code, _, err = graphveil("train", "ballot", "--data", graph_file, "--epsilon", 4, "--cover-edges", "all")
    assert code == 2 and "helps auto to choose" in err


def test_the_accuracy_on_a_public_graph_stands_beside_that_of_own_rows(graphveil, graph_file):
    flags = ("--data", graph_file, "--seed", 0, "--level", "node", "--epsilon", 8, *SMALL[:2])
    code, out, err = graphveil("train", "dpar", *flags, "--json")
    result = json.loads(out)
    assert code == 0 and 0 <= result["public_graph_accuracy"] <= 1, err
    code, out, _ = graphveil("train", "dpar", *flags)
    told = f"test {100 * result['public_graph_accuracy']:.1f} %"
    assert any("were it public" in line and told in line for line in out.splitlines())
    code, out, _ = graphveil("train", "dp-mlp", *flags, "--json")
    assert json.loads(out)["public_graph_accuracy"] is None
