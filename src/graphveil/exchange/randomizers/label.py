"""k-ary randomised response on a label."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from graphveil.errors import InputError
from graphveil.exchange.randomizers.base import Randomizer, Unit, check_budget, check_width, coin_below
from graphveil.privacy.noise import Array, Noise


@dataclass(frozen=True)
class LabelResponse(Randomizer):
    """The class is kept with probability e^epsilon/(e^epsilon + k - 1), else it becomes one of the k - 1 others.

    Lemma: every report has one of two probabilities whose ratio is at most e^epsilon. Test: ``test_randomizers.py``.
    """

    kind: ClassVar[str] = "label-response"
    unit: ClassVar[Unit] = Unit.VERTEX
    budget: float
    classes: int

    def __post_init__(self) -> None:
        check_budget(self.budget)
        check_width("the number of classes", self.classes, 2)

    @cached_property
    def keep(self) -> float:
        return coin_below(1 / (1 + (self.classes - 1) * math.exp(-self.budget)))

    @property
    def other(self) -> float:
        """The probability of each single other class."""
        return (1 - self.keep) / (self.classes - 1)

    @property
    def epsilon(self) -> float:
        return abs(math.log(self.keep / self.other))

    @cached_property
    def channel(self) -> Array:
        """T[c, r] = P(report r | class c)."""
        return np.full((self.classes, self.classes), self.other) + (self.keep - self.other) * np.eye(self.classes)

    def randomize(self, records: Any, broadcast: Any, rng: Noise) -> Any:
        labels = np.asarray(records, dtype=np.int64)
        if labels.size and (labels.min() < 0 or labels.max() >= self.classes):
            raise InputError(f"a label lies outside the public classes 0..{self.classes - 1}")
        kept = rng.coins(self.keep, labels.size).reshape(labels.shape)
        shift = 1 + rng.integers(self.classes - 1, labels.size).reshape(labels.shape)
        reports = np.where(kept, labels, (labels + shift) % self.classes)
        return int(reports) if labels.ndim == 0 else reports

    def log_density(self, record: Any, report: Any, broadcast: Any = None) -> float:
        return math.log(self.keep if int(record) == int(report) else self.other)

    def estimate(self, reports: Any, broadcast: Any = None) -> Array:
        """Unbiased one-hot rows: (one-hot - other)/(keep - other)."""
        return (np.eye(self.classes)[np.asarray(reports)] - self.other) / (self.keep - self.other)

    def variance(self, record: Any = None) -> Array:
        """Of each entry of the estimated one-hot row."""
        probability = self.channel[int(record)]
        return probability * (1 - probability) / (self.keep - self.other) ** 2
