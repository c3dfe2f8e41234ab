"""Tables of how much better one method is than another on the same network and seed, with Wilcoxon's signed-rank test.

    gain(data, figure) = mean over networks and seeds of (figure of the method - figure of the other)

from the published runs of the tables that hold the figures one by one. Tests: ``tests/experiments/test_gaps.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from graphveil.errors import InputError
from graphveil.experiments.papers import Entry, Paper
from graphveil.experiments.reproduce import NOT_RUN, TOLERANCE, Kept, Reproduction, agreement
from graphveil.experiments.summary import signed_rank
from graphveil.experiments.tables import EXACT, UNPROVED, Table


def entry_of(paper: Paper, entry: Entry, wanted: str) -> Entry:
    """Another table of the paper, whose cells this one averages."""
    for other in paper.entries:
        if other.id == wanted:
            return other
    raise InputError(f"{paper.key}/{entry.id} averages {wanted}, which the paper does not have")


def paired_gains(found: Reproduction, kept: Kept, data: str, method: str, other: str) -> np.ndarray:
    """In percent, by how much published runs of one method are above those of the other with the same network and seed."""
    reached: dict[str, dict[tuple[str, Any], float]] = {method: {}, other: {}}
    for line in found.lines:
        if line.cell.dataset != data or line.cell.method not in reached:
            continue
        for run in line.runs.get("published", ()):
            row = kept.row(run)
            value = None if row is None else row["metrics"].get(line.metrics["published"])
            if value is not None:
                reached[line.cell.method][line.cell.backbone, run.seed] = value
    ours, theirs = reached[method], reached[other]
    return np.array([100 * (ours[key] - theirs[key]) for key in ours if key in theirs])


def gain_table(
    paper: Paper, entry: Entry, found: Mapping[str, Reproduction], rows: Iterable[Mapping[str, Any]]
) -> Table:
    """Printed and measured gains; ``found`` has, by printed metric, the reproduction of the table they come from."""
    assert entry.gain is not None  # only entries of this kind come here
    kept, body = Kept(rows), []
    asked = {line.cell.dataset for one in found.values() for line in one.lines}
    for cell in paper.cells(entry):
        if cell.dataset not in asked:
            continue
        gains = paired_gains(found[cell.metric], kept, cell.dataset, cell.method, entry.gain.over)
        printed = f"{cell.value:+.1f}" + ("?" if cell.suspicious else "")
        doubt = " (the printed number is doubtful)" if cell.suspicious else ""
        p = signed_rank(gains)
        if p is None:
            why = f": {entry.missing[cell.dataset]}" if cell.dataset in entry.missing else ""
            body.append((cell.dataset, cell.metric, printed, "", "", str(len(gains)), "", NOT_RUN + why))
            continue
        apart = float(gains.mean()) - cell.value
        told = agreement(apart, cell.spread)
        shown = (f"{gains.mean():+.1f}{UNPROVED}", f"{apart:+.1f}", str(len(gains)), f"{p:.2g}")
        body.append((cell.dataset, cell.metric, printed, *shown, told + doubt))
    head = ("data", "figure", "printed", "published mode", "difference", "pairs", "p", "verdict")
    notes = (
        f"mean of the figure minus that of {entry.gain.over} on the same network and seed; p: Wilcoxon's signed-rank test over "
        f"these pairs; a gain agrees within {TOLERANCE:g} points or print's ±",
        f"{UNPROVED} the promise does not hold: known gaps, or no finite bound",
        EXACT,
        *([entry.remark] if entry.remark else []),
    )
    return Table(f"{paper.title}, {entry.name}: {entry.title} (points)", head, tuple(body), notes)
