"""Where to put the names of lines and points so that no two overlap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

Box = tuple[float, float, float, float]  # left, bottom, right, top


def spread(wanted: Sequence[float], heights: Sequence[float], low: float, high: float) -> list[float]:
    """Centres as near to ``wanted`` as possible (least squares) so that boxes of these heights, stacked in this order of
    position, do not overlap and stay between ``low`` and ``high``; if there is no room for all, from ``low`` on.

    With c the distance of neighbouring centres, y_1 <= y_2 - c_1 <= ... is an isotonic regression of ``wanted`` less the
    cumulated distances, which pooling adjacent violators solves exactly; clipping its values keeps the order and the optimum.
    """
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    if not order:
        return []
    offsets = [0.0]
    for below, above in pairwise(order):
        offsets.append(offsets[-1] + (heights[below] + heights[above]) / 2)
    pools: list[list[float]] = []  # sum, count
    for place, offset in zip(order, offsets, strict=True):
        pools.append([wanted[place] - offset, 1])
        while len(pools) > 1 and pools[-2][0] / pools[-2][1] >= pools[-1][0] / pools[-1][1]:
            total, count = pools.pop()
            pools[-1][0] += total
            pools[-1][1] += count
    least = low + heights[order[0]] / 2
    most = max(high - heights[order[-1]] / 2 - offsets[-1], least)
    settled = [min(max(total / count, least), most) for total, count in pools for _ in range(int(count))]
    found = [0.0] * len(wanted)
    for place, base, offset in zip(order, settled, offsets, strict=True):
        found[place] = base + offset
    return found


def overlap(one: Box, other: Box) -> float:
    """The common area of two boxes."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return width * height if width > 0 and height > 0 else 0.0


def beside(
    point: tuple[float, float], size: tuple[float, float], obstacles: Iterable[Box], frame: Box, gap: float
) -> tuple[Box, float]:
    """The box of this size beside a point that covers least of the obstacles and of what is outside the frame, and how much."""
    (x, y), (width, height), seen = point, size, list(obstacles)
    best: tuple[float, Box] | None = None
    for far in (1.0, 2.2):
        for across, up in ((1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (-1, -1), (1, 1), (-1, 1)):
            centre = x + across * (width / 2 + far * gap), y + up * (height / 2 + far * gap)
            half = width / 2, height / 2
            box = (centre[0] - half[0], centre[1] - half[1], centre[0] + half[0], centre[1] + half[1])
            outside = width * height - overlap(box, frame)
            covered = sum(overlap(box, other) for other in seen) + 2 * outside
            if best is None or covered < best[0] - 1e-9:
                best = covered, box
    assert best is not None
    return best[1], best[0]
