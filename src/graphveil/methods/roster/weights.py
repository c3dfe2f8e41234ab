"""What Roster decides from released numbers: how much features, lists and own slots weigh, and how lists are read.

Everything here is post-processing: it reads the prior, the probe, the test and public facts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from graphveil.learn.centred_sums import BIAS
from graphveil.methods.roster.bounds import reading_bound, row_reading_bound
from graphveil.privacy.noise import Array

LEAST_PRIOR = 0.02
CONFIDENCE = 0.7  # how far the measured margins are trusted, times mu up to MOST_MU
MOST_MU = 4.0
AUDIBLE, LEAST_HEARD = 3.0, 0.5  # standard errors of a margin
LEAST_MASS = 0.3
OWN_SLOT = 0.7  # weight of the own slot in units of that of the list, where contacts agree
AGREEMENT = 0.25  # above chance
MOST_FLOOR, LEAST_FLOOR = 64, 2
FLOOR_SHARE = 0.5  # of the squared mass of a typical list
LISTS_RULE = 0.7  # the part of the weight on lists above which the floor is at least 4
DOMINANT = 0.5  # ... and, without agreement, above which few long steps are taken
DOMINANT_FLOOR, DOMINANT_CLIP = 16, 1.0


def prior_of(total: Array, labelled: int) -> Array:
    """The released class frequencies, kept away from 0."""
    clipped = np.clip(total / max(1, labelled), LEAST_PRIOR, 1.0)
    return np.asarray(clipped / clipped.sum())


@dataclass(frozen=True)
class Weights:
    """Of features, lists and own slot (with norm 1), and how a gradient step reads them.

    ``heard``: how far the test says that features or lists can be heard at all, in [0, 1]; as far as not, the prior answers.
    ``repeats`` steps of the plan read the same point and are averaged. ``clip`` is the norm of a summand before it is multiplied
    by ``scale`` to fit into the declared one.
    """

    features: float
    lists: float
    slot: float
    heard: float = 1.0
    floor: int = 1
    cover: bool = False
    clip: float = 0.35
    scale: float = 1.0
    repeats: int = 1
    reading: float = field(default=math.inf)
    row_reading: float = field(default=math.inf)

    @property
    def unit(self) -> float:
        """U: the norm of (features, list, constant) at most."""
        return math.sqrt(self.features**2 + self.lists**2 + BIAS**2)


@dataclass(frozen=True)
class Survey:
    """The probe and its noise (times sqrt 3), and what the test says about it."""

    features: Array
    codes: Array
    slots: Array
    noise: float
    prior: Array
    labelled: int
    nodes: int
    mu: float

    @property
    def bounds(self) -> Array:
        """Where the three margins are clipped, from the energy of the probe above its noise."""
        energies = [self._energy(self.features), self._energy(self.codes)]
        return np.array([2 * (energy + self.noise) + 2 for energy in energies] + [2 * (self.noise + 2)])

    def _energy(self, table: Array) -> float:
        size, noise = table.size, self.noise**2
        return max(3 * float(np.sum(table**2)) - size * noise - math.sqrt(2 * size) * noise, 0.0) / self.labelled

    def decide(self, test: Array, test_noise: float, *, cover: bool, clip: float) -> Weights:
        """The weights that this outcome of the test asks for."""
        margins = test[:3] * self.bounds / self.labelled
        mass = max(8 * test[3] / self.labelled, LEAST_MASS)
        found = np.maximum(margins[:2], 0) + 1
        errors = np.hypot(self.bounds[:2] * test_noise / self.labelled, self.noise * np.sqrt(found / self.labelled))
        signal = CONFIDENCE * min(self.mu, MOST_MU) * np.maximum(margins[:2], errors)
        if not self.features.size:
            signal[0] = 0.0
        features, lists = np.sqrt(water_filled(signal))
        chance = mass * self.labelled / self.nodes * (1 - float(np.sum(self.prior**2)))
        slot = OWN_SLOT * lists if margins[2] / chance > AGREEMENT else 0.0
        norm = math.sqrt(features**2 + lists**2 + slot**2)
        heard = (
            min(1.0, (max(float(np.max(margins[:2] / errors)), LEAST_HEARD) / AUDIBLE) ** 2) if errors.all() else 1.0
        )
        weights = Weights(features / norm, lists / norm, slot / norm, heard, clip=clip)
        return covered(weights, mass, len(self.prior)) if cover else weights


def water_filled(signal: Array) -> Array:
    """p_b = (lambda - 1/s_b)_+ with sum 1: everything on the better block if both are weak, half each if both are strong."""
    if not signal.any():
        return np.array([0.5, 0.5])
    if not signal.all():
        return np.asarray((signal > 0).astype(np.float64))
    level = (1 + np.sum(1 / signal)) / 2
    parts = np.clip(level - 1 / signal, 0.0, 1.0)
    return np.asarray(parts / parts.sum())


def covered(weights: Weights, mass: float, classes: int) -> Weights:
    """The same weights with a floor for lists and bounded reading, so that one edge costs no more than one record."""
    floor = int(np.clip(round(FLOOR_SHARE * mass**2), LEAST_FLOOR, MOST_FLOOR))
    of_both = weights.lists**2 / (weights.features**2 + weights.lists**2)
    clip, repeats = weights.clip, 1
    if of_both > LISTS_RULE:
        floor = max(floor, 4)
    if not weights.slot and weights.lists**2 > DOMINANT:
        floor, clip, repeats = DOMINANT_FLOOR, DOMINANT_CLIP, 2
    return Weights(
        weights.features,
        weights.lists,
        weights.slot,
        weights.heard,
        floor=floor,
        cover=True,
        clip=clip,
        scale=weights.clip / clip,
        repeats=repeats,
        reading=reading_bound(weights.lists, weights.unit, weights.slot, floor, clip, classes),
        row_reading=row_reading_bound(floor, classes),
    )
