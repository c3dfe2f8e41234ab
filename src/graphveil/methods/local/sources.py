"""Where evidence on classes comes from, kept so that newcomers can be asked about: public edges, or noisy histograms.

A source has the reports it heard and the few numbers it fitted; from these, evidence on everybody and on newcomers is computed by
one function. Tests: ``tests/cli/test_newcomers.py``, ``tests/methods/test_local.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from graphveil.errors import InputError
from graphveil.exchange.files import Files
from graphveil.exchange.server import Server
from graphveil.methods.common.asked import joined_edges, sent_values
from graphveil.methods.common.denoise import (
    HistogramFit,
    belief_propagation,
    fit_histograms,
    histogram_likelihoods,
    hop_shares,
    likelihood_rows,
    normalised,
)
from graphveil.privacy.noise import Array

# shares lie in [-1, 1], log-posteriors in [-10, 0]: brings their weights to one scale for one learning rate
HOP_SCALE = 4.0
FLOOR = -10.0  # of log-posteriors: on dense graphs belief propagation is far too sure of itself


def no_extra(evidence: Array) -> Array:
    """No further columns."""
    return np.zeros((len(evidence), 0))


@dataclass(frozen=True, eq=False)
class PublicEdges:
    """Likelihoods of label reports, propagated over public edges; ``beliefs`` are options of belief propagation."""

    reports: np.ndarray
    channel: Array
    edges: np.ndarray
    beliefs: Mapping[str, Any]

    @cached_property
    def likelihoods(self) -> Array:
        return likelihood_rows(self.reports, self.channel)

    def propagated(self, edges: np.ndarray, likelihoods: Array) -> Array:
        """n x kinds x classes: five hops, and the log-posteriors of belief propagation."""
        matrix = normalised(edges, len(likelihoods), self_loops=True)
        last = np.maximum(belief_propagation(edges, likelihoods, **self.beliefs), FLOOR)
        return np.concatenate([HOP_SCALE * hop_shares(matrix, likelihoods), last[:, None, :]], axis=1)

    def slots(self) -> tuple[Array, Array]:
        """Evidence on every slot, and its further columns."""
        whole = self.propagated(self.edges, self.likelihoods)
        return whole, no_extra(whole)

    def blind(self, slots: np.ndarray) -> tuple[Array, Array]:
        """The same on some slots, without the reports of all of them."""
        likelihoods = self.likelihoods.copy()
        likelihoods[slots] = 1 / len(self.channel)
        whole = self.propagated(self.edges, likelihoods)[slots]
        return whole, no_extra(whole)

    def newcomers(self, files: Files, directed: bool) -> tuple[Array, Array]:
        """The same on newcomers, whose contacts are public; nobody of them has told a label."""
        count, classes = len(files.ids) - files.known, len(self.channel)
        likelihoods = np.concatenate([self.likelihoods, np.full((count, classes), 1 / classes)])
        whole = self.propagated(joined_edges(self.edges, files, directed), likelihoods)[files.known :]
        return whole, no_extra(whole)

    def arrays(self) -> dict[str, np.ndarray]:
        return {"reports": self.reports, "channel": self.channel, "edges": self.edges}

    @classmethod
    def restore(cls, beliefs: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        return cls(arrays["reports"], arrays["channel"], arrays["edges"], beliefs)


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """One round of histograms: a row of noisy counts for every vertex, and the variance of the noise on each count."""

    counts: Array
    noise: float

    @classmethod
    def heard(cls, server: Server, name: str, bins: np.ndarray) -> NoisyCounts:
        """The answers to a round of histograms over the public ``bins`` of everybody."""
        return cls(server.ask(name, bins), float(server.rounds[name].randomizer.variance()))

    @cached_property
    def mean(self) -> Array:
        return np.asarray(self.counts.mean(axis=0))

    def fit(self, degrees: Array, likelihoods: Array, start: Array, dispersion: float) -> HistogramFit:
        return fit_histograms(self.counts, degrees, self.noise, likelihoods, start, dispersion=dispersion)

    def standard(self, degrees: Array, counts: Array | None = None) -> Array:
        """Counts (default: of all slots) about the mean of the slots, over the standard deviation in a list of that length."""
        told = self.counts if counts is None else counts
        return np.asarray((told - self.mean) / np.sqrt(degrees[:, None] + self.noise))


@dataclass(frozen=True, eq=False)
class Histograms:
    """Noisy counts of one or two rounds, P(bin | class) of each, and the classes' prior; ``degrees`` where they are public."""

    rounds: tuple[NoisyCounts, ...]
    bins: tuple[Array, ...]
    prior: Array
    degrees: np.ndarray | None
    dispersion: float

    def slots(self) -> tuple[Array, Array]:
        return self._evidence([one.counts for one in self.rounds], self.degrees)

    def blind(self, slots: np.ndarray) -> tuple[Array, Array]:
        """The same on some slots: nobody's own counts read their own label."""
        whole, extra = self.slots()
        return whole[slots], extra[slots]

    def newcomers(self, files: Files, directed: bool) -> tuple[Array, Array]:
        """Of their own noisy counts; a network or a list of their contacts is not read."""
        names = [name for name, _ in zip(("histogram", "histogram-2"), self.rounds, strict=False)]
        missing = [name for name in names if name not in files.rounds]
        if missing:
            raise InputError(f"the model learned from the rounds {', '.join(names)}: {missing[0]!r} is not answered")
        told = files.lengths()
        if self.degrees is not None and told is None:
            raise InputError("the model reads the lengths of contact lists: these reports do not tell them")
        lengths = None if self.degrees is None or told is None else told[files.known :]
        return self._evidence([sent_values(files, files.rounds[name]) for name in names], lengths)

    def _evidence(self, counts: Sequence[Array], lengths: np.ndarray | None) -> tuple[Array, Array]:
        found = []
        for number, (one, heard) in enumerate(zip(counts, self.rounds, strict=True), start=1):
            if lengths is None:
                degrees = degree_law(self.rounds[:number])(counts[:number])
            else:
                degrees = np.asarray(lengths, dtype=np.float64)
            found.append(histogram_likelihoods(one, degrees, heard.noise, self.bins[number - 1], self.dispersion))
        total = sum(found) + np.log(self.prior)
        stacked = np.stack([part - part.mean(axis=1, keepdims=True) for part in (*found, total)], axis=1)
        extra = [heard.standard(degrees, one) for heard, one in zip(self.rounds, counts, strict=True)]
        return stacked, np.hstack(extra)

    def arrays(self) -> dict[str, np.ndarray]:
        found = {"prior": self.prior, "noise": np.array([one.noise for one in self.rounds])}
        for number, (one, bins) in enumerate(zip(self.rounds, self.bins, strict=True)):
            found |= {f"counts{number}": one.counts, f"bins{number}": bins}
        return found | ({} if self.degrees is None else {"degrees": self.degrees})

    @classmethod
    def restore(cls, dispersion: float, arrays: Mapping[str, np.ndarray]) -> Self:
        rounds = tuple(NoisyCounts(arrays[f"counts{n}"], float(noise)) for n, noise in enumerate(arrays["noise"]))
        bins = tuple(arrays[f"bins{number}"] for number in range(len(rounds)))
        return cls(rounds, bins, arrays["prior"], arrays.get("degrees"), dispersion)


def noisy_degrees(rounds: Sequence[NoisyCounts]) -> Array:
    """The lengths of the lists of all slots from the sums of the noisy counts alone."""
    return degree_law(rounds)([one.counts for one in rounds])


def degree_law(rounds: Sequence[NoisyCounts]) -> Callable[[Sequence[Array]], Array]:
    """How lengths of lists are read off noisy counts of these rounds.

    Every sum is the length plus noise of known variance; sums of several rounds are weighted by precision, the result is
    drawn towards the mean by tau^2/(tau^2 + noise), tau^2 = variance of the sums less the noise, and kept at 0 or above.
    """
    precision = np.array([1 / (one.noise * one.counts.shape[1]) for one in rounds])
    weights = precision / precision.sum()

    def summed(counts: Sequence[Array]) -> Array:
        return np.asarray(sum(share * one.sum(axis=1) for share, one in zip(weights, counts, strict=True)))

    everybody = summed([one.counts for one in rounds])
    mean, spread = everybody.mean(), max(float(everybody.var()) - 1 / float(precision.sum()), 0.0)
    kept = spread / (spread + 1 / float(precision.sum()))
    return lambda counts: np.asarray(np.maximum(mean + kept * (summed(counts) - mean), 0.0))
