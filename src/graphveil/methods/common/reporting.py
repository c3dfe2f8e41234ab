"""The options that methods on reports share, each with its range and its default once."""

from __future__ import annotations

from typing import Any, Literal, Self

from graphveil.methods.options import Count, Fraction, Natural, NonNegative, Options, Positive

ALL_COLUMNS = 100_000  # wider than any data set: no random matrix

Backbone = Literal["gcn", "sage", "gat", "gatv2", "transformer", "graphconv", "cheb", "sgc", "tag"]


class AdamOptions(Options):
    """Of Adam on whole epochs."""

    epochs: Count = 100
    learning_rate: Positive = 1e-2
    weight_decay: NonNegative = 1e-3


class TrainingOptions(AdamOptions):
    """A graph network by name, and Adam."""

    backbone: Backbone = "gcn"
    hidden: Count = 64
    dropout: Fraction = 0.5

    @classmethod
    def of(cls, options: TrainingOptions, **others: Any) -> Self:
        """What ``options`` has of these, and the ``others``."""
        known = options.get_params()
        return cls(**{name: known[name] for name in cls.parameter_defaults() if name in known} | others)


class PropagationOptions(TrainingOptions):
    """LPGNN's: reports are averaged over a graph before a network sees them, and the loss may do the same with labels.

    Args:
        feature_steps, label_steps: K_x of KProp and K_y of Drop.
        loss: ``drop`` (the paper), ``forward`` (no label propagation; better on dense graphs), ``plain`` (as if labels were
            clean) or ``auto``: start with drop and forward and keep the one with the lesser loss on the released validation
            labels.
        compress: wider reports are multiplied by a public random matrix of so many columns (post-processing: speed).
    """

    feature_steps: Natural = 16
    label_steps: Natural = 2
    loss: Literal["auto", "drop", "forward", "plain"] = "auto"
    compress: Count = 512
