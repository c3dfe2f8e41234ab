"""One run of Roster, one method per release of ``roster/__init__.py``."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch

from graphveil import learn
from graphveil.graph import Graph
from graphveil.methods.common.own_predictor import release_centre
from graphveil.methods.previous import Previous
from graphveil.methods.roster.bounds import LABELLED, SHARES
from graphveil.methods.roster.predictor import RosterPredictor
from graphveil.methods.roster.records import Blocks
from graphveil.methods.roster.sums import Sums
from graphveil.methods.roster.weights import LEAST_FLOOR, Survey, Weights, prior_of
from graphveil.privacy.curator import Curator
from graphveil.privacy.noise import Array
from graphveil.progress import Progress

SHRINKAGE = 0.25
WARM = 0.1
PUSH = 0.25

People = Callable[[Graph], Sums]


class Roll:
    """The curator and what has been released so far."""

    def __init__(
        self,
        curator: Curator,
        cover: bool,
        clip: float,
        learning_rate: float,
        progress: Progress,
        previous: Previous | None = None,
    ) -> None:
        self.previous = previous
        self.curator, self.facts, self.progress = curator, curator.facts, progress
        self.cover, self.clip, self.learning_rate = cover, clip, learning_rate
        self.labelled = np.flatnonzero(np.logical_or.reduce([curator.masks[kind] for kind in LABELLED]))
        self.asked = np.flatnonzero(~np.logical_or.reduce([curator.masks[kind] for kind in LABELLED]))
        self.mu = curator.plan.mu if curator.plan.promise.private else math.inf

    def call(self) -> RosterPredictor:
        centre = release_centre(self.curator, previous=self.previous)
        start = LEAST_FLOOR if self.cover else 1

        @cache
        def people(private: Graph) -> Sums:
            return Sums(private, self.labelled, centre, start)

        weights, prior, model = self.survey(people)
        noise, optimizer = self.descend(people, weights, model)
        shrink(model, weights, noise * float(np.sqrt(np.sum(optimizer.weights_of_gradients() ** 2))))
        if self.previous is not None:
            model = self.averaged(model, self.previous)
        return self.read_rows(centre, model, weights, optimizer, prior)

    def averaged(self, model: Blocks, previous: Previous) -> Blocks:
        """The model and that of an earlier run, each by its noise; newcomers have the code of now alone."""
        then, weight = previous.predictor, previous.weight(self.curator, "gradients", LABELLED)
        known = previous.known[:, None]
        return Blocks(
            model.features + weight * (then.features - model.features),
            model.codes + weight * known * (previous.placed(then.codes) - model.codes),
            model.bias + weight * (then.bias - model.bias),
        )

    def survey(self, people: People) -> tuple[Weights, Array, Blocks]:
        """Prior, probe and test, the weights that follow, and the direction in which the steps start."""
        n, classes, width = self.facts.nodes, self.facts.classes, self.facts.features
        prior = prior_of(self.curator.release("prior", lambda private: people(private).labels()), len(self.labelled))
        probe = self.curator.release("probe", lambda private: people(private).probe(prior)).reshape(-1, classes)
        features, codes, slots = np.split(probe, [width, width + n])
        noise = math.sqrt(3) * self.curator.noise_scale("probe")
        survey = Survey(features, codes, slots, noise, prior, len(self.labelled), n, self.mu)
        heard = lambda private: people(private).margins((features, codes, slots), prior, survey.bounds)
        test = self.curator.release("test", heard)
        weights = survey.decide(test, self.curator.noise_scale("test"), cover=self.cover, clip=self.clip)
        return weights, prior, first_direction(survey, weights)

    def descend(self, people: People, weights: Weights, model: Blocks) -> tuple[float, learn.GlobalMoment]:
        """The gradient steps, which move the model; the noise of one step, in units of the mean gradient."""
        prepare = lambda private, rows: people(private).at(weights.floor)
        session = self.curator.gradients("gradients", prepare, rows=self.labelled)
        steps, count = session.total // weights.repeats, max(1, len(self.labelled))
        noise = self.curator.noise_scale("gradients") / (weights.scale * math.sqrt(weights.repeats))
        model.scale(warmth(weights, steps, noise))
        query, optimizer = self.summands(model, weights), learn.GlobalMoment(self.learning_rate)
        divisor = weights.repeats * weights.scale * weights.clip * count
        for step in range(steps):
            total = session.step(query)
            for _ in range(1, weights.repeats):
                total += session.step(query)
            gradient = Blocks.of(total.reshape(-1, self.facts.classes), self.facts.features)
            parts = zip(model.parts(), gradient.parts(), (weights.features, weights.lists, 1.0), strict=True)
            moved = [(torch.from_numpy(p), torch.from_numpy(g), weight) for p, g, weight in parts if weight > 0]
            optimizer.advance(moved, divisor)
            self.progress("gradients", step + 1, steps)
        return noise / (weights.clip * count), optimizer

    @staticmethod
    def summands(model: Blocks, weights: Weights) -> Callable[[Sums, Any], Array]:
        """What one step asks for."""
        return lambda sums, batch: sums.gradient(model, weights).flat()

    def read_rows(
        self, centre: Array, model: Blocks, weights: Weights, optimizer: learn.GlobalMoment, prior: Array
    ) -> RosterPredictor:
        """The rows of query and other records; always released, read only where contacts agree."""
        classes, rows, weight = self.facts.classes, np.zeros((0, self.facts.classes)), 0.0
        asked = self.asked
        if any(step.name == "rows" for step in self.curator.plan.steps):
            query = lambda private: Sums(private, asked, centre, weights.floor, room=0).rows(model, weights)
            rows = self.curator.release("rows", query).reshape(-1, classes)
            variance = classes * self.curator.noise_scale("rows") ** 2
            if self.previous is not None:
                rows, left = self.rows_with(rows, self.previous)
                variance *= left
            slot, rest = weights.slot**2 * (1 - 1 / classes), 0.3 * (1 - weights.slot**2)
            gain = sum(optimizer.rates) * weights.lists * weights.slot * math.sqrt(1 - 1 / classes)
            weight = 2 * 0.5 / (0.5 + variance) * gain / (max(1, len(self.labelled)) * math.sqrt(slot + rest))
        else:
            asked = np.zeros(0, dtype=np.int64)
        push = PUSH if weights.slot else 0.0
        released = centre, model.features, model.bias, model.codes, asked, rows
        return RosterPredictor(*released, weights.floor, prior, weights.heard, weight, push)

    def rows_with(self, rows: Array, previous: Previous) -> tuple[Array, float]:
        """Rows of people who were asked about then, too, averaged by their noise; the part of the variance that is left."""
        then = previous.predictor
        table, there = np.zeros_like(then.codes), np.zeros(len(then.codes), dtype=bool)
        table[then.asked], there[then.asked] = then.rows, True
        both = np.zeros(len(previous.slots), dtype=bool)
        both[previous.known] = there[previous.slots[previous.known]]
        weight = previous.weight(self.curator, "rows") * both[self.asked]
        rows = rows + weight[:, None] * (previous.placed(table)[self.asked] - rows)
        return rows, float(np.mean(1 - weight))


def first_direction(survey: Survey, weights: Weights) -> Blocks:
    """The probe is a first gradient, read with these weights."""
    model = Blocks.zeros(len(survey.features), survey.nodes, len(survey.prior))
    np.multiply(survey.features, weights.features**2, out=model.features)
    np.multiply(survey.codes, weights.lists**2, out=model.codes)
    if weights.slot:
        model.codes += weights.lists * weights.slot * survey.slots
    return model


def warmth(weights: Weights, steps: int, noise: float) -> float:
    """So much of the probe is as reliable as the steps to come."""
    if not noise:
        return 0.0
    return WARM * SHARES["probe"] / SHARES["gradients"] * steps * weights.clip / noise * math.sqrt(3)


def shrink(model: Blocks, weights: Weights, noise: float) -> None:
    """Rows that are hardly more than their noise shrink towards 0."""
    for table, weight in ((model.features, weights.features), (model.codes, weights.lists)):
        energy = np.maximum(np.einsum("ij,ij->i", table, table) / table.shape[1], 1e-300)
        table *= np.maximum(1 - SHRINKAGE * (weight * noise) ** 2 / energy, 0.0)[:, None]
