"""The known gaps of published modes on the smallest instances that show them, computed with the library's own code.

Each witness compares a loss (exact, but for one sampled bound) with what the paper's accounting says for the same instance.
Tests: ``tests/audit/test_witnesses.py``, which also reach the figures by other ways.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
import scipy.sparse as sp
from torch_geometric.data import Data

from graphveil.audit.central.lock_step import sample_scores
from graphveil.audit.central.neighbours import blanked, undirected
from graphveil.audit.central.replay import Event, Recorder, Replayer
from graphveil.audit.result import Evidence
from graphveil.graph import Lists, SparseRows
from graphveil.methods.common.aggregation import plain_sum
from graphveil.methods.registry import build
from graphveil.privacy.accounting.loss import SampledGaussian, epsilon_of, gaussian_epsilon, gaussian_mu
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.laws import SampledShift
from graphveil.privacy.local import Local, Part
from graphveil.privacy.noise import Noise
from graphveil.privacy.plan import calibrate_scale
from graphveil.privacy.promise import NodeLevel
from graphveil.statistics.lower_bounds import likelihood_lower_bound

DELTA = 1e-5


def witnesses(method: str, gaps: Iterable[str]) -> tuple[Evidence, ...]:
    """What is known to be wrong with the published mode of a method, instance by instance, as far as ``gaps`` name it."""
    named = set(gaps)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tuple(find() for code, find in WITNESSES.get(method, ()) if code in named)


class _Peeking(Recorder):
    """Keeps the values of unaccounted reads, too."""

    def peek(self, name: str, value: Any) -> Any:
        self.events.append(Event("peek", name, released=value))
        return value


class _Frozen(Replayer):
    """A replay in which unaccounted reads give what they gave before: everything a proof with fixed scales may assume."""

    def peek(self, name: str, value: Any) -> Any:
        return self._next("peek", name).released


def _star(leaves: int) -> tuple[Data, Any, Any]:
    """A hub and its leaves, all with the same unit features; and the method under the promise that it breaks there."""
    numbers = np.arange(leaves + 1)
    arcs = np.stack([np.zeros(leaves, dtype=np.int64), numbers[1:]])
    masks = {"train": numbers < leaves - 1, "val": numbers == leaves - 1, "test": numbers == leaves}
    data = undirected(np.ones((leaves + 1, 1)), numbers % 2, np.concatenate([arcs, arcs[::-1]], axis=1), 2, **masks)
    options = {"max_degree": leaves, "hidden": 2, "epochs": 1, "influence_rounds": 1}
    method: Any = build("nip-gnn", {"mode": "published", **options})
    return data, method, NodeLevel(3 / method.aggregation_share, adjacency="node")


def _gaussian(name: str, moved: float, how: str, code: str, claim: float, delta: float = DELTA) -> Evidence:
    """A value that moves by ``moved``, at the noise that keeps a claim for a move by 1."""
    return Evidence(name, gaussian_epsilon(moved * gaussian_mu(claim, delta), delta), how, code=code, claim=claim)


def star_with_fixed_scales(leaves: int = 5) -> Evidence:
    """N1: with everybody's noise scale held fixed, a hub that leaves a star costs (D + 1)/2 times the claim."""
    data, method, promise = _star(leaves)
    recorder = _Peeking()
    method.fit(data, promise, seed=0, tape=recorder)
    replayer = _Frozen(recorder.events, 0)
    method.fit(blanked(data, 0, promise, np.random.default_rng(0)), promise, seed=0, tape=replayer)
    loss = next(m.distance for m in replayer.measured if m.release.name == "aggregation")  # Laplace noise of scale 1
    claim = promise.epsilon * method.aggregation_share
    how = f"the hub of a star of {leaves} leaves leaves, noise scales held fixed: {loss / claim:.3g} times the claim"
    return Evidence("noisy sums", loss, how, code="N1", claim=claim)


def star_with_live_scales(leaves: int = 5) -> Evidence:
    """N2: a leaf that leaves changes the noise scale of rows it never touched; far out the densities' ratio has no bound."""
    data, method, promise = _star(leaves)
    tapes = _Peeking(), _Peeking()
    for graph, tape in zip((data, blanked(data, 1, promise, np.random.default_rng(0))), tapes, strict=True):
        method.fit(graph, promise, seed=0, tape=tape)
    scales = [next(e.released for e in tape.events if e.what == "peek" and e.name == "scales") for tape in tapes]
    untouched = np.arange(2, leaves + 1)  # the other leaves: their sum is the hub's row in both worlds
    differing = int(np.count_nonzero(scales[0][untouched] != scales[1][untouched]))
    loss = math.inf if differing else 0.0
    how = f"a leaf of a star of {leaves} leaves: {differing} rows that it does not touch get another Laplace scale"
    return Evidence("noisy sums", loss, how, code="N2", claim=promise.epsilon * method.aggregation_share)


def thinning_by_true_degree() -> Evidence:
    """N5: somebody without edges never receives a noisy one, somebody with an edge does."""
    from graphveil.methods.nip_gnn.influence import thinning_rates

    rates = thinning_rates(np.array([0.0, 1.0]), 4, 0.5, "printed")
    loss = math.inf if rates[0] == 0 < rates[1] else 0.0
    how = f"a node of degree 0 keeps noisy edges with probability {rates[0]:g}, one of degree 1 with {rates[1]:.3g}"
    return Evidence("thinned edges", loss, how, code="N5", claim=1.0)


def linear_amplification(claim: float) -> Evidence:
    """P1: slots sampled at rate q' are said to cost q' eps; randomised response costs log(1 + q'(e^eps - 1))."""
    rate = 0.09
    inner = claim / rate
    lie = 1 / (1 + math.exp(inner)) if inner < 700 else math.exp(-inner)
    present = rate * (1 - lie) + (1 - rate) * lie  # probability of the answer "here" if the person is in the data
    how = f"randomised response with inner epsilon {inner:.4g} on slots sampled at rate {rate}, all outputs"
    return Evidence("sampled slots", math.log(present / lie), how, code="P1", claim=claim)


def clipped_gradient_turns_round(weight: float = 1e-4) -> Evidence:
    """P2: a person who enters a row with weight 1e-4 turns its clipped gradient by two clipping norms."""
    from graphveil.methods.dpar.gradients import Entries, mixed_gradient_sum

    clip, reach, open_by = 1.0, 1e3 / weight, 1e-6
    own = np.array([1.0, open_by - 1.0])
    other = np.array([-reach, reach + open_by])  # in the opposite direction, through the same hidden unit
    parameters = np.array([1.0, 1.0, 10.0, -10.0])  # W1 (one hidden unit), then W2 (two classes)
    row, weights, label = np.zeros(2, dtype=np.int64), np.array([1 - weight, weight]), np.array([0])
    worlds = (SparseRows(sp.csr_matrix(np.array([own, person]))) for person in (other, 0 * other))
    sums = [mixed_gradient_sum(parameters, (2, 1, 2), Entries(row, weights, x), label, clip) for x in worlds]
    moved = float(np.linalg.norm(sums[0] - sums[1])) / clip
    how = f"one row in which the person has weight {weight:g}: its clipped gradient moves by {moved:.4f} C; noise is for C"
    return replace(_gaussian("gradient", moved, how, "P2", 4.0), details={"moved_in_clips": moved})


def undirected_edge(claim: float = 1.0) -> Evidence:
    """A1: one friendship moves two rows of the sum."""
    rows = np.eye(2)
    joined = Lists.from_edge_index(np.array([[0, 1], [1, 0]]), 2)
    alone = Lists.from_edge_index(np.zeros((2, 0), dtype=np.int64), 2)
    moved = float(np.linalg.norm(plain_sum(joined, rows) - plain_sum(alone, rows)))
    delta = DELTA / 10  # the default at edge level is a tenth of that of nodes
    how = f"two people and their friendship: the sum moves by {moved:.4g}, the noise is for 1 (delta {delta:g})"
    return _gaussian("noisy sum", moved, how, "A1", claim, delta)


def cap_is_not_stable(nodes: int = 400, cap: int = 20) -> Evidence:
    """D3: everybody has D contacts; one person then knows everybody, and lists are cut to D again: unrelated entries go."""
    others = np.arange(1, nodes)
    ring = np.concatenate([np.stack([others, 1 + (others - 1 + s) % (nodes - 1)]) for s in range(1, cap + 1)], axis=1)
    to_all = np.stack([others, np.zeros(nodes - 1, dtype=np.int64)])
    rows = (np.arange(nodes) > 0)[:, None].astype(np.float64)
    key = int(np.random.default_rng(0).integers(2**32))
    sums = [
        plain_sum(Lists.from_edge_index(arcs, nodes).capped(cap, np.random.default_rng(key)), rows)
        for arcs in (ring, np.concatenate([ring, to_all, to_all[::-1]], axis=1))
    ]
    moved = float(np.linalg.norm((sums[0] - sums[1])[1:]))
    how = (
        f"{nodes} nodes with {cap} contacts each, one more joins everybody: other rows move by {moved:.3g}, "
        f"sqrt D = {math.sqrt(cap):.3g}"
    )
    return _gaussian("noisy sum", moved / math.sqrt(cap), how, "D3", 4.0)


def root_of_the_group(cap: int = 5) -> Evidence:
    """D4, D5: noise for sqrt(D + 1) rows, where replacing a person moves 2D + 1 of them and a sum moves linearly."""
    claim, rate, steps, draws = 8.0, 0.1, 5, 40_000
    at = lambda z: epsilon_of([SampledGaussian(2 * z, rate, steps, group=(1, 1))], DELTA)
    sigma = 2 * calibrate_scale(at, claim) * math.sqrt(cap + 1)
    group = 2 * cap + 1
    ones, zeros = np.ones(group), np.zeros(group)
    step = SampledShift(sigma, rate, np.concatenate([ones, zeros]), np.concatenate([zeros, -ones]))
    bound = likelihood_lower_bound(*sample_scores([step] * steps, draws, Noise(1)), DELTA, 1)
    how = (
        f"worst rows for D = {cap}: {group} of them move, at the noise that is counted for one; rate {rate}, {steps} steps, "
        f"{draws} draws per world"
    )
    return Evidence("code gradients", bound.epsilon, how, bound.confidence, "D5", claim)


def seven_people() -> Evidence:
    """G1: every report of every contact on a graph of seven people, enumerated."""
    from graphveil.exchange.randomizers import Contacts, NeighbourReplacement

    edges = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 4), (3, 4), (3, 5), (4, 6), (5, 6)]
    both = [*edges, *((b, a) for a, b in edges)]
    lists = Contacts.of([[b for a, b in both if a == node] for node in range(7)])
    rows = np.random.default_rng(3).random((7, 4))
    randomizer = NeighbourReplacement(1.0, lists)
    density = np.array([[randomizer.log_density(u, out, rows) for out in range(7)] for u in range(7)])
    with np.errstate(invalid="ignore"):
        worst = [float(np.nanmax(density[a] - density[b])) for a, b in permutations(range(7), 2)]
    infinite = sum(math.isinf(ratio) for ratio in worst)
    how = f"seven people, all reports: the ratio is infinite for {infinite} of {len(worst)} exchanges of one contact"
    return Evidence("reported contact", max(worst), how, code="G1", claim=1.0)


def attributes_in_the_clear(width: int = 84) -> Evidence:
    """L3: the attributes that are not chosen are sent as they are."""
    from graphveil.exchange.randomizers import Piecewise, Rest

    randomizer = Piecewise(1.0, width, sampled="paper", rest=Rest.RAW)
    a, b = np.zeros(width), np.ones(width)
    ratio = randomizer.log_ratio(a, b, randomizer.randomize(a, None, Noise(4)))
    how = f"{width} attributes, m = {randomizer.m}: the ratio at a drawn report; delta is at least {randomizer.least_delta:.3f}"
    return Evidence("features", ratio, how, code="L3", claim=1.0)


def whole_budget_each(width: int = 6) -> Evidence:
    """L2: every one of m attributes gets the whole epsilon."""
    from graphveil.exchange.randomizers import PerDimension, Piecewise

    randomizer = Piecewise(1.0, width, sampled=width, per_dimension=PerDimension.WHOLE)
    x = np.ones(width)
    report = np.full(width, (randomizer.law.reach + 0.5) / randomizer.law.scale)
    loss = randomizer.log_ratio(x, -x, report)
    return Evidence("features", loss, f"Algorithm 1 as printed, m = {width}, opposite corners", code="L2", claim=1.0)


def edges_in_the_clear() -> Evidence:
    """L4: no mechanism touches the edges."""
    plan = build("lga-pgnn", {"mode": "published"}).plan(PublicFacts(10, 4, 2), Local(1.0, "raw", "raw"))
    rounds = [plan.release(step.name) for step in plan.steps]
    touching = [round.name for round in rounds if round.part == Part.EDGES]
    loss = 0.0 if touching else math.inf
    how = f"{len(touching)} of {len(rounds)} rounds randomise edges; the others leave them to be sent as they are"
    return Evidence("edges", loss, how, code="L4", claim=1.0)


_IN_THE_CLEAR = (("L3", attributes_in_the_clear), ("L2", whole_budget_each), ("L4", edges_in_the_clear))
WITNESSES: dict[str, tuple[tuple[str, Callable[[], Evidence]], ...]] = {
    "nip-gnn": (("N1", star_with_fixed_scales), ("N2", star_with_live_scales), ("N5", thinning_by_true_degree)),
    "dpar": (
        ("P1", partial(linear_amplification, 1.0)),
        ("P1", partial(linear_amplification, 8.0)),
        ("P2", clipped_gradient_turns_round),
    ),
    "gap": (("A1", undirected_edge), ("D3", cap_is_not_stable)),
    "dpdgc": (("A1", undirected_edge), ("D3", cap_is_not_stable), ("D5", root_of_the_group)),
    "graph-privatizer": (("G1", seven_people),),
    "lga-pgnn": _IN_THE_CLEAR,
    "ldp-gnn": _IN_THE_CLEAR,
}
