"""k-ary randomised response on a label."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from graphveil.errors import InputError
from graphveil.exchange.randomizers.base import Randomizer, Unit
from graphveil.privacy.noise import Array, Noise
from graphveil.privacy.response import CategoryResponse


@dataclass(frozen=True)
class LabelResponse(Randomizer):
    """The class is kept with probability e^epsilon/(e^epsilon + k - 1), else it becomes one of the k - 1 others.

    Lemma: ``privacy/response.py``. Test: ``test_randomizers.py``.
    """

    kind: ClassVar[str] = "label-response"
    unit: ClassVar[Unit] = Unit.VERTEX
    sizes: ClassVar = {"classes": ("the number of classes", 2)}
    classes: int

    @cached_property
    def response(self) -> CategoryResponse:
        return CategoryResponse(self.budget, self.classes)

    @property
    def keep(self) -> float:
        return self.response.keep

    @property
    def other(self) -> float:
        """The probability of each single other class."""
        return self.response.other

    @property
    def epsilon(self) -> float:
        return self.response.epsilon

    @property
    def channel(self) -> Array:
        """T[c, r] = P(report r | class c)."""
        return self.response.channel

    def randomize(self, records: Any, broadcast: Any, rng: Noise) -> Any:
        labels = np.asarray(records, dtype=np.int64)
        if labels.size and (labels.min() < 0 or labels.max() >= self.classes):
            raise InputError(f"a label lies outside the public classes 0..{self.classes - 1}")
        reports = self.response.draw(labels, rng)
        return int(reports) if labels.ndim == 0 else reports

    def log_density(self, record: Any, report: Any, broadcast: Any = None) -> float:
        return self.response.log_density(int(record), int(report))

    def estimate(self, reports: Any, broadcast: Any = None) -> Array:
        """Unbiased one-hot rows: (one-hot - other)/(keep - other)."""
        rows: Array = (np.eye(self.classes)[np.asarray(reports)] - self.other) / (self.keep - self.other)
        return rows

    def variance(self, record: Any = None) -> Array:
        """Of each entry of the estimated one-hot row."""
        probability: Array = self.channel[int(record)]
        return probability * (1 - probability) / (self.keep - self.other) ** 2
