"""What training fixes about the inputs of a network, so that whoever comes later is seen as everybody was.

The same function makes the inputs of training and of prediction: means, deviations, a public random matrix, the median degree
and an auto-encoder are made at its first run and taken from here at every later one. Tests: ``tests/cli/test_newcomers.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from graphveil.privacy.noise import Array

if TYPE_CHECKING:
    from torch import nn

Net = TypeVar("Net", bound="nn.Module")


class Kept:
    """Arrays by name; without any, those that are asked for are made and kept."""

    def __init__(self, arrays: Mapping[str, np.ndarray] | None = None) -> None:
        self.learning = arrays is None
        self.arrays: dict[str, np.ndarray] = dict(arrays or {})

    def once(self, name: str, make: Callable[[], object]) -> np.ndarray:
        """This array: made now if training is under way."""
        if self.learning:
            self.arrays[name] = np.asarray(make())
        return self.arrays[name]

    def standardised(self, name: str, inputs: Array) -> Array:
        """Columns with mean 0 and standard deviation 1 over all slots of training."""
        from graphveil.methods.common.backbone_training import scaled

        mean = self.once(f"{name}.mean", lambda: inputs.mean(axis=0))
        return scaled(inputs, mean, self.once(f"{name}.deviation", lambda: inputs.std(axis=0)))

    def columns(self, rows: Any, most: int, coins: np.random.Generator | None) -> Array:
        """Dense columns of feature reports, multiplied by a public random matrix if there are more than ``most``."""
        from graphveil.methods.common.backbone_training import mixed, mixing_of

        width = int(rows.shape[1])
        if width <= most:
            return mixed(rows, None)
        return mixed(rows, self.once("mixing", lambda: mixing_of(width, most, drawn(coins))))

    def seed(self, name: str, coins: np.random.Generator | None) -> int:
        """A public seed."""
        return int(self.once(name, lambda: [drawn(coins).integers(2**31)])[0])

    def median_degree(self, edges: np.ndarray, nodes: int) -> float:
        """Below this a vertex has few neighbours."""
        from graphveil.methods.lga_pgnn.augmentation import degrees_of

        return float(self.once("median_degree", lambda: [np.median(degrees_of(edges, nodes))])[0])

    def network(self, name: str, trained: Callable[[], Net], empty: Callable[[], Net]) -> Net:
        """A small network that makes inputs: ``trained`` at first, later ``empty`` with the same weights."""
        import torch

        from graphveil.methods.common.backbone_training import weights_of

        if self.learning:
            found = trained()
            self.arrays |= {f"{name}.{one}": value for one, value in weights_of(found).items()}
            return found
        found, start = empty(), f"{name}."
        mine = {one.removeprefix(start): value for one, value in self.arrays.items() if one.startswith(start)}
        found.load_state_dict({one: torch.from_numpy(value) for one, value in mine.items()})
        return found


def drawn(coins: np.random.Generator | None) -> np.random.Generator:
    """The public coins of training; predictions draw none."""
    assert coins is not None
    return coins
