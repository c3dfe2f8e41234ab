"""Tokens: hashed at rest, compared as a whole, revoked at once, kept by the command line."""

import json
from pathlib import Path

import pytest

from graphveil.cli.app import main
from graphveil.errors import InputError
from graphveil.service.planning import Wanted, planned
from graphveil.service.store import Store
from graphveil.service.tokens import Role, all_tokens, caller_of, create_token, revoke_token


def collection(store):
    store.create_collection(planned(Wanted("demo", "local", 3, labels=3, edges="raw")))
    return {"collection": "demo"}


def test_a_token_opens_its_own_role_until_it_is_revoked(store):
    demo = collection(store)
    token = create_token(store, "holder", "east", record="p1", **demo)
    found = caller_of(store, token)
    assert found.role is Role.HOLDER and found.holder == "east" and found.owns("p1") and not found.owns("p2")
    other = create_token(store, "analyst", **demo)
    mixed = "_".join([*token.split("_")[:2], other.split("_", 2)[2]])  # the key of one, the secret of another
    assert caller_of(store, mixed) is None and caller_of(store, "") is None
    revoke_token(store, token)
    assert caller_of(store, token) is None and caller_of(store, other).role is Role.ANALYST
    with pytest.raises(InputError, match="no token"):
        revoke_token(store, token)


def test_neither_the_store_nor_the_list_has_the_secret(tmp_path):
    store = Store(tmp_path / "service")
    store.upgrade()
    token = create_token(store, "operator")
    key, secret = token.split("_", 2)[1:]
    store.close()
    everything = b"".join(path.read_bytes() for path in (tmp_path / "service").iterdir())
    assert key.encode() in everything and secret.encode() not in everything and len(secret) >= 40
    assert secret not in str(all_tokens(store))


DEMO = {"collection": "demo"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"role": "king"},
        {"role": "holder", **DEMO},
        {"role": "holder", "holder": "east"},
        {"role": "holder", "holder": "east", "collection": "nothing"},
        {"role": "holder", "holder": "e st", **DEMO},
        {"role": "analyst"},
        {"role": "analyst", "holder": "east", **DEMO},
        {"role": "analyst", "run": Path("nothing"), **DEMO},
        {"role": "operator", "record": "p"},
        {"role": "person", "record": "p"},
        {"role": "person", "run": Path("nothing")},
        {"role": "person", "record": "p", "run": Path("nothing")},
    ],
    ids=str,
)
def test_tokens_that_make_no_sense_are_refused(tmp_path, wrong):
    store = Store(tmp_path / "service")
    store.upgrade()
    collection(store)
    with pytest.raises(InputError):
        create_token(store, **wrong)
    assert all_tokens(store) == []


def test_the_command_line_creates_lists_and_revokes(tmp_path, capsys):
    def run(*words):
        with pytest.raises(SystemExit) as stop:
            main([*words, "--folder", str(tmp_path / "service")])
        return stop.value.code or 0, capsys.readouterr()

    asked = ("--classes", "3", "--labels-epsilon", "1", "--edges-epsilon", "raw")
    assert run("serve", "collection", "create", "demo", "local", *asked)[0] == 0
    (tmp_path / "ids").write_text("p1\np2\n\n")
    said = run("serve", "collection", "enrol", "demo", str(tmp_path / "ids"), "--holder", "east")[1]
    assert said.out.strip() == "2 records of east, 2 of them new"
    words = ("serve", "token", "create", "--role", "holder", "--holder", "east")
    assert run(*words)[0] == 2  # for which collection?
    code, said = run(*words, "--collection", "demo", "--json")
    made = json.loads(said.out)
    assert code == 0 and made["token"].startswith(f"gv_{made['key']}_")
    assert run("serve", "token", "list")[1].out.strip() == f"{made['key']} holder collection:demo east"
    assert run("serve", "token", "revoke", made["token"])[0] == 0
    assert run("serve", "token", "list")[1].out.strip().endswith("(revoked)")
    code, said = run("serve", "token", "revoke", made["key"])
    assert code == 2 and len(said.err.splitlines()) == 1
