"""The collections of a service by name; a protocol never changes, so it is read once."""

from __future__ import annotations

from fastapi import HTTPException

from graphveil.exchange.broadcast import Broadcast
from graphveil.exchange.protocol import Protocol
from graphveil.exchange.wire import FIRST, Stage
from graphveil.service.store import Store
from graphveil.service.stored import read_broadcast


class Registry:
    def __init__(self, store: Store) -> None:
        self.store = store
        self._known: dict[str, tuple[int, Protocol]] = {}
        self._heard: dict[tuple[int, str], Broadcast] = {}
        self._stages: dict[tuple[str, str, bool], Stage] = {}

    def find(self, name: str) -> tuple[int, Protocol]:
        """The number and the protocol of a collection; 404 if there is none."""
        if name not in self._known:
            self._known = {protocol.name: (number, protocol) for number, protocol, _ in self.store.collections()}
        if name not in self._known:
            raise HTTPException(404, "there is no such collection")
        return self._known[name]

    def stage(self, name: str, stage: str, *, asking: bool = False) -> tuple[int, Protocol, Stage]:
        """What a collection asks for now in a stage; ``asking``: of a newcomer who wants a score."""
        number, protocol = self.find(name)
        if stage not in protocol.stages:
            raise HTTPException(404, f"there is no such stage; there are: {', '.join(protocol.stages)}")
        if (name, stage, asking) in self._stages:
            return number, protocol, self._stages[name, stage, asking]
        heard = None if stage == FIRST else self.heard(number, protocol, stage)
        if stage != FIRST and heard is None:
            raise HTTPException(409, "nobody has been asked this round yet")
        found = protocol.asking(stage, heard) if asking else protocol.stage(stage, heard)
        self._stages[name, stage, asking] = found
        return number, protocol, found

    def heard(self, number: int, protocol: Protocol, stage: str) -> Broadcast | None:
        """What a round hears; once told it stays."""
        if (number, stage) not in self._heard:
            found = read_broadcast(self.store, number, protocol, stage)
            if found is None:
                return None
            self._heard[number, stage] = found
        return self._heard[number, stage]
