"""What a client runs on its own record: one randomizer per file, each with its unit, exact epsilon, variance and log-ratio."""

from graphveil.local.randomizers.base import Contacts, Randomizer, Unit
from graphveil.local.randomizers.bucket import BucketResponse
from graphveil.local.randomizers.direction import Direction
from graphveil.local.randomizers.edge_list import EdgeListResponse
from graphveil.local.randomizers.histogram import LabelHistogram
from graphveil.local.randomizers.label import LabelResponse
from graphveil.local.randomizers.laplace import LaplaceRows
from graphveil.local.randomizers.multi_bit import MultiBit
from graphveil.local.randomizers.neighbour_mean import NeighbourMean
from graphveil.local.randomizers.piecewise import PerDimension, Piecewise, Rest
from graphveil.local.randomizers.replacement import NeighbourReplacement
from graphveil.local.randomizers.two_hop import TwoHopResponse

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
