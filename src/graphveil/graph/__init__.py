"""What we learn from: data sets, file formats, validation, splits, synthetic graphs and contact lists.

Names are imported when first used: listing data sets, importing tables and reading graph files need no torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
