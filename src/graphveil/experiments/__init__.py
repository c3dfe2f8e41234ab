"""Many runs from one specification: expansion, engines, one store, summaries, and the papers' tables beside ours.

experiment = read_experiment("sweep.yaml")
with Store("results.sqlite") as store:
    sweep(experiment.name, expand(experiment), store, Serial())
    rows = store.rows()
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
