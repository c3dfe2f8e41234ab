"""What a client runs on its own record: each randomizer has its unit, exact epsilon, variance and log-ratio."""

from graphveil.exchange.randomizers.base import Contacts, Randomizer, Unit
from graphveil.exchange.randomizers.categories import BucketResponse, LabelResponse
from graphveil.exchange.randomizers.direction import Direction
from graphveil.exchange.randomizers.edge_list import EdgeListResponse
from graphveil.exchange.randomizers.laplace import LabelHistogram, LaplaceRows
from graphveil.exchange.randomizers.multi_bit import MultiBit
from graphveil.exchange.randomizers.neighbour_mean import NeighbourMean
from graphveil.exchange.randomizers.piecewise import PerDimension, Piecewise, Rest
from graphveil.exchange.randomizers.replacement import NeighbourReplacement, TwoHopResponse

__all__ = [
    "BucketResponse",
    "Contacts",
    "Direction",
    "EdgeListResponse",
    "LabelHistogram",
    "LabelResponse",
    "LaplaceRows",
    "MultiBit",
    "NeighbourMean",
    "NeighbourReplacement",
    "PerDimension",
    "Piecewise",
    "Randomizer",
    "Rest",
    "TwoHopResponse",
    "Unit",
]
