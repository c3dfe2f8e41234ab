"""A signed run proves whose key made it: no file can be exchanged, and no other key passes for it."""

import json

import pytest

import graphveil as gv
from graphveil.audit.central.neighbours import worst_case_graph
from graphveil.cli.app import main
from graphveil.errors import InputError
from graphveil.graph import write_npz
from graphveil.runs.signing import sign_run, signing_key
from graphveil.runs.verify import check_run
from tests.runs.forging import forge

pytest.importorskip("cryptography", reason="signatures are an extra: pip install 'graphveil[sign]'")


def new_key(path):
    from cryptography.hazmat.primitives import serialization as pem
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    path.write_bytes(key.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption()))
    public = key.public_key().public_bytes(pem.Encoding.PEM, pem.PublicFormat.SubjectPublicKeyInfo)
    path.with_suffix(".pub").write_bytes(public)
    return path


@pytest.fixture
def signed(tmp_path):
    gv.DpMlp(steps=2).fit(worst_case_graph(seed=7)[0], gv.NodeLevel(4.0), seed=1).save(tmp_path / "run")
    sign_run(tmp_path / "run", signing_key(new_key(tmp_path / "mine.pem")))
    return tmp_path / "run"


def test_a_signed_run_names_the_key_and_verifies_with_it(signed):
    alone, known = check_run(signed), check_run(signed, signed.parent / "mine.pub")
    assert alone.disagreements == known.disagreements == () and alone.signed_by == known.signed_by
    assert any(f"whose key {alone.signed_by}" in line for line in alone.unknown)
    assert not any("key" in line or "signed" in line for line in known.unknown)


def test_a_run_signed_by_another_key_or_by_nobody_is_not_mine(signed):
    mine = signed.parent / "mine.pub"
    sign_run(signed, signing_key(new_key(signed.parent / "yours.pem")))
    assert any("not by" in line for line in check_run(signed, mine).disagreements)
    (signed / "signature.json").unlink()
    assert any("not signed" in line for line in check_run(signed, mine).disagreements)
    assert any("not signed" in line for line in check_run(signed).unknown)


def test_nothing_can_be_changed_under_a_signature(signed):
    """Not even a seed, of which nothing else can tell whether it was erased."""
    forge(signed, lambda body: body.update(seed=None))
    verdict = check_run(signed)
    assert verdict.disagreements == ("the signature is not one of these files",) and verdict.signed_by is None


@pytest.mark.parametrize("change", [{"algorithm": "none"}, {"signature": "00"}, {"public_key": 7}, {"signs": "x"}])
def test_a_damaged_signature_is_a_disagreement_not_a_traceback(signed, change):
    path = signed / "signature.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert len(check_run(signed).disagreements) == 1


def test_bad_keys_are_one_clear_line(tmp_path):
    from cryptography.hazmat.primitives import serialization as pem
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

    (tmp_path / "text.pem").write_text("no key")
    other = generate_private_key(SECP256R1())
    (tmp_path / "other.pem").write_bytes(
        other.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption())
    )
    for name, said in (("none.pem", "cannot be read"), ("text.pem", "not a PEM file"), ("other.pem", "Ed25519")):
        with pytest.raises(InputError, match=said):
            signing_key(tmp_path / name)


def test_train_signs_what_verify_checks(tmp_path, capsys):
    data, key = write_npz(worst_case_graph(seed=2)[0], tmp_path / "small.npz"), new_key(tmp_path / "mine.pem")

    def graphveil(*words):
        with pytest.raises(SystemExit) as stop:
            main([str(word) for word in words])
        return int(stop.value.code or 0), capsys.readouterr()

    train = ("train", "dp-mlp", "--data", data, "--epsilon", "4", "--set", "steps=2", "--sign", key)
    assert graphveil(*train, "--out", tmp_path / "run")[0] == 0
    code, told = graphveil("verify", tmp_path / "run", "--signer", tmp_path / "mine.pub")
    assert code == 0 and "signed by " in told.out
    code, told = graphveil(*train)
    assert code == 2 and "--out" in told.err
