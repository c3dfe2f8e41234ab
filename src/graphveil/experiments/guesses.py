"""What a forecast has to guess about a graph that nobody has looked at, and scenarios drawn from the guesses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphveil.errors import InputError
from graphveil.privacy.facts import PublicFacts

STATED = ("homophily", "feature_strength", "mean_degree")


@dataclass(frozen=True)
class Guess:
    """A number, or a range in which every value is as likely as another (``scale``: every factor)."""

    low: float
    high: float
    scale: bool = False

    def at(self, share: np.ndarray) -> np.ndarray:
        """The values at these shares of the range."""
        if self.scale:
            return np.exp(math.log(self.low) + share * math.log(self.high / self.low))
        return self.low + share * (self.high - self.low)

    @property
    def known(self) -> bool:
        return self.low == self.high

    def __str__(self) -> str:
        return f"{self.low:.3g}" if self.known else f"{self.low:.3g} to {self.high:.3g}"

    @classmethod
    def parse(cls, name: str, text: str, lowest: float, highest: float, scale: bool = False) -> Guess:
        """``0.7``, or a range as in ``0.6-0.9``."""
        first, dash, last = text.partition("-")
        try:
            guess = cls(float(first), float(last if dash else first), scale)
        except ValueError:
            raise InputError(f"{name} takes a number or a range such as 0.6-0.9, got {text!r}") from None
        if not lowest <= guess.low <= guess.high <= highest:
            raise InputError(f"{name} {text}: give numbers from {lowest:g} to {highest:g}, the smaller one first")
        return guess


@dataclass(frozen=True)
class Guesses:
    """Ranges of everything that sizes do not say. The first three a user may know; the others are always ranges."""

    homophily: Guess
    feature_strength: Guess
    mean_degree: Guess
    words: Guess
    circles: Guess
    misfits: Guess
    imbalance: Guess

    @classmethod
    def about(
        cls,
        facts: PublicFacts,
        homophily: str | None = None,
        feature_strength: str | None = None,
        mean_degree: str | None = None,
    ) -> Guesses:
        """Ranges that real graphs of these sizes have, narrowed by what the user states."""
        most = max(1.0, 0.9 * (facts.nodes - 1))
        degrees = Guess(min(3.0, most), min(50.0, most), scale=True)
        if mean_degree is not None:
            degrees = Guess.parse("--mean-degree", mean_degree, 1e-3, most, scale=True)
        wide = min(250.0, max(2.0, facts.features / 2))
        return cls(
            Guess(max(0.2, 1 / facts.classes), 0.9)
            if homophily is None
            else Guess.parse("--homophily", homophily, 0, 1),
            Guess(0.2, 0.95) if feature_strength is None else Guess.parse("--feature-strength", feature_strength, 0, 1),
            degrees,
            words=Guess(min(10.0, wide), wide, scale=True),
            circles=Guess(0.0, 1.0),
            misfits=Guess(0.3, 1.0),
            imbalance=Guess(0.0, 1.0),
        )

    def to_json(self) -> dict[str, list[float]]:
        return {name: [guess.low, guess.high] for name, guess in vars(self).items()}

    def scenarios(self, count: int, seed: int) -> list[dict[str, float]]:
        """A Latin hypercube: of every range each of ``count`` equal parts is tried once, in random combinations."""
        rng = np.random.default_rng([seed, 0x6775657373])
        drawn = {
            name: guess.at((rng.permutation(count) + rng.random(count)) / count) for name, guess in vars(self).items()
        }
        return [{name: round(float(values[n]), 6) for name, values in drawn.items()} for n in range(count)]


def stand_in_options(facts: PublicFacts, scenario: Mapping[str, float]) -> dict[str, Any]:
    """Options of the generated data set ``stand-in``: the sizes of the facts, and one scenario."""
    sizes = {"nodes": facts.nodes, "features": facts.features, "classes": facts.classes, "directed": facts.directed}
    kinds = {"train": "train", "validation": "calibration", "test": "query"}
    return sizes | {option: facts.count(kind) for option, kind in kinds.items()} | dict(scenario)
