"""The classifier on own features and released tables: one branch per input, joined by a hidden layer or simply added.

``hidden > 0``: the papers' two-layer head. ``hidden = 0``: softmax regression on all inputs, which needs fewer numbers and so
less of the noise; the default wherever gradients are private (measured: ``docs/results/central.md``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphveil.methods.common.private_training import parameter_count

if TYPE_CHECKING:
    from graphveil.learn import Network


def branch_parameters(inputs: Sequence[int], hidden: int, classes: int) -> int:
    """How many numbers :func:`branch_network` has."""
    if not hidden:
        return parameter_count(*((width, classes) for width in inputs), bias=False)
    return parameter_count(*((width, hidden) for width in inputs), (len(inputs) * hidden, classes))


def branch_network(inputs: Sequence[int], hidden: int, classes: int) -> Network:
    """A network that reads one block of each of these widths."""
    from graphveil.learn import Branches, SummedBranches

    if not hidden:
        return SummedBranches(inputs, classes)
    return Branches([(width, hidden) for width in inputs], (classes,), normalise=False)
