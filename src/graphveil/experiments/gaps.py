"""Tables that average differences of another table's cells: what edge privacy costs, on average over networks.

    gap(data, method) = mean over backbones of (accuracy without - accuracy of the method)

where both come from runs of the other table, published mode; ± is the standard deviation over backbones, as printed.
Tests: ``tests/experiments/test_gaps.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from graphveil.experiments.gains import paired_gains
from graphveil.experiments.papers import Entry, Paper
from graphveil.experiments.reproduce import NOT_RUN, TOLERANCE, Kept, Reproduction, agreement
from graphveil.experiments.summary import signed_rank
from graphveil.experiments.tables import EXACT, UNPROVED, Table


def gap_table(paper: Paper, entry: Entry, found: Reproduction, rows: Iterable[Mapping[str, Any]]) -> Table:
    """Printed and measured gaps; ``found`` is the reproduction of the table they are averages of."""
    assert entry.gap is not None
    kept = Kept(rows)
    means = _means(found, kept)
    asked, methods = ({getattr(line.cell, name) for line in found.lines} for name in ("dataset", "method"))
    body = []
    for cell in paper.cells(entry):
        if cell.dataset not in asked or cell.method not in methods:
            continue
        without, reached = means.get((cell.dataset, entry.gap.without), {}), means.get((cell.dataset, cell.method), {})
        gaps = [without[backbone] - value for backbone, value in reached.items() if backbone in without]
        printed = f"{cell.value:.1f} ± {cell.spread:.1f}" + ("?" if cell.suspicious else "")
        if not gaps:
            body.append((cell.dataset, cell.setting, printed, "", "", "0", NOT_RUN))
            continue
        apart = float(np.mean(gaps)) - cell.value
        told = agreement(apart, cell.spread)
        spread = f" ± {np.std(gaps, ddof=1):.1f}" if len(gaps) > 1 else ""
        shown = f"{np.mean(gaps):.1f}{spread}{UNPROVED}"
        doubt = " (the printed number is doubtful)" if cell.suspicious else ""
        body.append((cell.dataset, cell.setting, printed, shown, f"{apart:+.1f}", str(len(gaps)), told + doubt))
    head = ("data", "setting", "printed", "published mode", "difference", "networks", "verdict")
    notes: tuple[str, ...] = (
        f"mean over networks of accuracy without edge privacy ({entry.gap.without}) minus with it, each a mean over seeds; "
        f"± is the standard deviation over networks; a gap agrees within {TOLERANCE:g} points or print's ±",
        f"{UNPROVED} the promise does not hold: known gaps, or no finite bound",
        EXACT,
    )
    compared = list(dict.fromkeys(cell.method for cell in paper.cells(entry)))
    notes += tuple(_gains(found, kept, compared))
    return Table(f"{paper.title}, {entry.name}: {entry.title} (points)", head, tuple(body), notes)


def _means(found: Reproduction, kept: Kept) -> dict[tuple[str, str], dict[str, float]]:
    """By data set and printed method, the mean accuracy of every backbone in published mode, in percent."""
    means: dict[tuple[str, str], dict[str, float]] = {}
    for line in found.lines:
        values = kept.values(line).get("published")
        if values:
            reached = means.setdefault((line.cell.dataset, line.cell.method), {})
            reached[line.cell.backbone] = 100 * float(np.mean(values))
    return means


def _gains(found: Reproduction, kept: Kept, methods: Sequence[str]) -> Iterator[str]:
    """By data set, how much better the first method is than every other on the same network and seed, with Wilcoxon's p."""
    first, *others = methods
    for data in dict.fromkeys(line.cell.dataset for line in found.lines):
        for other in others:
            gains = paired_gains(found, kept, data, first, other)
            p = signed_rank(gains)
            if p is not None:
                pairs = f"{len(gains)} pairs of network and seed"
                yield f"{data}: {first} minus {other} {np.mean(gains):+.1f} points ({pairs}; Wilcoxon p = {p:.2g})"
