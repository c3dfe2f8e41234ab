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
from graphveil.methods.roster.records import Blocks, Records
from graphveil.methods.roster.weights import LEAST_FLOOR, Survey, Weights, prior_of
from graphveil.privacy.curator import Curator
from graphveil.privacy.noise import Array
from graphveil.progress import Progress

SHRINKAGE = 0.25
WARM = 0.1
PUSH = 0.25


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
        weights, survey = self.survey(centre)
        model, noise, optimizer = self.descend(centre, weights, survey)
        shrink(model, weights, noise * float(np.sqrt(np.sum(optimizer.weights_of_gradients() ** 2))))
        if self.previous is not None:
            model = self.averaged(model, self.previous)
        return self.read_rows(centre, model, weights, optimizer, survey.prior)

    def averaged(self, model: Blocks, previous: Previous) -> Blocks:
        """The model and that of an earlier run, each by its noise; newcomers have the code of now alone."""
        then, weight = previous.predictor, previous.weight(self.curator, "gradients", LABELLED)
        known = previous.known[:, None]
        return Blocks(
            model.features + weight * (then.features - model.features),
            model.codes + weight * known * (previous.placed(then.codes) - model.codes),
            model.bias + weight * (then.bias - model.bias),
        )

    def survey(self, centre: Array) -> tuple[Weights, Survey]:
        """Prior, probe and test, and the weights that follow."""
        start = LEAST_FLOOR if self.cover else 1

        @cache
        def people(private: Graph) -> Records:
            return Records(private, self.labelled, centre, start)

        n, classes, width = self.facts.nodes, self.facts.classes, self.facts.features
        prior = prior_of(self.curator.release("prior", lambda private: people(private).labels()), len(self.labelled))
        probe = self.curator.release("probe", lambda private: people(private).probe(prior)).reshape(-1, classes)
        features, codes, slots = np.split(probe, [width, width + n])
        noise = math.sqrt(3) * self.curator.noise_scale("probe")
        survey = Survey(features, codes, slots, noise, prior, len(self.labelled), n, self.mu)
        heard = lambda private: people(private).margins((features, codes, slots), prior, survey.bounds)
        test = self.curator.release("test", heard)
        return survey.decide(test, self.curator.noise_scale("test"), cover=self.cover, clip=self.clip), survey

    def descend(self, centre: Array, weights: Weights, survey: Survey) -> tuple[Blocks, float, learn.GlobalMoment]:
        """The gradient steps; the noise of one step, in units of the mean gradient."""
        prepare = lambda private, rows: Records(private, rows, centre, weights.floor)
        session = self.curator.gradients("gradients", prepare, rows=self.labelled)
        steps, count = session.total // weights.repeats, max(1, len(self.labelled))
        noise = self.curator.noise_scale("gradients") / (weights.scale * math.sqrt(weights.repeats))
        model = warm_start(survey, weights, steps, noise)
        parts = np.array([weights.features, weights.lists, 1.0])
        active = np.repeat(parts > 0, [model.features.size, model.codes.size, model.bias.size])
        scale = np.repeat(parts, [model.features.size, model.codes.size, model.bias.size])[active]
        values = torch.from_numpy(model.flat()[active] / scale)
        optimizer = learn.GlobalMoment(self.learning_rate)
        for step in range(steps):
            sums = [session.step(self.summands(model, weights))[active] for _ in range(weights.repeats)]
            gradient = sum(sums[1:], start=sums[0]) / (len(sums) * weights.scale * weights.clip * count)
            optimizer.step(values, torch.from_numpy(gradient))
            flat = np.zeros(len(active))
            flat[active] = values.numpy() * scale
            model = model.like(flat)
            self.progress("gradients", step + 1, steps)
        return model, noise / (weights.clip * count), optimizer

    @staticmethod
    def summands(model: Blocks, weights: Weights) -> Callable[[Records, Any], Array]:
        """What one step asks for."""
        return lambda records, batch: records.gradient(model, weights).flat()

    def read_rows(
        self, centre: Array, model: Blocks, weights: Weights, optimizer: learn.GlobalMoment, prior: Array
    ) -> RosterPredictor:
        """The rows of query and other records; always released, read only where contacts agree."""
        classes, rows, weight = self.facts.classes, np.zeros((0, self.facts.classes)), 0.0
        asked = self.asked
        if any(step.name == "rows" for step in self.curator.plan.steps):
            query = lambda private: Records(private, asked, centre, weights.floor).rows(model, weights)
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


def warm_start(survey: Survey, weights: Weights, steps: int, noise: float) -> Blocks:
    """The probe is a first gradient: so much of it is as reliable as the steps to come."""
    zero = Blocks.zeros(len(survey.features), survey.nodes, len(survey.prior))
    if not noise:
        return zero
    k = WARM * SHARES["probe"] / SHARES["gradients"] * steps * weights.clip / noise * math.sqrt(3)
    zero.features = k * weights.features**2 * survey.features
    zero.codes = k * weights.lists * (weights.lists * survey.codes + weights.slot * survey.slots)
    return zero


def shrink(model: Blocks, weights: Weights, noise: float) -> None:
    """Rows that are hardly more than their noise shrink towards 0."""
    for name, weight in (("features", weights.features), ("codes", weights.lists)):
        table = getattr(model, name)
        energy = np.maximum(np.mean(table**2, axis=1, keepdims=True), 1e-300)
        setattr(model, name, table * np.maximum(1 - SHRINKAGE * (weight * noise) ** 2 / energy, 0.0))
