"""How we train: networks over one flat vector, clipped gradient sums, optimisers and loops.

Nothing here knows of privacy budgets: ``clipped_gradient_sum`` bounds what one example can change, the layers above add
the noise and account for it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
