"""What a client runs on its own record: one randomizer per file, each with its unit, exact epsilon, variance and log-ratio."""

from graphveil.exchange.randomizers.base import Contacts, Randomizer, Unit
from graphveil.exchange.randomizers.bucket import BucketResponse
from graphveil.exchange.randomizers.direction import Direction
from graphveil.exchange.randomizers.edge_list import EdgeListResponse
from graphveil.exchange.randomizers.histogram import LabelHistogram
from graphveil.exchange.randomizers.label import LabelResponse
from graphveil.exchange.randomizers.laplace import LaplaceRows
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
