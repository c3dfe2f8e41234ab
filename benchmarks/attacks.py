"""Attacks against epsilon, and what LinkTeller costs: writes docs/results/attacks.{json,md,svg}.

    python benchmarks/attacks.py                       # everything, 3 seeds (about 15 minutes of CPU time)
    python benchmarks/attacks.py --only speed links    # some sections; the others are kept as they are in the JSON file
    python benchmarks/attacks.py --only                # nothing new: draw table and picture from the JSON file

Sections: links (LinkTeller and LSA2), stealing, attributes (needs deezer-hu), membership, speed. Seeds draw split, noise,
pairs and attack models. Exit code 1 if an acceptance line at the end of the table is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from attacks_report import write_report

import graphveil as gv
from graphveil.attacks import (
    AttributeInference,
    HiddenAttribute,
    Knowledge,
    LinkStealing,
    LinkTeller,
    Lsa2,
    Membership,
    feature_randomizer,
    influence,
    sample_pairs,
)
from graphveil.attacks.link_stealing import COMBINATIONS
from graphveil.attacks.target import Perturbation, as_graph, posteriors
from graphveil.exchange.randomizers import Direction

RESULTS = Path(__file__).parent.parent / "docs" / "results"
EPSILONS = (1.0, 2.0, 4.0, 8.0)
PEOPLE = 12_000  # people of deezer-hu in the lines with reports; drawing directions for all would take half an hour
KEPT = ("auc", "average_precision", "accuracy", "precision", "recall", "f1", "tpr_at_1_percent")
Row = dict[str, Any]


def row(result: Any, finding: Any, target: str, epsilon: float | None, seed: int, **more: Any) -> Row:
    figures = {name: round(finding.figures[name], 5) for name in KEPT} | {
        "epsilon_bound": round(finding.figures.epsilon, 3)
    }
    base = {"attack": result.attack, "variant": finding.name, "target": target, "epsilon": epsilon, "seed": seed}
    return base | more | figures


def links(seed: int) -> Iterator[Row]:
    """LinkTeller and LSA2 on Cora: edge level, beside the same method without edges and the controls."""
    data = gv.load_dataset("cora", seed=seed)
    graph = as_graph(data)
    bare = data.clone()
    bare.edge_index = data.edge_index[:, :0]
    games = {how: sample_pairs(graph, how, 500, seed) for how in ("balanced", "degree-matched")}
    targets = [("gcn", gv.Gcn(), None), ("mlp", gv.Mlp(), None)]
    targets += [("gap", gv.Gap(), epsilon) for epsilon in EPSILONS]
    targets += [("ballot", gv.Ballot(), epsilon) for epsilon in EPSILONS]
    targets += [("edge-rand", gv.EdgeRand(backbone="gcn"), epsilon) for epsilon in EPSILONS[1:]]
    for name, method, epsilon in targets:
        promise = gv.NonPrivate() if epsilon is None else gv.EdgeLevel(epsilon)
        model = method.fit(data, promise, seed=seed)
        reference = posteriors(method.fit(bare, promise, seed=seed), bare)
        for how, pairs in games.items():
            for result in (LinkTeller().run(model, graph, pairs), Lsa2().run(model, graph, pairs, reference=reference)):
                yield row(result, result.headline, name, epsilon, seed, pairs=how)
                if result.attack == "lsa2":
                    yield row(result, result.controls[-1], name, epsilon, seed, pairs=how)
                if name == "gcn":
                    for control in result.controls[:2]:
                        yield row(result, control, "control", None, seed, pairs=how)


def stealing(seed: int) -> Iterator[Row]:
    """Link stealing from attributes of Cora: clean with every combination, and reports of local randomizers."""
    graph = as_graph(gv.load_dataset("cora", seed=seed))
    pairs = sample_pairs(graph, "balanced", 5000, seed)
    clean = LinkStealing(tuple(COMBINATIONS)).run(graph, pairs, seed=seed)
    for finding in clean.findings:
        yield row(clean, finding, "clean", None, seed, pairs="balanced")
    pairs = sample_pairs(graph, "degree-matched", 2600, seed)
    held = {("clean", None): Knowledge.of(graph, 0.7)}
    for epsilon in (1.0, 4.0, 8.0, 10.0):
        direction = Direction(epsilon, graph.features, projected=16)
        held["direction, 16 dimensions", epsilon] = Knowledge.released_by(graph, direction, seed, 0.7)
    for epsilon in (1.0, 10.0):
        multi_bit = feature_randomizer("multi-bit", epsilon, graph.features)
        held["multi-bit", epsilon] = Knowledge.released_by(graph, multi_bit, seed, 0.7)
    for (name, epsilon), known in held.items():
        result = LinkStealing().run(graph, pairs, known, seed=seed)
        for finding in (result.headline, result["cosine, no training"]):
            yield row(result, finding, name, epsilon, seed, pairs="degree-matched")


def attributes(seed: int) -> Iterator[Row]:
    """Attribute inference on Deezer users in Hungary: the genre Alternative from 83 others."""
    data = gv.load_dataset("deezer-hu", seed=seed)
    game = HiddenAttribute.of(data, "Alternative")
    clean = AttributeInference().run(game, seed=seed)
    for finding in (clean.headline, *clean.controls):
        yield row(clean, finding, "clean", None, seed)
    chosen = np.sort(np.random.default_rng([1, seed]).choice(len(game.hidden), PEOPLE, replace=False))
    some = HiddenAttribute(game.rows[chosen], game.hidden[chosen], np.zeros((2, 0), dtype=np.int64), game.name)
    yield row(clean, AttributeInference().run(some, seed=seed).headline, f"clean, {PEOPLE} people", None, seed)
    for name in ("direction", "multi-bit"):
        for epsilon in EPSILONS:
            reports = some.release(feature_randomizer(name, epsilon, some.rows.shape[1]), seed)
            result = AttributeInference().run(reports, seed=seed)
            yield row(result, result.headline, name, epsilon, seed)


def membership(seed: int) -> Iterator[Row]:
    """Membership on Cora: plain networks and private ones at node level, on the same graph and as published."""
    data = gv.load_dataset("cora", seed=seed)
    overfitted = gv.Gcn(hidden=256, epochs=300, dropout=0.0, weight_decay=0.0)
    targets = [("gcn, overfitted", overfitted, None), ("gcn", gv.Gcn(), None), ("mlp", gv.Mlp(), None)]
    for name, method in (("ballot", gv.Ballot()), ("gap", gv.Gap()), ("dp-mlp", gv.DpMlp())):
        targets += [(name, method, epsilon) for epsilon in EPSILONS]
    for name, method, epsilon in targets:
        promise = gv.NonPrivate() if epsilon is None else gv.NodeLevel(epsilon)
        result = Membership().run(method, promise, data, seed=seed)
        for finding in (*result.findings, *result.controls):
            yield row(result, finding, name, epsilon, seed)


def speed(seed: int) -> Iterator[Row]:
    """CPU seconds of LinkTeller on Cora: incremental form against one forward pass per node, and growth with the probes."""
    data = gv.load_dataset("cora", seed=seed)
    graph = as_graph(data)
    model = gv.Gcn().fit(data, gv.NonPrivate(), seed=seed)
    pairs = sample_pairs(graph, "density", 500, seed)
    fast = cpu(lambda: influence(model, graph, pairs.first, pairs.second, Perturbation()))
    few = np.isin(pairs.second, np.unique(pairs.second)[:25])
    slow = cpu(lambda: influence(model, graph, pairs.first[few], pairs.second[few], form="queries")) / 26
    sizes = {}
    coins = np.random.default_rng(seed)
    for probes in (250, 500, 1000, 2000):
        senders = np.repeat(coins.choice(graph.nodes, probes, replace=False), 100)
        receivers = coins.integers(0, graph.nodes, len(senders))
        sizes[str(probes)] = round(cpu(lambda r=receivers, s=senders: influence(model, graph, r, s)), 4)
    yield {
        "attack": "speed",
        "seed": seed,
        "pairs": len(pairs),
        "incremental_seconds": round(fast, 4),
        "forward_pass_seconds": round(slow, 5),
        "ratio": round(499 * slow / fast, 1),
        "seconds_by_probes": sizes,
    }


def cpu(work: Callable[[], Any], repeats: int = 3) -> float:
    """The least CPU time of some runs."""
    times = []
    for _ in range(repeats):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


SECTIONS = {"links": links, "stealing": stealing, "attributes": attributes, "membership": membership, "speed": speed}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0, help="rows of other seeds in the JSON file are kept")
    parser.add_argument("--only", nargs="*", choices=sorted(SECTIONS), default=None)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    store = options.out / "attacks.json"
    kept: dict[str, list[Row]] = json.loads(store.read_text()) if store.exists() else {}
    for name in SECTIONS if options.only is None else options.only:
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            rows = []
            for found in SECTIONS[name](seed):
                rows.append(found)
                print(json.dumps(found), flush=True)
            kept = json.loads(store.read_text()) if store.exists() else {}
            others = [found for found in kept.get(name, []) if found["seed"] != seed]
            kept[name] = sorted(others + rows, key=lambda found: found["seed"])
            store.write_text(json.dumps(kept, indent=0) + "\n", encoding="utf-8")
    return 0 if write_report(kept, options.out) else 1


if __name__ == "__main__":
    sys.exit(main())
