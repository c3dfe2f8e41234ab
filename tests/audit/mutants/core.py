"""Bugs of the privacy core: noise, batches, curator, ledger, accounting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import lru_cache
from unittest.mock import patch

import numpy as np

from graphveil.privacy.accounting.loss import epsilon_of
from graphveil.privacy.curator import Curator, GradientSteps
from graphveil.privacy.ledger import Ledger
from graphveil.privacy.noise import Noise
from graphveil.privacy.plan import Slot
from graphveil.privacy.response import BitFlips
from tests.audit.mutants.planting import planted


@planted(Noise, "gaussian")
def a_tenth_of_the_noise_on_one_number(original):
    """Ballot's ``test``: calibration records would pay 28.1 for 4.0."""

    def gaussian(self, sigma, shape):
        drawn = original(self, sigma, shape)
        return self.add(drawn / 10, np.zeros(shape), sigma) if np.prod(shape) == 1 else drawn  # on the grid

    return gaussian


@planted(Noise, "gaussian")
def half_the_noise_on_the_last_number(original):
    """Every other number of a table has its noise."""

    def gaussian(self, sigma, shape):
        drawn = original(self, sigma, shape)
        drawn.reshape(-1)[-1:] *= 0.5
        return drawn

    return gaussian


@planted(Curator, "release")
def half_the_noise_handed_back(original):
    """The noise is drawn as declared, and the clean value is averaged in afterwards."""

    def release(self, name, query, share=None):
        return (original(self, name, query, share) + np.asarray(query(self._private))) / 2

    return release


@planted(Slot, "release")
def slots_at_half_price(original):
    """A slot draws noise for a larger part of the budget than was asked for."""
    return lambda self, mu: original(self, 1.5 * mu)


@planted(Ledger, "append")
def a_release_left_off_the_ledger(original):
    """The mean is released and not written down."""

    def append(self, release):
        if release.name != "mean":
            original(self, release)

    return append


@planted(Noise, "coins")
def one_record_in_more_batches(original):
    def coins(self, rate, size):
        return original(self, rate, size) | (original(self, 0.3, size) & (np.arange(size) == size - 1))

    return coins


@planted(Noise, "coins")
def records_drawn_in_pairs(original):
    return lambda self, rate, size: np.repeat(original(self, rate, (size + 1) // 2), 2)[:size]


@planted(GradientSteps, "step")
def half_of_a_batch_stays(original):
    """Every other record of a batch is in the next one if it was in the last."""

    def step(self, query):
        tape, last = self._curator._tape, getattr(self, "_last", None)
        toss = tape.coins

        def coins(name, draw):
            drawn = toss(name, lambda: draw() if last is None else np.where(np.arange(len(last)) % 2, draw(), last))
            self._last = drawn
            return drawn

        tape.coins = coins
        try:
            return original(self, query)
        finally:
            del tape.coins

    return step


class Empty(Exception):
    """Nobody was in a batch."""


@planted(GradientSteps, "step")
def empty_batches_skipped(original):
    """No noise is drawn for them."""

    def step(self, query):
        def asked(prepared, batch):
            if batch is not None and not batch.size:
                raise Empty
            return query(prepared, batch)

        try:
            return original(self, asked)
        except Empty:
            return np.zeros(self._release.mechanism.dimension)

    return step


@planted(GradientSteps, "step")
def empty_batches_without_noise(original):
    """Noise is drawn and then left out."""

    def step(self, query):
        batches = []

        def asked(prepared, batch):
            batches.append(batch)
            return query(prepared, batch)

        released = original(self, asked)
        return released if batches[0] is None or batches[0].size else np.zeros_like(released)

    return step


@planted(GradientSteps, "step")
def batches_ignored(original):
    """The coins are right, and the sum is over everybody."""
    return lambda self, query: original(self, lambda prepared, batch: query(prepared, None))


@planted(BitFlips, "draw")
def edges_only_added(original):
    """Flips add strangers and take no friend away."""
    return lambda self, ones, bits, noise: np.union1d(ones, original(self, ones, bits, noise))


@planted(Curator, "__init__")
def query_labels_in_every_hand(original):
    """Labels outside train and calibration are not hidden from queries."""

    def init(self, graph, *rest, **options):
        original(self, graph, *rest, **options)
        self._private = graph

    return init


@planted(Ledger, "append")
def ledger_kept_in_memory(original):
    """What was spent is not on disk before the release leaves."""
    return lambda self, release: self.entries.append(release)


@contextmanager
def noise_reused_across_hops() -> Iterator[None]:
    """Every aggregation gets the same draw."""
    drawn: dict[tuple[int, ...], np.ndarray] = {}
    original = Noise.gaussian

    def gaussian(self: Noise, sigma: float, shape: tuple[int, ...]) -> np.ndarray:
        if len(np.atleast_1d(shape)) < 2:
            return original(self, sigma, shape)
        return drawn.setdefault(tuple(shape), original(self, sigma, shape)).copy()

    with patch.object(Noise, "gaussian", gaussian):
        yield


@contextmanager
def scale_zero() -> Iterator[None]:
    """A calibration that silently came out as no noise at all."""
    with patch.object(Noise, "gaussian", lambda self, sigma, shape: np.zeros(shape)):
        yield


@contextmanager
def one_draw_for_all_numbers() -> Iterator[None]:
    """A scalar draw broadcast over a vector: differences between coordinates carry no noise."""
    original = Noise.gaussian
    with patch.object(Noise, "gaussian", lambda self, sigma, shape: np.full(shape, original(self, sigma, 1))):
        yield


@contextmanager
def signs_instead_of_gaussians() -> Iterator[None]:
    """Noise of the right variance and the wrong law."""

    original = Noise.gaussian

    def signs(self: Noise, sigma: float, shape: tuple[int, ...]) -> np.ndarray:
        return self.add(sigma * np.sign(original(self, sigma, shape)), np.zeros(shape), sigma)  # on the grid

    with patch.object(Noise, "gaussian", signs):
        yield


@contextmanager
def noise_off_the_grid() -> Iterator[None]:
    """The value is not rounded before noise is added, so its last digits survive."""
    with patch.object(Noise, "add", lambda self, value, noise, scale: np.asarray(value, dtype=float) + noise):
        yield


@contextmanager
def batches_of_fixed_size() -> Iterator[None]:
    """Batches drawn without replacement, accounted as Poisson."""

    def coins(self: Noise, rate: float, size: int) -> np.ndarray:
        chosen = np.zeros(size, dtype=bool)
        chosen[np.argsort(self.gaussian(1.0, size))[: round(rate * size)]] = True
        return chosen

    with patch.object(Noise, "coins", coins):
        yield


@contextmanager
def one_batch_for_all_steps() -> Iterator[None]:
    """The coins of a batch are drawn once and kept."""
    drawn: dict[tuple[float, int], np.ndarray] = {}
    original = Noise.coins

    def coins(self: Noise, rate: float, size: int) -> np.ndarray:
        return drawn.setdefault((rate, size), original(self, rate, size))

    with patch.object(Noise, "coins", coins):
        yield


@contextmanager
def noise_that_remembers() -> Iterator[None]:
    """Every draw of a shape leans on the one before: right law, wrong dependence."""
    last: dict[tuple[int, ...], np.ndarray] = {}
    original = Noise.gaussian

    def gaussian(self: Noise, sigma: float, shape: tuple[int, ...]) -> np.ndarray:
        fresh = original(self, sigma, shape) / sigma
        key = tuple(np.atleast_1d(shape))
        mixed = 0.6 * last.get(key, fresh) + 0.8 * fresh if key in last else fresh
        last[key] = mixed
        return self.add(sigma * mixed, np.zeros(shape), sigma)  # on the grid

    with patch.object(Noise, "gaussian", gaussian):
        yield


@contextmanager
def _accounting(**changes: object) -> Iterator[None]:
    """``graphveil.privacy.accounting.loss`` with other functions and without what it remembers."""
    import graphveil.privacy.accounting.loss as loss

    remembered = (loss._epsilon_by_pld, loss._distribution)
    with ExitStack() as stack:
        for name, value in changes.items():
            stack.enter_context(patch.object(loss, name, value))
        for function in remembered:
            function.cache_clear()
        yield
    for function in remembered:
        function.cache_clear()


@contextmanager
def replacing_accounted_as_removing() -> Iterator[None]:
    """One row changes into another; the accountant thinks that it vanishes."""
    import graphveil.privacy.accounting.loss as loss

    original = loss._distribution.__wrapped__
    removing = lambda found: original(
        replace(found, replace=False) if isinstance(found, loss.SampledGaussian) else found
    )
    with _accounting(_distribution=lru_cache(removing)):
        yield


@contextmanager
def sampling_rate_halved_in_the_accounting() -> Iterator[None]:
    """The accountant is told half of the rate at which batches are drawn."""
    import graphveil.privacy.accounting.loss as loss

    original = loss._distribution.__wrapped__
    halved = lambda found: original(
        replace(found, rate=found.rate / 2) if isinstance(found, loss.SampledGaussian) else found
    )
    with _accounting(_distribution=lru_cache(halved)):
        yield


@contextmanager
def gaussians_added_like_their_maximum() -> Iterator[None]:
    """Composition forgets all but the largest Gaussian parameter."""
    import graphveil.privacy.accounting.loss as loss

    original = loss.compose

    def compose(losses):  # type: ignore[no-untyped-def]
        listed = list(losses)
        mus = [found.mu for found in listed if isinstance(found, loss.Gdp)]
        return original([*(f for f in listed if not isinstance(f, loss.Gdp)), *([loss.Gdp(max(mus))] if mus else [])])

    with _accounting(compose=compose):
        yield


@contextmanager
def linear_amplification() -> Iterator[None]:
    """Sampled slots are said to cost rate times epsilon."""
    import graphveil.privacy.promise as promise

    linear = lambda losses, delta, rate: rate * epsilon_of(losses, delta / rate)
    check = patch("graphveil.audit.accountants.amplified_epsilon", linear)
    with patch.object(promise, "amplified_epsilon", linear), _accounting(amplified_epsilon=linear), check:
        yield
