"""Gaussian and Laplace noise on whole numbers in which every number has its ideal probability, far tail included.

P(k) ~ exp(-k^2 / 2 S^2) or exp(-|k| / S), with S the scale in cells of the public grid (2^40 to 2^41 of them). A ziggurat or the
logarithm of one double does not have these laws: it reaches some of the cells only, and which ones depends on the clean value.

*Coarse cell* of 2^33 magnitudes from an alias table, with probability proportional to the largest weight in the cell; *offset*
uniform; *accepted* with the ratio of the weight to that largest one (0.95 or more), else the draw starts again. So P(k) is
proportional to the weight itself. The sign is a bit; minus zero starts again. What lies beyond the table is one more entry.
Laplace: "further on" adds the length of the table and goes on, since a geometric law has no memory. Gaussian: k = K + m with m
geometric of ratio exp(-K / S^2), whose binary digits are independent coins, accepted with exp(-m^2 / 2 S^2).

*Error.* The table is whole numbers, its chances are exact to 2^-74; acceptance compares 62 bits with a double, coins of the tail
are exact to a relative 2^-62. So every P(k) is within a relative ``noise.ERROR`` of the ideal wherever that is at least 2^-100:
12 scales of a Gaussian, 69 of a Laplace. Beyond, a Laplace number errs no more per stage, a Gaussian one, x scales out, by
x^2 2^-52 up to 38 scales (2^-1042), where it ends.

*What that costs.* Let the laws P, Q of a release of d numbers on two neighbours be mu-GDP, and P', Q' those really drawn, within
factors 1 +- g, g = d ERROR. For a test S of level a' = P'(S): P(S) <= (1 + g) a' and 1 - P(S) >= (1 - a') / (1 + g), so its
normal quantile differs by at most g min(F, 1 - F) / f <= 1.26 g (F, f: the normal law and density), and that of its power too:
(mu + 3 g)-GDP for g <= 0.01 (3 for 2.52: terms in g^2). For Laplace, log-ratios grow by 2 g. Real errors are near 1e-15.
Tests recompute P(k) from the tables as they are: ``tests/privacy/test_samplers.py``; cost: ``benchmarks/noise.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from graphveil.privacy.words import WORDS, Stream, fill_words

CELL_BITS, INDEX_BITS = 33, 11
KEEP_BITS, ACCEPT_BITS = (
    10,
    9,
)  # with these and a sign one word is full; either decision takes a further word if these leave it open
MORE_BITS = 64
CELL, ENTRIES = 2.0**CELL_BITS, 1 << INDEX_BITS
GAUSSIAN_REACH, LAPLACE_REACH = 5.0, 7.0  # scales that the table covers
TAIL_DIGITS = 50
BLOCK = 1 << 14  # words that are made at a time: they stay in the cache

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Table:
    """An alias table over coarse cells; entry ``cells`` stands for all that lies beyond them.

    ``keep``, ``more``: the chance to stay at an entry instead of going to ``other``, in units of 2^-10 and the next 64 bits.
    """

    scale: float
    keep: WORDS
    more: WORDS
    other: NDArray[np.uint16]
    cells: int

    @classmethod
    def of(cls, scale: float, weights: NDArray[np.longdouble]) -> Table:
        """From weights of the coarse cells and, last, of all that lies beyond."""
        whole = [int(weight) for weight in np.ldexp(weights / weights.max(), 120)]
        chances, other = alias([*whole, *[0] * (ENTRIES - len(whole))])
        total = sum(whole)
        exact = [
            min((chance << (KEEP_BITS + MORE_BITS)) // total, (1 << KEEP_BITS + MORE_BITS) - 1) for chance in chances
        ]
        keep = np.array([one >> MORE_BITS for one in exact], dtype=np.uint64)
        more = np.array([one & ((1 << MORE_BITS) - 1) for one in exact], dtype=np.uint64)
        return cls(scale, keep, more, np.array(other, dtype=np.uint16), len(whole) - 1)


def alias(weights: list[int]) -> tuple[list[int], list[int]]:
    """Walker's table (Vose 1991): of sum(weights) draws at each entry, how many stay there, and where the others go."""
    total = sum(weights)
    chances, other = [weight * len(weights) for weight in weights], list(range(len(weights)))
    small = [entry for entry, chance in enumerate(chances) if chance < total]
    large = [entry for entry, chance in enumerate(chances) if chance >= total]
    while small:  # whole numbers: as long as one is below the mean, another is above
        less, more = small.pop(), large[-1]
        other[less] = more
        chances[more] -= total - chances[less]
        if chances[more] < total:
            small.append(large.pop())
    return chances, other


@lru_cache(maxsize=256)
def gaussian_table(scale: float) -> Table:
    """Magnitudes up to ``GAUSSIAN_REACH`` scales; beyond: the sum of exp(-(K^2 + 2 K m) / 2 S^2) over m >= 0."""
    cells = math.ceil(GAUSSIAN_REACH * scale / CELL)
    at = np.arange(cells + 1, dtype=np.longdouble) * CELL / np.longdouble(scale)
    weights = np.exp(-(at**2) / 2)
    weights[:-1] *= CELL
    weights[-1] /= -np.expm1(-at[-1] / np.longdouble(scale))
    return Table.of(scale, weights)


@lru_cache(maxsize=256)
def laplace_table(scale: float) -> Table:
    """Magnitudes up to ``LAPLACE_REACH`` scales; beyond: the whole rest of the law."""
    cells = math.ceil(LAPLACE_REACH * scale / CELL)
    weights = np.exp(-np.arange(cells + 1, dtype=np.longdouble) * CELL / np.longdouble(scale))
    weights[:-1] *= CELL
    weights[-1] /= -np.expm1(-1 / np.longdouble(scale))
    return Table.of(scale, weights)


def draw_gaussian(scale: float, cell: float, out: Array, words: Stream) -> None:
    """Fill ``out`` with N(0, scale^2) in whole numbers of cells; ``cell`` is a power of two."""
    table, place, at, end = gaussian_table(scale / cell), 0, 0, 0
    batch, proposals = np.empty(BLOCK, dtype=np.uint64), np.empty(BLOCK)
    open_, odd = np.empty(BLOCK, dtype=np.uint8), np.zeros(BLOCK + 1, dtype=np.int64)
    while place < len(out):
        place, at, end, tail = _gaussian(
            words.address,
            words.state,
            words.memory,
            batch,
            at,
            end,
            table.scale,
            cell,
            table.keep,
            table.more,
            table.other,
            table.cells,
            out,
            place,
            proposals,
            open_,
            odd,
        )
        if tail and place < len(out):
            magnitude = _beyond(table, words)
            out[place] = tail * magnitude * cell
            place += magnitude > 0


def draw_laplace(scale: float, cell: float, out: Array, words: Stream) -> None:
    """Fill ``out`` with Laplace numbers of this scale in whole numbers of cells; ``cell`` is a power of two."""
    table, place, further = laplace_table(scale / cell), 0, 0
    while place < len(out):
        batch = words(min(len(out) - place + (len(out) - place) // 48 + 8, BLOCK))
        place, further = _laplace(
            batch, table.scale, cell, table.keep, table.more, table.other, table.cells, out, place, further
        )


def _beyond(table: Table, words: Stream) -> int:
    """The magnitude of a number beyond the table, or 0 if it was not accepted and the draw starts again."""
    more = sum(1 << digit for digit, chance in enumerate(tail_digits(table)) if _shows(chance, words))
    kept = _shows(math.exp(-0.5 * (more / table.scale) ** 2), words)
    return int(table.cells * CELL) + more if kept else 0


def tail_digits(table: Table) -> list[float]:
    """The chances of the binary digits of a geometric number of ratio exp(-K / S^2): independent, whatever the number."""
    rate = table.cells * CELL / table.scale / table.scale
    shorter = np.exp(-np.exp2(np.arange(TAIL_DIGITS)) * rate)
    return [float(chance) for chance in shorter / (1 + shorter)]


def coin(chance: float) -> tuple[int, int]:
    """A chance as so many leading zero bits and a threshold for the 63 bits after them: small chances keep their digits."""
    zeros = max(0, -math.frexp(chance)[1])
    return zeros, round(math.ldexp(chance, zeros + 63))


def _shows(chance: float, words: Stream) -> bool:
    if chance == 0.0:  # below the smallest double: more than 38 scales
        return False
    zeros, below = coin(chance)
    while zeros > 0:
        if int(words(1)[0]) >> (64 - min(zeros, 64)):
            return False
        zeros -= 64
    return int(words(1)[0]) >> 1 < below


@njit(cache=True, nogil=True)
def add_on_grid(value: Any, cell: float, most: float, noise: Any) -> None:
    """Add ``value``, moved to -most .. most and rounded to whole cells, to ``noise``."""
    inverse = 1 / cell
    for at in range(len(noise)):
        moved = value[at]  # what is not a number stays so
        moved = most if moved > most else moved
        moved = -most if moved < -most else moved
        noise[at] += np.rint(moved * inverse) * cell


SPARE = 2  # words after the first that one draw may read
# How an entry is chosen is written out in both loops: as a function it becomes a branch to be guessed, twice as slow.


@njit(cache=True)
def exp_minus(a: Any) -> Any:
    """exp(-a) for 0 <= a < 0.05."""
    return 1 - a * (1 - a / 2 * (1 - a / 3 * (1 - a / 4 * (1 - a / 5 * (1 - a / 6 * (1 - a / 7))))))


@njit(cache=True)
def _accepted(words: Any, word: Any, at: Any, a: Any) -> Any:
    """Whether a uniform number that starts with 9 bits of ``word`` is below exp(-a), 0 <= a < 0.05; and where to read on."""
    bits = np.float64(np.int64(word & np.uint64(511)))
    if bits < (1.0 - a) * 512.0 - 1.0:  # 1 - a <= exp(-a) decides nearly always
        return True, at
    below = exp_minus(a) * 512.0
    whole = np.floor(below)
    if bits != whole:
        return bits < whole, at
    further = np.float64(np.int64(words[at] >> np.uint64(11)))
    return further < (below - whole) * 9007199254740992.0, at + 1


# Nearly every word is a number by itself: these are made in two passes without a branch, and copied; `odd` lists the others.


@njit(cache=True)
def _choose(words: Any, end: int, keep: Any, other: Any, entries: Any, open_: Any) -> None:
    """The entry that every word leads to, and whether it takes a further word to tell."""
    for at in range(end):
        chosen, low = words[at] >> np.uint64(53), (words[at] >> np.uint64(42)) & np.uint64(1023)
        kept = keep[chosen]
        gone = np.uint64(0) - np.uint64(
            low >= kept
        )  # all bits or none: a branch would be guessed wrong half of the time
        entries[at] = np.float64(np.int64(chosen ^ ((chosen ^ np.uint64(other[chosen])) & gone)))
        open_[at] = low == kept


@njit(cache=True)
def _propose(words: Any, end: int, scale: float, cell: float, cells: int, entries: Any, open_: Any) -> None:
    """The number of every word in place of its entry, and whether it takes more than this word to accept it."""
    half, beyond = 0.5 / scale / scale, np.float64(cells)
    for at in range(end):
        word, near = words[at], entries[at] * 8589934592.0
        beside = np.float64(np.int64((word >> np.uint64(9)) & np.uint64((1 << 33) - 1)))
        a = beside * (beside + 2.0 * near) * half
        bits, k = np.float64(np.int64(word & np.uint64(511))), near + beside
        open_[at] |= (entries[at] == beyond) | (bits >= (1.0 - a) * 512.0 - 1.0) | (k == 0.0)
        entries[at] = (-k if (word >> np.uint64(52)) & np.uint64(1) else k) * cell


@njit(cache=True)
def _listed(open_: Any, end: int, odd: Any) -> None:
    """Where ``open_`` is set, in order, and then ``end``."""
    count = 0
    for at in range(end):
        odd[count] = at
        count += open_[at]
    odd[count] = end


@njit(cache=True, nogil=True)
def _gaussian(
    address: int,
    state: int,
    memory: Any,
    words: Any,
    at: int,
    end: int,
    scale: float,
    cell: float,
    keep: Any,
    more: Any,
    other: Any,
    cells: int,
    out: Any,
    place: int,
    proposals: Any,
    open_: Any,
    odd: Any,
) -> tuple[int, int, int, int]:
    """Fill ``out`` from ``place`` on with words from ``at`` on; stops where a number beyond the table is due, with its sign."""
    half = 0.5 / scale / scale
    while True:
        last, listed = end - SPARE, 0
        while place < len(out) and at < last:
            while odd[listed] < at:
                listed += 1
            plain = min(odd[listed], last) - at
            if plain > 0:
                plain = min(plain, len(out) - place)
                made, taken = proposals[at : at + plain], out[place : place + plain]
                for step in range(len(taken)):  # over slices, so that it is compiled to moves of many
                    taken[step] = made[step]
                place += plain
                at += plain
                continue
            word = words[at]
            at += 1
            chosen, low = word >> np.uint64(53), (word >> np.uint64(42)) & np.uint64(1023)
            entry = np.uint64(other[chosen]) if low >= keep[chosen] else chosen
            if low == keep[chosen]:
                entry = chosen if words[at] < more[chosen] else entry
                at += 1
            minus = (word >> np.uint64(52)) & np.uint64(1)
            if entry == np.uint64(cells):
                return place, at, end, -1 if minus else 1
            offset = (word >> np.uint64(9)) & np.uint64((1 << 33) - 1)
            near, beside = np.float64(np.int64(entry)) * 8589934592.0, np.float64(np.int64(offset))
            accepted, at = _accepted(words, word, at, beside * (beside + 2.0 * near) * half)
            k = np.int64((entry << np.uint64(33)) + offset)
            if not accepted or (k == 0 and minus):
                continue
            out[place] = np.float64(-k if minus else k) * cell
            place += 1
        if place == len(out):
            return place, at, end, 0
        at, end = 0, min(len(out) - place + (len(out) - place) // 24 + 8, BLOCK)
        fill_words(address, state, memory, words[:end])
        _choose(words, end, keep, other, proposals, open_)
        _propose(words, end, scale, cell, cells, proposals, open_)
        _listed(open_, end, odd)


@njit(cache=True, nogil=True)
def _laplace(
    words: Any,
    scale: float,
    cell: float,
    keep: Any,
    more: Any,
    other: Any,
    cells: int,
    out: Any,
    place: int,
    further: int,
) -> tuple[int, int]:
    """Fill ``out`` from ``place`` on; ``further`` is what the draw under way has passed already."""
    rate, at = 1.0 / scale, 0
    while place < len(out) and at + SPARE < len(words):
        word = words[at]
        at += 1
        chosen, low = word >> np.uint64(53), (word >> np.uint64(42)) & np.uint64(1023)
        entry = np.uint64(other[chosen]) if low >= keep[chosen] else chosen
        if low == keep[chosen]:
            entry = chosen if words[at] < more[chosen] else entry
            at += 1
        if entry == np.uint64(cells):
            further += cells * 8589934592
            continue
        offset = (word >> np.uint64(9)) & np.uint64((1 << 33) - 1)
        accepted, at = _accepted(words, word, at, np.float64(np.int64(offset)) * rate)
        k = further + np.int64((entry << np.uint64(33)) + offset)
        minus = (word >> np.uint64(52)) & np.uint64(1)
        if not accepted or (k == 0 and minus):
            continue
        out[place] = np.float64(-k if minus else k) * cell
        place += 1
        further = 0
    return place, further
