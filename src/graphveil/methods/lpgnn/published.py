"""LPGNN as published: the Drop loss. Its claim needs nothing but public ranges, so the certificate holds."""

from __future__ import annotations

from typing import Literal

from graphveil.methods.common.propagated_method import PAPER_SCALE, PaperLoss, PropagatedMethod
from graphveil.methods.common.reporting import Backbone
from graphveil.methods.lpgnn import Lpgnn


class PublishedLpgnn(PropagatedMethod):
    """The same reports and the same KProp as in sound mode; the loss is the paper's."""

    card = Lpgnn.card
    input_scale = PAPER_SCALE

    backbone: Backbone = "sage"
    loss: PaperLoss = "drop"
    mode: Literal["published"] = "published"
