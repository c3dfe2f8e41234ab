"""What a client runs on its own record: each randomizer has its unit, exact epsilon, variance and log-ratio."""

from graphveil.exchange.randomizers.base import Contacts as Contacts
from graphveil.exchange.randomizers.base import Randomizer as Randomizer
from graphveil.exchange.randomizers.base import Unit as Unit
from graphveil.exchange.randomizers.categories import BucketResponse as BucketResponse
from graphveil.exchange.randomizers.categories import LabelResponse as LabelResponse
from graphveil.exchange.randomizers.direction import Direction as Direction
from graphveil.exchange.randomizers.edge_list import EdgeListResponse as EdgeListResponse
from graphveil.exchange.randomizers.laplace import LabelHistogram as LabelHistogram
from graphveil.exchange.randomizers.laplace import LaplaceRows as LaplaceRows
from graphveil.exchange.randomizers.multi_bit import MultiBit as MultiBit
from graphveil.exchange.randomizers.neighbour_mean import NeighbourMean as NeighbourMean
from graphveil.exchange.randomizers.piecewise import PerDimension as PerDimension
from graphveil.exchange.randomizers.piecewise import Piecewise as Piecewise
from graphveil.exchange.randomizers.piecewise import Rest as Rest
from graphveil.exchange.randomizers.replacement import NeighbourReplacement as NeighbourReplacement
from graphveil.exchange.randomizers.replacement import TwoHopResponse as TwoHopResponse
