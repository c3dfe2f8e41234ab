"""The classifiers of DPDGC as published, on own features and the table: as the text has it, and as the authors' code has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from graphveil import learn
from graphveil.methods.common.branches import BranchPredictor, BranchShape
from graphveil.methods.common.private_training import parameter_count

TEXT, CODE = "text", "code"


@dataclass(frozen=True)
class PaperShape(BranchShape):
    """``reading``: one layer per input and two on both (text), or LINKX with the table as one embedding (code), ``batch_norm``
    inside it."""

    reading: str = TEXT
    batch_norm: bool = False

    @property
    def size(self) -> int:
        return parameter_count(*self.chains)

    @property
    def chains(self) -> tuple[Sequence[int], ...]:
        (own, near), h, classes = self.inputs, self.hidden, self.classes
        if self.reading == TEXT:
            return (own, h), (near, h), (2 * h, h, classes)
        return (own, h, h), (2 * h, h, h), (h, classes)


class PaperPredictor(BranchPredictor):
    """Released numbers: the table (one row per node) and the classifier."""

    shaped: ClassVar[type[Any]] = PaperShape

    @classmethod
    def build(cls, shape: Any) -> Self:
        if shape.reading == TEXT:
            own, near, (_, *head) = shape.chains
            return cls(shape, {"": learn.Branches([own, near], head, normalise=False)})
        from graphveil.learn.linkx import Linkx

        sizes = shape.inputs[0], shape.width, shape.hidden, shape.classes
        return cls(shape, {"": Linkx(*sizes, embeds=False, batch_norm=shape.batch_norm)})
