"""How we train: networks over one flat vector, clipped gradient sums, optimisers and loops.

Nothing here knows of privacy budgets: ``clipped_gradient_sum`` bounds what one example can change, the layers above add
the noise and account for it.
"""

from graphveil.learn.gradients import Tape, clipped_gradient_sum
from graphveil.learn.inputs import Block, Inputs, count, take
from graphveil.learn.modules import MLP, Activation, Branches, Linear, Network, SummedBranches, unit_rows
from graphveil.learn.optimizers import SGD, Adam, GlobalMoment, IterateAverage, Optimizer, linear_decay
from graphveil.learn.rows import CentredRows, MixtureRows
from graphveil.learn.training import Progress, descend, train_plainly

__all__ = [
    "MLP",
    "SGD",
    "Activation",
    "Adam",
    "Block",
    "Branches",
    "CentredRows",
    "GlobalMoment",
    "Inputs",
    "IterateAverage",
    "Linear",
    "MixtureRows",
    "Network",
    "Optimizer",
    "Progress",
    "SummedBranches",
    "Tape",
    "clipped_gradient_sum",
    "count",
    "descend",
    "linear_decay",
    "take",
    "train_plainly",
    "unit_rows",
]
