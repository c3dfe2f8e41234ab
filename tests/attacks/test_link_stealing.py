"""Link stealing: what it means when both orders of a pair are cases of their own, and a coin as the least of attackers."""

import dataclasses

import numpy as np

from graphveil.attacks import LinkStealing
from graphveil.attacks.pairs import sample_pairs
from graphveil.attacks.target import Knowledge, as_graph


def test_both_orders_of_a_pair_ask_again_what_is_known(cora):
    """Rows of pure noise: nothing can be learned about a pair, but a forest remembers the one it was told in the other order."""
    graph = as_graph(cora)
    pairs = sample_pairs(graph, "degree-matched", 300, seed=0)
    noise = np.random.default_rng(0).normal(size=(graph.nodes, 30))
    known = dataclasses.replace(Knowledge.of(graph, 0.7), rows=noise)
    attack = LinkStealing(("plus",), ("rf", "random"))
    area = lambda finding: finding.figures.values["auc"].value
    once = attack.run(graph, pairs, known, seed=0).findings
    twice = attack.run(graph, pairs.both_orders(), known, seed=0).findings
    assert area(twice[0]) > area(once[0]) + 0.15
    assert abs(area(twice[1]) - 0.5) < 0.1  # a coin knows nothing
    assert len(pairs.both_orders()) == 2 * len(pairs)
