"""Who made a run: an Ed25519 signature over its manifest, and with it over every file that may be published.

A certificate can be written by anybody who knows the format, a signature by the owner of a key alone. Keys are PEM files:

    openssl genpkey -algorithm ed25519 -out curator.pem
    openssl pkey -in curator.pem -pubout -out curator.pub

The manifest holds the SHA-256 of certificate, ledger and model; a signature is over its bytes, so that no file can be exchanged.
Whose key it is, nobody can read off the key: ``verify --signer curator.pub`` compares it with one that came another way.
Needs the ``cryptography`` package (``pip install graphveil[sign]``). Tests: ``tests/runs/test_signing.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graphveil.errors import InputError
from graphveil.files import read_json, write_json

SIGNATURE, MANIFEST = "signature.json", "manifest.json"
ALGORITHM = "ed25519"
PURPOSE = b"graphveil/run/1\n"  # a signature for another purpose with the same key is none for a run
UNSIGNED = "who made the run: it is not signed"
WHOSE = "whose key {} is: compare it with --signer, by a public key that you got another way"
NOT_INSTALLED = "signatures need the package 'cryptography': pip install 'graphveil[sign]'"


def signing_key(path: Path) -> Any:
    """The private key in a PEM file."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError:
        raise InputError(NOT_INSTALLED) from None
    key = _pem(path, lambda text: load_pem_private_key(text, password=None))
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(f"{path} is not an Ed25519 key: make one with 'openssl genpkey -algorithm ed25519 -out KEY'")
    return key


def sign_run(run: Path, key: Any) -> str:
    """Sign the manifest of a saved run; the public key, as verification prints it."""
    public = str(key.public_key().public_bytes_raw().hex())
    signature = key.sign(PURPOSE + (run / MANIFEST).read_bytes()).hex()
    body = {"algorithm": ALGORITHM, "signs": MANIFEST, "public_key": public, "signature": signature}
    write_json(run / SIGNATURE, body)
    return public


def checked_signature(run: Path, signer: Path | None) -> tuple[str | None, tuple[str, ...], tuple[str, ...]]:
    """Whose key has signed a run (None: no valid signature), what is unknown about it, and what is wrong with it."""
    if not (run / SIGNATURE).exists():
        wrong = () if signer is None else (f"the run is not signed, by {signer} or anybody else",)
        return None, (UNSIGNED,), wrong
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        if signer is not None:
            raise InputError(NOT_INSTALLED) from None
        return None, (f"whether the signature is valid: {NOT_INSTALLED}",), ()
    body = read_json(run / SIGNATURE)
    expected = None if signer is None else _public_key(signer)
    try:
        if body["algorithm"] != ALGORITHM or body["signs"] != MANIFEST:
            return None, (UNSIGNED,), (f"{SIGNATURE} is not an {ALGORITHM} signature of {MANIFEST}",)
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(body["public_key"]))
        key.verify(bytes.fromhex(body["signature"]), PURPOSE + (run / MANIFEST).read_bytes())
    except (InvalidSignature, KeyError, TypeError, ValueError, OSError):
        return None, (UNSIGNED,), ("the signature is not one of these files",)
    public = key.public_bytes_raw().hex()
    if expected is None:
        return public, (WHOSE.format(public),), ()
    return public, (), () if public == expected else (f"the run was signed by {public}, not by {signer} ({expected})",)


def _public_key(path: Path) -> str:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    key = _pem(path, load_pem_public_key)
    if not isinstance(key, Ed25519PublicKey):
        raise InputError(f"{path} is not an Ed25519 public key")
    return str(key.public_bytes_raw().hex())


def _pem(path: Path, load: Any) -> Any:
    try:
        return load(path.read_bytes())
    except OSError as error:
        raise InputError(f"the key {path} cannot be read: {error.strerror}") from None
    except (ValueError, TypeError) as error:  # not PEM, or encrypted
        raise InputError(f"{path} is not a PEM file with a key that can be read: {error}") from None
