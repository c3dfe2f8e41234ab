"""One exchange of the local model: which part of everybody's record is randomised how, after hearing what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from graphveil.errors import InputError, PrivacyError
from graphveil.exchange.randomizers.base import Randomizer
from graphveil.exchange.randomizers.categories import LabelResponse
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import Local, Openness, Part, once
from graphveil.privacy.plan import Release


@dataclass(frozen=True)
class Round:
    """A named round. ``hears`` names the public broadcast it reads."""

    name: str
    part: Part
    randomizer: Randomizer
    hears: str = ""

    def __post_init__(self) -> None:
        if not self.name.replace("-", "_").isidentifier():
            raise InputError(f"a round is named by letters, digits and hyphens, got {self.name!r}")
        if not self.hears.isprintable():  # it stands on certificates, where it must not look like another line
            raise InputError(f"what a round hears is said in one line, got {self.hears!r}")

    def release(self, reporters: int) -> Release:
        """The round as it stands in plans, ledgers and certificates."""
        about: Any = {"part": self.part.value, "hears": self.hears, "reporters": reporters}
        return Release(self.name, self.randomizer, self.randomizer.changes, once(self.part), **about)

    def asked(self, facts: PublicFacts) -> Release:
        """The release if everybody answers: train and calibration for their label, else all slots."""
        return self.release(facts.labelled if self.part is Part.LABELS else facts.nodes)

    @classmethod
    def of(cls, release: Release) -> Round:
        """The round behind a release of a local plan."""
        if not isinstance(release.mechanism, Randomizer):
            raise InputError(f"release {release.name!r} is not a round: a curator adds its noise")
        return cls(release.name, Part(release.part), release.mechanism, release.hears)


def check_within(promise: Local, rounds: Sequence[Round]) -> None:
    """An error if rounds cost more than their owners allow, or do not answer what is asked for."""
    for round in rounds:
        promise.check_release(round.release(0))
    for part in Part:
        spent = sum(round.randomizer.cost for round in rounds if round.part is part)
        if spent > promise.share(part) * (1 + 1e-9):
            raise PrivacyError(f"{part}: rounds cost epsilon {spent:.6g}, {promise.asked(part)} is allowed")
        if spent and promise.budget(part) is Openness.RAW:
            raise InputError(f"{part}: raw is asked for, a round randomises it: which of the two?")
        if not spent and not isinstance(promise.budget(part), Openness):
            raise InputError(f"{part}: {promise.asked(part)} is asked for, no round answers it (--broadcast?)")
    delta = sum(round.randomizer.delta for round in rounds)
    if delta > promise.target_delta * (1 + 1e-9):
        raise PrivacyError(f"rounds cost delta {delta:g}, {promise.target_delta:g} is allowed (--delta)")


def vertex_rounds(
    promise: Local, classes: int, features: Callable[[float], Randomizer] | None = None
) -> tuple[Round, ...]:
    """Features by this randomizer (if they are read) and labels by k-RR, where they have an epsilon."""
    found = []
    if features is not None and not isinstance(promise.features, Openness):
        found.append(Round("features", Part.FEATURES, features(promise.features)))
    if not isinstance(promise.labels, Openness):
        found.append(Round("labels", Part.LABELS, LabelResponse(promise.labels, classes)))
    return tuple(found)
