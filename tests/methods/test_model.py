"""Saved runs: complete, free of pickles, verifiable without data, and any edited number is noticed."""

import copy
import json
import math

import pytest
import torch

import graphveil as gv
from graphveil.audit.central.neighbours import worst_case_graph
from graphveil.audit.settings import audit_settings
from graphveil.errors import InputError, PrivacyError
from graphveil.files import write_json
from graphveil.methods.local_method import LocalMethod
from graphveil.methods.model import file_digests
from graphveil.methods.registry import describe, method_class, method_names, modes_of
from graphveil.runs.verify import verify_run

RUNS = {
    "dp-mlp": (gv.DpMlp(steps=3), gv.NodeLevel(2.0)),
    "dp-mlp-paper": (gv.DpMlp(network="paper", hidden=4, epochs=2), gv.NodeLevel(2.0)),
    "dp-mlp-published": (gv.DpMlp(mode="published", hidden=4, epochs=2), gv.NodeLevel(2.0)),
    "gap": (gv.Gap(steps=3, hidden=4), gv.NodeLevel(2.0)),
    "gap-bounded": (gv.Gap(steps=3, hidden=4), gv.NodeLevel(2.0, adjacency="bounded-degree", max_degree=12)),
    "gap-edge": (gv.Gap(hidden=4, epochs=2), gv.EdgeLevel(2.0)),
    "gap-published": (gv.Gap(mode="published", hidden=4, epochs=2), gv.EdgeLevel(2.0)),
    "gap-open": (gv.Gap(hidden=4, epochs=2), gv.NonPrivate()),
    "mlp": (gv.Mlp(hidden=4, epochs=2), gv.NonPrivate()),
}


@pytest.fixture(scope="module")
def small():
    return worst_case_graph(seed=7)[0]


@pytest.fixture(scope="module", params=RUNS)
def run(request, small, tmp_path_factory):
    method, promise = RUNS[request.param]
    model = method.fit(small, promise, seed=1)
    folder = tmp_path_factory.mktemp("runs") / request.param
    model.save(folder)
    return model, folder


def test_a_saved_model_predicts_the_same(run, small):
    model, folder = run
    assert torch.equal(gv.load_model(folder).predict_proba(small), model.predict_proba(small))
    assert gv.load_model(folder).certificate == model.certificate


def test_a_saved_run_verifies_without_data(run):
    model, folder = run
    found, epsilon = verify_run(folder)
    assert found == []
    if model.certificate.epsilon is None:
        assert epsilon is None
    else:
        assert epsilon == pytest.approx(model.certificate.epsilon, abs=1e-6)


def test_a_folder_holds_no_pickles_and_is_not_overwritten(run):
    model, folder = run
    names = {"certificate.json", "ledger.jsonl", "manifest.json", "model.json", "model.safetensors"}
    names |= {"curator"} if model.certificate.own_rows else set()
    assert {path.name for path in folder.iterdir()} == names
    with pytest.raises(InputError, match="already holds a run"):
        model.save(folder)


def numbers(value, path=()):
    """Paths to every number in nested JSON."""
    if isinstance(value, bool):
        return
    if isinstance(value, (int, float)):
        yield path
    elif isinstance(value, (dict, list)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from numbers(part, (*path, key))


def edited(body, path):
    other = copy.deepcopy(body)
    place = other
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = place[path[-1]] * 1.001 + 1e-3 if isinstance(place[path[-1]], float) else place[path[-1]] + 1
    return other


@pytest.mark.parametrize("name", ["gap", "gap-published"])
def test_any_edited_number_is_noticed(name, small, tmp_path):
    method, promise = RUNS[name]
    method.fit(small, promise, seed=1).save(tmp_path / "run")
    run = tmp_path / "run"
    certificate, ledger = run / "certificate.json", run / "ledger.jsonl"
    text, lines = certificate.read_text(), ledger.read_text().splitlines()

    def noticed(path, content):
        before = path.read_text()
        path.write_text(content)
        write_json(
            run / "manifest.json", file_digests(run)
        )  # the accounting must notice, not only the checksum of the file
        found = verify_run(run)[0]
        path.write_text(before)
        return found

    for path in numbers(json.loads(text)):
        assert noticed(certificate, json.dumps(edited(json.loads(text), path))), path
    for number, line in enumerate(lines):
        for path in numbers(json.loads(line)):
            changed = [*lines]
            changed[number] = json.dumps(edited(json.loads(line), path))
            assert noticed(ledger, "\n".join(changed) + "\n"), path
    write_json(run / "manifest.json", file_digests(run))
    assert verify_run(run)[0] == []


def test_an_edit_with_a_fresh_digest_is_still_noticed(small, tmp_path):
    """Consistency does not rest on the digest: the accounting itself disagrees."""
    from graphveil.privacy.certificate import digest

    gv.DpMlp(steps=3).fit(small, gv.NodeLevel(2.0)).save(tmp_path / "run")
    path = tmp_path / "run" / "certificate.json"
    body = json.loads(path.read_text())
    body["epsilon"] = body["epsilon_claimed"] = 1.0
    unsigned = {key: value for key, value in body.items() if key != "digest"}
    path.write_text(json.dumps(unsigned | {"digest": digest(unsigned)}))
    assert any("the ledger gives" in line for line in verify_run(tmp_path / "run")[0])


def test_a_model_swapped_for_another_is_noticed(small, tmp_path):
    gv.DpMlp(steps=3).fit(small, gv.NodeLevel(2.0)).save(tmp_path / "run")
    gv.DpMlp(steps=3).fit(small, gv.NodeLevel(math.inf, 1e-3)).save(tmp_path / "exact")
    (tmp_path / "run" / "model.safetensors").write_bytes((tmp_path / "exact" / "model.safetensors").read_bytes())
    assert verify_run(tmp_path / "run")[0] == ["model.safetensors is not the file that was saved"]


@pytest.mark.parametrize("change", [{"gaps": []}, {"mode": "sound"}, {"holds": True}])
def test_a_published_run_cannot_be_dressed_up_as_sound(small, tmp_path, change):
    """Even with digests recomputed: gaps and mode follow from the method, not from the file."""
    from graphveil.privacy.certificate import digest

    run = tmp_path / "run"
    RUNS["gap-published"][0].fit(small, gv.EdgeLevel(2.0)).save(run)
    body = json.loads((run / "certificate.json").read_text()) | change
    unsigned = {key: value for key, value in body.items() if key != "digest"}
    write_json(run / "certificate.json", unsigned | {"digest": digest(unsigned)})
    write_json(run / "manifest.json", file_digests(run))
    assert verify_run(run)[0]


def test_a_run_without_privacy_claims_nothing(small):
    for method in (gv.Mlp(hidden=4, epochs=2), gv.DpMlp(epochs=2), gv.Gap(hidden=4, epochs=2)):
        certificate = method.fit(small, gv.NonPrivate()).certificate
        assert certificate.epsilon is certificate.epsilon_claimed is None and not certificate.holds


@pytest.mark.parametrize("name", [name for name in method_names() if not issubclass(method_class(name), LocalMethod)])
def test_what_is_planned_without_privacy_is_what_is_done(small, tmp_path, name):
    for mode in modes_of(name):
        method = method_class(name)(**({"mode": mode} if mode != "sound" else {}))
        method.set_params(**audit_settings(method))
        if (name, mode) == ("dp-sage", "published"):
            with pytest.raises(InputError, match="without privacy use sage"):
                method.fit(small, gv.NonPrivate(), seed=0)
            continue
        method.fit(small, gv.NonPrivate(), seed=0).save(tmp_path / mode)
        assert verify_run(tmp_path / mode)[0] == []


def test_charging_for_publication_is_refused_where_it_is_not_accounted(small):
    model = gv.DpMlp(steps=2).fit(small, gv.NodeLevel(2.0))
    with pytest.raises(PrivacyError, match="cannot charge"):
        model.predict(small, access="charge")
    with pytest.raises(InputError, match="unknown access"):
        model.predict(small, access="everybody")


def test_every_method_has_a_complete_card():
    for name in method_names():
        card = describe(name)
        assert card["name"] == name and all(
            card[key] for key in ("summary", "paper", "trust", "protects", "public", "formula")
        )
        assert set(card["supports"]) == set(card["modes"])
        method = method_class(name)()
        assert method.set_params(**method.get_params()).get_params() == method.get_params()


def test_an_unknown_method_or_option_names_what_there_is():
    with pytest.raises(InputError, match="did you mean 'gap'"):
        method_class("gapp")
    with pytest.raises(InputError, match="has no option 'depth'"):
        gv.Gap().set_params(depth=3)
