"""What an adversary gets: attacks on links, attributes and membership, measured alike.

    from graphveil.attacks import LinkTeller, sample_pairs

    pairs = sample_pairs(graph, "balanced", 500, seed=0)
    print(LinkTeller().run(model, data, pairs))

A target is anything with ``predict_proba(data)``; what the attacker holds is a :class:`Knowledge` object.
"""

from graphveil.attacks.attribute_inference import AttributeInference, HiddenAttribute
from graphveil.attacks.influence import Influence, influence
from graphveil.attacks.knowledge import Knowledge
from graphveil.attacks.link_stealing import LinkStealing
from graphveil.attacks.link_teller import LinkTeller
from graphveil.attacks.lsa2 import Lsa2
from graphveil.attacks.membership import Membership
from graphveil.attacks.metrics import Figures, epsilon_lower_bound, measure
from graphveil.attacks.pairs import Pairs, sample_pairs
from graphveil.attacks.reports import feature_randomizer
from graphveil.attacks.result import AttackResult, Finding
from graphveil.attacks.target import Perturbation, TorchTarget

NAMES = ("link-teller", "lsa2", "link-stealing", "attribute-inference", "membership")

__all__ = [
    "NAMES",
    "AttackResult",
    "AttributeInference",
    "Figures",
    "Finding",
    "HiddenAttribute",
    "Influence",
    "Knowledge",
    "LinkStealing",
    "LinkTeller",
    "Lsa2",
    "Membership",
    "Pairs",
    "Perturbation",
    "TorchTarget",
    "epsilon_lower_bound",
    "feature_randomizer",
    "influence",
    "measure",
    "sample_pairs",
]
