"""What we learn from: data sets, file formats, validation, splits, synthetic graphs and contact lists.

Names are imported when first used: listing data sets, importing tables and reading graph files need no torch.
"""

from graphveil.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
