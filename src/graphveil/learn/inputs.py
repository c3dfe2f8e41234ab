"""What a network reads: a tensor, feature rows, or a tuple of these (one per branch)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from graphveil.graph.rows import Rows

Block: TypeAlias = Tensor | Rows
Inputs: TypeAlias = Block | Sequence[Block]


def count(inputs: Inputs) -> int:
    """How many examples there are."""
    block = inputs if isinstance(inputs, Tensor | Rows) else inputs[0]
    return block.shape[0]


def take(inputs: Inputs, index: np.ndarray) -> Inputs:
    """The examples with these numbers, in every branch."""
    if isinstance(inputs, Tensor | Rows):
        return _take(inputs, index)
    return tuple(_take(block, index) for block in inputs)


def _take(block: Block, index: np.ndarray) -> Block:
    return block[torch.from_numpy(np.asarray(index))] if isinstance(block, Tensor) else block.take(index)
