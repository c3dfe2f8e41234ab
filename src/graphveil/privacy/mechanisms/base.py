"""What every mechanism tells plans, curators, certificates and audits; and mechanisms as JSON.

A new mechanism is a frozen dataclass with a ``kind`` of its own; defining it makes it known to saved ledgers
(``mechanism_from_json``).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphveil.errors import InputError, PrivacyError
from graphveil.privacy.accounting.loss import Loss
from graphveil.privacy.laws import Law
from graphveil.privacy.noise import Added, Array, Noise

if TYPE_CHECKING:
    from graphveil.privacy.mechanisms.numbers import DpGradient

ADDED = {"added": "later"}  # metadata of a field that earlier versions did not write
MECHANISMS: dict[str, type[Mechanism]] = {}


@dataclass(frozen=True)
class NoisySums:
    """A session of noisy sums: how many, the norm to which rows are clipped, and the rate at which they take part."""

    steps: int
    clip: float | None = None
    rate: float = 1.0


class Mechanism(ABC):
    """How one release perturbs its clean value.

    ``random``: whether there is noise at all. ``shaped``: whether the shape of the clean value is public (that of a set is not).
    """

    kind: ClassVar[str]
    random: ClassVar[bool] = True
    shaped: ClassVar[bool] = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" not in vars(cls):
            return
        if MECHANISMS.setdefault(cls.kind, cls).__qualname__ != cls.__qualname__:
            raise InputError(f"there is already a mechanism of the kind {cls.kind!r}: give yours another one")
        MECHANISMS[cls.kind] = cls

    @abstractmethod
    def loss(self, sensitivity: float) -> Loss:
        """The loss of a record that can move the clean value by ``sensitivity``, rounding included; none if it is not read."""

    @abstractmethod
    def apply(self, value: Any, noise: Noise) -> Any:
        """The clean value, perturbed."""

    @abstractmethod
    def words(self) -> str:
        """The noise, in words for the certificate."""

    @property
    def unbounded(self) -> str:
        """Why there is no finite epsilon, in words; empty if there is one."""
        return ""

    @property
    def edge_change(self) -> str:
        """What happens to the edge whose cost a local certificate states; empty where there is none."""
        return ""

    @property
    def added(self) -> Added | None:
        """The noise added number by number, if that is what this mechanism does."""
        return None

    @property
    def size(self) -> int | None:
        """How many numbers the clean value must have, where the plan says so."""
        return getattr(self, "dimension", None)

    @property
    def sums(self) -> NoisySums | None:
        """The session of gradient sums that this mechanism is for, if it is for one."""
        return None

    @property
    def poisson(self) -> DpGradient | None:
        """The gradient steps on Poisson batches that this is, if it is."""
        return None

    def allowance(self, bound: float) -> float:
        """How far the clean value may move in one step for a record whose declared sensitivity is ``bound``."""
        return bound

    def distance(self, before: NDArray[Any], after: NDArray[Any]) -> float:
        """How far apart two clean values are, in the unit of the sensitivity."""
        raise PrivacyError(f"{self.kind}: no distance is known between two clean values")

    def worlds(self, before: NDArray[Any], after: NDArray[Any]) -> list[Law]:
        """What the release looks like around these two clean values; nothing if it is the same for both."""
        raise PrivacyError(f"{self.kind}: no laws are known for two clean values")

    def worst_pair(self, bound: float) -> list[Law]:
        """The dominating pair of laws for this positive sensitivity; nothing where none is known."""
        return []


def change(before: NDArray[Any], after: NDArray[Any]) -> Array:
    """The first world's clean value minus the second's."""
    return np.asarray(np.asarray(before, dtype=np.float64) - after)


def euclidean(before: NDArray[Any], after: NDArray[Any]) -> float:
    return float(np.linalg.norm(change(before, after)))


class Noisy(Mechanism):
    """A mechanism that perturbs: the numbers that describe it are positive and finite, its counts at least 1.

    A number whose default is 0 may be 0.
    """

    def __post_init__(self) -> None:
        described: Any = self
        for field in fields(described):
            value = getattr(self, field.name)
            if field.type == "int" and not (isinstance(value, int) and value >= 1):
                raise PrivacyError(f"{field.name} must be a whole number of at least 1, got {value}")
            if field.type == "float" and not (math.isfinite(value) and (value > 0 or value == field.default == 0)):
                raise PrivacyError(f"{field.name} must be positive and finite, got {value}")


def least_noise(sensitivity: float, room: float) -> float:
    """The scale at which this sensitivity costs ``room``, from which the overhead of its numbers has been taken."""
    if not (math.isfinite(room) and room > 0):
        raise PrivacyError(f"the share of the budget for a release must be positive and finite, got {room}")
    return sensitivity / room * (1 + 1e-12)  # more than float64 can lose on the way back


def mechanism_to_json(mechanism: Any) -> dict[str, Any]:
    """The public numbers of a mechanism; tables that a published one may hold are left out.

    A field of the metadata ``ADDED`` came later: where it has its default it is left out, as in files written before.
    """
    plain = (int, float, str, bool, tuple, type(None))
    told = ((field, getattr(mechanism, field.name)) for field in fields(mechanism))
    shown = {field.name: value for field, value in told if field.metadata != ADDED or value != field.default}
    return {"kind": mechanism.kind, **{name: value for name, value in shown.items() if isinstance(value, plain)}}


def mechanism_from_json(entry: dict[str, Any]) -> Mechanism:
    """The mechanism that :func:`mechanism_to_json` has described, of any kind that is defined by now."""
    kind = MECHANISMS.get(entry["kind"])
    if kind is None:
        raise InputError(f"unknown mechanism {entry['kind']!r}; known: {', '.join(MECHANISMS)}")
    chosen: Any = kind
    return kind(**{field.name: entry[field.name] for field in fields(chosen) if field.name in entry})
