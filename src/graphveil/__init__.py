"""graphveil: graph neural networks under differential privacy that can be checked.

    import graphveil as gv

    data = gv.load_dataset("cora", seed=0)
    model = gv.Gap().fit(data, gv.NodeLevel(epsilon=8))
    model.predict(data)
    print(model.certificate)

The names are those of ``__init__.pyi``; each is imported when first used, so that planning and listing need no deep-learning
library.
"""

import os

import lazy_loader

__version__ = "0.1.0"

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # idle threads must not burn the core that works; read by torch

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
