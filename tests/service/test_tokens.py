"""Tokens: hashed at rest, compared as a whole, revoked at once, kept by the command line."""

import json

import pytest

from graphveil.cli.app import main
from graphveil.errors import InputError
from graphveil.service.tokens import Role, all_tokens, caller_of, create_token, revoke_token


def test_a_token_opens_its_own_role_until_it_is_revoked(store):
    token = create_token(store, "holder", "east", record="p1")
    found = caller_of(store, token)
    assert found.role is Role.HOLDER and found.holder == "east" and found.owns("p1") and not found.owns("p2")
    other = create_token(store, "analyst")
    mixed = "_".join([*token.split("_")[:2], other.split("_", 2)[2]])  # the key of one, the secret of another
    assert caller_of(store, mixed) is None and caller_of(store, "") is None
    revoke_token(store, token)
    assert caller_of(store, token) is None and caller_of(store, other).role is Role.ANALYST
    with pytest.raises(InputError, match="no token"):
        revoke_token(store, token)


def test_neither_the_store_nor_the_list_has_the_secret(tmp_path):
    from graphveil.service.store import Store

    store = Store(tmp_path / "service")
    store.upgrade()
    token = create_token(store, "operator")
    key, secret = token.split("_", 2)[1:]
    store.close()
    everything = b"".join(path.read_bytes() for path in (tmp_path / "service").iterdir())
    assert key.encode() in everything and secret.encode() not in everything and len(secret) >= 40
    assert secret not in str(all_tokens(store))


@pytest.mark.parametrize(
    ("role", "holder", "record"),
    [
        ("king", None, None),
        ("holder", None, None),
        ("analyst", "east", None),
        ("holder", "e st", None),
        ("operator", None, "p"),
    ],
)
def test_tokens_that_make_no_sense_are_refused(tmp_path, role, holder, record):
    from graphveil.service.store import Store

    store = Store(tmp_path / "service")
    store.upgrade()
    with pytest.raises(InputError):
        create_token(store, role, holder, record)
    assert all_tokens(store) == []


def test_the_command_line_creates_lists_and_revokes(tmp_path, capsys):
    def run(*words):
        with pytest.raises(SystemExit) as stop:
            main([*words, "--folder", str(tmp_path / "service")])
        return stop.value.code or 0, capsys.readouterr()

    code, said = run("serve", "token", "create", "--role", "holder", "--holder", "east", "--json")
    made = json.loads(said.out)
    assert code == 0 and made["token"].startswith(f"gv_{made['key']}_")
    assert run("serve", "token", "list")[1].out.strip() == f"{made['key']} holder east"
    assert run("serve", "token", "revoke", made["token"])[0] == 0
    assert run("serve", "token", "list")[1].out.strip().endswith("(revoked)")
    code, said = run("serve", "token", "revoke", made["key"])
    assert code == 2 and len(said.err.splitlines()) == 1
