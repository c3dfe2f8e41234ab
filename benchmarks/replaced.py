"""How many contacts GraphPrivatizer, as published, ever replaces: for every alpha and threshold of its maps, on Cora.

    python benchmarks/replaced.py [--data cora] [--epsilon 0.1] [--seed 10] [--metric cosine|euclidean|distance]
                                  [--reading listening|code|text] [--thresholds 0,0.1,0.25,0.5,1]

Prints, for both variants, the expected share of contacts that are replaced, in percent. The rest is sent as it is: kept by the
coin, or because no contact of the contact is similar enough (gap G3).
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

import graphveil as gv
from graphveil.attacks.target import as_graph, rows_of
from graphveil.exchange.randomizers.base import Contacts
from graphveil.privacy.local import Part
from graphveil.privacy.noise import Noise

ALPHAS, THRESHOLDS = (0.0, 0.25, 0.5, 0.75, 1.0), "0,0.1,0.25,0.5,1"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="cora")
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=10)
    parser.add_argument("--metric", default="cosine")
    parser.add_argument("--reading", default="listening")
    parser.add_argument("--thresholds", default=THRESHOLDS)
    asked = parser.parse_args()
    thresholds = [float(word) for word in asked.thresholds.split(",")]
    data = gv.load_dataset(asked.data, seed=asked.seed, prepare="graphprivatizer", split="paper")
    graph, facts = as_graph(data), gv.PublicFacts.of(data)
    promise = gv.Local(3, 3, asked.epsilon)
    owners, contacts = graph.lists.edge_index()[::-1]
    order = np.lexsort((contacts, owners))
    lists = Contacts.of_pairs(owners[order], contacts[order], graph.nodes)
    bits = gv.GraphPrivatizer(mode="published").randomizer(facts, promise.share(Part.FEATURES))
    reports = bits.randomize(rows_of(graph), None, Noise(asked.seed))
    for strategy in ("t", "m"):
        head = f"GP-{strategy}, {asked.metric}, alpha \\ threshold: "
        print(head + "  ".join(f"{threshold:g}" for threshold in thresholds))
        for alpha in ALPHAS:
            shares = []
            for threshold in thresholds:
                options = {"strategy": strategy, "alpha": alpha, "threshold": threshold}
                options |= {"metric": asked.metric, "reading": asked.reading}
                method = gv.GraphPrivatizer(mode="published", **options)
                response = replace(method.rounds_on_lists(facts, promise)[0].randomizer, lists=lists)
                candidates = response.support(reports).degrees[lists.targets]
                shares.append(100 * float(np.mean(1 - response.keep(candidates))))
            print(f"  {alpha:g}: " + "  ".join(f"{share:.1f}" for share in shares))


if __name__ == "__main__":
    main()
