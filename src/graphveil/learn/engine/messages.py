"""Messages along contact lists: what a block sends, and how messages are added up where they arrive.

Every number that is sent lies on the grid 2^-24, so sums are exact in any order. The table of sums can be cut into *ranges* of
rows: messages are then sorted by the range they go to, and whoever adds up a range holds its rows and what is sent to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphveil.graph.lists import mass_weights, on_grid

if TYPE_CHECKING:
    from graphveil.graph.blocks import Block

Addressed = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Where every sender's list of rows starts, the rows of all, and what each sender sends to all of its rows."""


@dataclass(frozen=True)
class Sent:
    """One row of numbers per record, sent along its own list to the receivers, who have a place in the table of sums (else -1).

    Rows are weighted by the number of receivers on the list, at least ``floor`` (Lemma M), or not at all (None).
    """

    messages: Callable[[Block], np.ndarray]
    place: np.ndarray
    floor: int | None

    @classmethod
    def to(cls, receivers: np.ndarray, messages: Callable[[Block], np.ndarray], floor: int | None) -> Sent:
        place = np.cumsum(receivers, dtype=np.int32) - 1
        place[~receivers] = -1
        return cls(messages, place, floor)

    @property
    def rows(self) -> int:
        """How many receivers there are."""
        return int(self.place.max(initial=-1)) + 1

    def of(self, block: Block) -> Addressed:
        """The rows that every list of a block reaches, and what is sent along each."""
        from graphveil.graph.kernels.list_sums import placed

        starts, rows = placed(block.lists.starts, block.lists.entries, self.place)
        values = np.asarray(self.messages(block), dtype=np.float64)
        if self.floor is not None:
            values = mass_weights(np.diff(starts), self.floor)[:, None] * values
        return starts, rows, np.ascontiguousarray(on_grid(values))

    def by_range(self, block: Block, size: int) -> Iterator[Addressed]:
        """The messages of a block for every range of ``size`` rows, without those who send nothing there."""
        starts, rows, values = self.of(block)
        senders = np.repeat(np.arange(len(values)), np.diff(starts))
        heard = (values != 0).any(axis=1)[senders]
        rows, senders = rows[heard], senders[heard]
        order = np.argsort(rows // size, kind="stable")
        rows, senders = rows[order], senders[order]
        firsts = np.arange(0, max(self.rows, 1), size)
        ends = np.searchsorted(rows // size, np.arange(len(firsts) + 1))
        for number, first in enumerate(firsts):
            here = slice(ends[number], ends[number + 1])
            those, counts = np.unique(senders[here], return_counts=True)
            yield np.concatenate([[0], np.cumsum(counts)]), rows[here] - first, values[those]


def added_up(rows: int, parts: Iterable[Addressed], before: np.ndarray | None = None) -> np.ndarray:
    """``before`` (else zeros) plus all that these parts send to the rows of a range."""
    from graphveil.graph.kernels.list_sums import spread

    table = None if before is None else np.array(before)
    for starts, entries, values in parts:
        if table is None:
            table = np.zeros((rows, values.shape[1]))
        spread(starts, entries, values, table)
    if table is None:
        raise ValueError("nothing was sent to be added up")
    return table
