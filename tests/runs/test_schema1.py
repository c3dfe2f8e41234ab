"""Certificates of schema 1, written by an earlier version, are still read: the same figures and the same words."""

import json
from pathlib import Path

import pytest

from graphveil.errors import InputError
from graphveil.files import write_json
from graphveil.methods.model import file_digests
from graphveil.privacy.certificate import SCHEMA, Certificate, digest
from graphveil.runs.load import read_certificate
from graphveil.runs.verify import verify_run

RUNS = sorted(path for path in (Path(__file__).parent / "schema1").iterdir() if path.is_dir())
SAME = ("method", "mode", "epsilon", "epsilon_claimed", "delta", "holds", "public", "assumptions", "seed")


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_an_earlier_certificate_is_read_with_all_its_figures(run):
    before, now = json.loads((run / "certificate.json").read_text()), read_certificate(run)
    after = now.to_json()
    assert before["schema"].endswith("/1") and after["schema"] == SCHEMA
    assert {key: before[key] for key in SAME} == {key: after[key] for key in SAME}
    assert [gap["code"] for gap in before["gaps"]] == [gap["code"] for gap in after["gaps"]]
    assert [entry["name"] for entry in before["releases"]] == [entry["name"] for entry in after["releases"]]
    assert f"{before['epsilon']:.6g}" in str(now) and "PRIVACY CERTIFICATE" in str(now)


@pytest.mark.parametrize(
    "run", [run for run in RUNS if run.name in ("lpgnn", "graph-privatizer")], ids=lambda run: run.name
)
def test_local_costs_keep_their_units(run):
    before, now = json.loads((run / "certificate.json").read_text()), read_certificate(run)
    assert now.per_vertex == before["per_vertex"] and now.per_edge == before["per_edge"]
    assert now.per_list == before["per_list_entry"]
    assert now.per_holder == {name: entry["epsilon"] for name, entry in before["per_holder"].items()}


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_an_earlier_run_still_verifies(run, tmp_path):
    for name in ("certificate.json", "ledger.jsonl"):
        (tmp_path / name).write_bytes((run / name).read_bytes())
    write_json(tmp_path / "manifest.json", file_digests(tmp_path))
    found, epsilon = verify_run(tmp_path)
    assert found == [] and epsilon == pytest.approx(
        read_certificate(run).epsilon, rel=1e-8
    )  # overheads are counted anew


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_an_edited_number_of_an_earlier_run_is_noticed(run, tmp_path):
    body = json.loads((run / "certificate.json").read_text()) | {"epsilon": 0.5}
    unsigned = {key: value for key, value in body.items() if key != "digest"}
    (tmp_path / "certificate.json").write_text(json.dumps(unsigned | {"digest": digest(unsigned)}))
    (tmp_path / "ledger.jsonl").write_text((run / "ledger.jsonl").read_text())
    (tmp_path / "manifest.json").write_text("{}")
    found, _ = verify_run(tmp_path)
    assert any("'epsilon' is recorded as 0.5" in line for line in found)


@pytest.mark.parametrize(
    "edit",
    [
        {"warnings": []},
        {"raw": []},
        {"covers": "everything"},
        {"per_holder": {"all": {"epsilon": 1.0, "vertices": 120}}},
        {"certified_by": "us"},
    ],
    ids=lambda edit: next(iter(edit)),
)
def test_words_of_an_earlier_local_run_cannot_be_edited_either(edit, tmp_path):
    run = next(run for run in RUNS if run.name == "lpgnn")
    body = json.loads((run / "certificate.json").read_text()) | edit
    unsigned = {key: value for key, value in body.items() if key != "digest"}
    (tmp_path / "certificate.json").write_text(json.dumps(unsigned | {"digest": digest(unsigned)}))
    (tmp_path / "ledger.jsonl").write_text((run / "ledger.jsonl").read_text())
    write_json(tmp_path / "manifest.json", file_digests(tmp_path))
    found, _ = verify_run(tmp_path)
    assert len(found) == 1 and repr(next(iter(edit))) in found[0]


def test_a_certificate_survives_its_own_schema():
    now = read_certificate(RUNS[0])
    assert Certificate.from_json(now.to_json()) == now


@pytest.mark.parametrize(
    "body", [{}, [], {"schema": "graphveil/certificate/3"}, {"schema": "graphveil/local-certificate/1"}]
)
def test_other_schemas_and_damaged_files_are_one_clear_error(body):
    with pytest.raises(InputError, match=r"schema|damaged"):
        Certificate.from_json(body)
