"""What a test draws depends on the test alone: the keys of unseeded noise come from its name, so that red stays red.

Fixtures draw from their own names, because which test sets up a shared one depends on how tests are spread over workers. A forked
process draws from its own number too: a fork that repeated its parent would hide the very bug that tests of forks look for.
Commands run as processes of their own keep the entropy of the operating system. ``@pytest.mark.entropy`` leaves a test with it.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator

import pytest
import torch

GIVEN = secrets.token_bytes


class Drawn:
    """Bytes that follow from a name, and from the process if it is not the one that was named."""

    def __init__(self, name: str) -> None:
        self.name, self.process, self.count = name, os.getpid(), 0

    def __call__(self, size: int | None = None) -> bytes:
        self.count += 1
        fork = "" if os.getpid() == self.process else f"{os.getpid()} {GIVEN(16).hex()}"
        return hashlib.shake_256(f"{self.name} {self.count} {fork}".encode()).digest(32 if size is None else size)


def start(name: str, entropy: bool = False) -> None:
    """From here on ``secrets`` draws what follows from ``name``, or, for ``entropy``, what the operating system gives."""
    drawn = GIVEN if entropy else Drawn(name)
    secrets.token_bytes = drawn
    secrets.randbits = lambda bits: int.from_bytes(drawn((bits + 7) // 8), "big") >> (-bits % 8)
    torch.manual_seed(int.from_bytes(hashlib.sha256(name.encode()).digest()[:6], "big"))


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest) -> Iterator[None]:
    start(f"{fixturedef.baseid} {fixturedef.argname} {request.node.name if fixturedef.scope == 'function' else ''}")
    return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    start(item.nodeid, entropy=item.get_closest_marker("entropy") is not None)
