"""What an adversary gets: attacks on links, attributes and membership, measured alike.

    from graphveil.attacks import LinkTeller, sample_pairs

    pairs = sample_pairs(graph, "balanced", 500, seed=0)
    print(LinkTeller().run(model, data, pairs))

A target is anything with ``predict_proba(data)``; what the attacker holds is a :class:`Knowledge` object.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
