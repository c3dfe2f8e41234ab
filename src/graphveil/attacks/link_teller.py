"""LinkTeller (Wu, Long, Zhang and Li, IEEE S&P 2022): joined nodes move each other's predictions.

The attacker may ask for predictions with changed features. The score of a pair (u, v) is how far u's prediction moves
when v's row is changed; in a message-passing network it is zero for nodes that are not within its reach and largest for
neighbours. A model whose inference reads no edges gives 0 for every pair: AUC 0.5.

    attack = LinkTeller()
    result = attack.run(model, data, sample_pairs(graph, "balanced", 500, seed=0))

The influence is found by the cheapest exact way there is.

1. The networks of this package: the incremental form (``incremental.py``; those of published local methods, attention among
   them: ``changed_arcs.py``; local ones on KProp: ``changed_propagation.py``).
2. Any other target is asked. Rows are changed in groups first, so that every ordered pair of nodes is separated by some
   group: if nobody outside a group ever moves, not even in the last bit, predictions read the node's own row (or nothing),
   and the influence of v on u is 0. That takes about 2 log2(probes) queries instead of one per probe.
3. A target that declares ``hops``: probes whose reach does not meet at any node that is looked at are changed in one query.
   That nothing moves outside the declared reach is checked at every query.
4. Else one query per probe, as published, up to ``max_queries``.

Ways 2 to 4 are ordinary finite differences over ``predict_proba``. Tests: ``tests/attacks/test_link_teller.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from graphveil.attacks.metrics import BOUND_NOTE, AttackResult, Finding, measure
from graphveil.attacks.pairs import Pairs, Sampling, controls
from graphveil.attacks.target import Knowledge, Perturbation, Questions, as_graph, delta_of, queried, with_rows
from graphveil.errors import InputError
from graphveil.graph import Graph
from graphveil.progress import Progress, silent

MAX_QUERIES = 2000
BELIEFS = (0.25, 0.5, 1.0, 2.0, 4.0)  # times the true density, as published
FORMS = {
    "incremental": "exact influence by the incremental form (the numbers of one query per node, without the queries)",
    "own row": "no prediction moved when other rows changed: inference reads the own row, or stored reports; influence 0",
    "grouped queries": "finite differences, nodes that cannot meet changed in one query",
    "queries": "finite differences, one query per node",
}

OWN_LIST = "a prediction reads the node's own contact list, which this attack does not change: see the attack 'lists'"


@dataclass(frozen=True)
class LinkTeller:
    """Influence of one node's features on another's prediction.

    ``form`` is ``auto`` or ``queries`` (one query per node); more than ``max_queries`` are refused. ``compare``: how answers are
    told apart, ``logits`` or ``probabilities``.
    """

    perturbation: Perturbation = Perturbation()  # noqa: RUF009 (frozen)
    form: str = "auto"
    max_queries: int = MAX_QUERIES
    compare: str = "logits"

    def run(
        self,
        target: Any,
        data: Any,
        pairs: Pairs,
        knowledge: Knowledge | None = None,
        *,
        seed: int = 0,
        progress: Progress = silent,
    ) -> AttackResult:
        """Attack the pairs: the influence of each second node on the first.

        An attacker whose ``knowledge`` is of released rows asks with those instead of the clean ones.
        A local model is asked with its reports (:func:`queried`).
        """
        target, data = queried(target, data)
        graph = as_graph(data)
        known = knowledge or Knowledge.of(graph, target=target)
        known.check(pairs.nodes)
        asked = data if knowledge is None else with_rows(data, known.rows)
        ends, how = (pairs.first, pairs.second), self.perturbation
        found = influence(target, asked, *ends, how, self.form, self.max_queries, progress, self.compare)
        facts = {"form": found.form, "queries": found.queries}
        if pairs.sampling is Sampling.DENSITY:
            facts["at_belief"] = at_beliefs(pairs.joined, found.values)
        options = {"seed": seed, "delta": delta_of(target)}
        return AttackResult(
            "link-teller",
            (Finding.of("influence", pairs.joined, found.values, **options),),
            tuple(Finding.of(name, pairs.joined, score, **options) for name, score in controls(graph, pairs).items()),
            str(pairs),
            f"{known}; answers to queries with changed attributes; the share of edges among the pairs",
            facts,
            (FORMS[found.form], *_reads_lists(target), BOUND_NOTE),
        )


def _reads_lists(target: Any) -> tuple[str, ...]:
    """What this attack is blind to where a prediction reads the asker's own list."""
    predictor = getattr(target, "predictor", None)
    return (OWN_LIST,) if getattr(predictor, "reads_lists", False) else ()


def at_beliefs(joined: np.ndarray, score: np.ndarray) -> dict[str, dict[str, float]]:
    """Precision, recall and F1 if the attacker believes in a quarter to four times the true density."""
    found = {}
    for factor in BELIEFS:
        belief = factor * float(joined.mean())
        if belief < 1:
            figures = measure(joined, score, belief=belief, resamples=0)
            found[f"{factor:g}"] = {name: figures[name] for name in ("precision", "recall", "f1")}
    return found


@dataclass(frozen=True, eq=False)
class Influence:
    """One value per pair, how it was found, and how often the target was asked."""

    values: np.ndarray
    form: str
    queries: int


def influence(
    target: Any,
    data: Any,
    receivers: np.ndarray,
    senders: np.ndarray,
    perturbation: Perturbation | None = None,
    form: str = "auto",
    max_queries: int = MAX_QUERIES,
    progress: Progress = silent,
    compare: str = "logits",
) -> Influence:
    """Distance by which the centred log-probabilities of ``receivers[i]`` move when ``senders[i]``'s row is changed.

    ``form``: ``auto`` (the cheapest), or ``queries`` for one query per sender. ``compare``: see :class:`Questions`.
    """
    if form not in ("auto", "queries"):
        raise InputError(f"unknown form {form!r}; known are: auto, queries")
    if not _width(data):
        raise InputError("the graph has no attributes: there is nothing an attacker could change in a query")
    change = perturbation or Perturbation()
    probes, numbers = np.unique(senders, return_inverse=True)
    from graphveil.methods.common.gnn_api import GnnApi
    from graphveil.methods.common.network_predictor import PropagatingPredictor
    from graphveil.methods.gnn import GnnPredictor
    from graphveil.methods.model import Model

    predictor = target.predictor if isinstance(target, Model) else None
    if form == "auto" and compare == "logits" and isinstance(predictor, GnnPredictor):
        from graphveil.attacks.incremental import ChangedNetwork

        values = ChangedNetwork(predictor, as_graph(data)).influence(receivers, probes, numbers, change)
        return Influence(values, "incremental", 0)
    changed = target.changed_network(data) if form == "auto" and hasattr(target, "changed_network") else None
    if changed is not None:
        return Influence(changed.influence(receivers, probes, numbers, change, compare), "incremental", 0)
    questions = Questions(target, data, change, compare)
    if form == "auto" and isinstance(target, GnnApi) and isinstance(target.predictor, PropagatingPredictor):
        from graphveil.attacks.changed_propagation import ChangedPropagation

        propagation = ChangedPropagation(target, questions.rows, data.edge_index.numpy())
        values = propagation.influence(receivers, probes, numbers, change, compare, progress)
        return Influence(values, "incremental", 0)
    clean = questions.answers(np.empty(0, dtype=np.int64))
    values = np.zeros(len(receivers))
    if form == "auto" and reads_own_row_only(questions, clean, probes, np.unique(receivers)):
        return Influence(values, "own row", questions.asked)
    hops: int | None = getattr(target, "hops", None)
    if form == "auto" and hops is not None:
        groups, reach = _groups(as_graph(data), hops, receivers, probes, numbers)
    else:
        groups, reach = [np.array([number]) for number in range(len(probes))], None
    if len(groups) > max_queries:
        raise InputError(
            f"this target would have to be asked {len(groups)} times, more than max_queries = {max_queries}: "
            "attack fewer pairs, or declare how many hops it reads (TorchTarget(network, hops=2))"
        )
    group_of = np.empty(len(probes), dtype=np.int64)
    for number, group in enumerate(groups):
        group_of[group] = number
    order = np.argsort(group_of[numbers], kind="stable")
    bounds = np.searchsorted(group_of[numbers][order], np.arange(len(groups) + 1))
    for number, group in enumerate(groups):
        moved = questions.answers(probes[group]) - clean
        if reach is not None and hops is not None:
            _check_reach(moved, reach[group], hops)
        chosen = order[bounds[number] : bounds[number + 1]]
        values[chosen] = np.linalg.norm(moved[receivers[chosen]], axis=1)
        progress("queries", number + 1, len(groups))
    return Influence(values, "queries" if reach is None else "grouped queries", questions.asked)


def _width(data: Any) -> int:
    """How many attributes everybody has; data that are no graph are refused."""
    rows = None if isinstance(data, Graph) else data.x
    return as_graph(data).features if rows is None or rows.dim() != 2 else int(rows.shape[1])


def reads_own_row_only(questions: Questions, clean: np.ndarray, probes: np.ndarray, watched: np.ndarray) -> bool:
    """Whether nobody moves unless changed: for every bit of a probe's number, those with 0 and those with 1 are changed.

    Two different probes differ in some bit, so one of them is changed while the other is not, in both roles.
    """
    for bit in range(max(1, int(len(probes) - 1).bit_length())):
        for side in (0, 1):
            group = probes[(np.arange(len(probes)) >> bit & 1) == side]
            if not len(group):
                continue
            others = watched[~np.isin(watched, group)]
            if not np.array_equal(questions.answers(group)[others], clean[others]):
                return False
    return True


def _groups(
    graph: Graph, hops: int, receivers: np.ndarray, probes: np.ndarray, numbers: np.ndarray
) -> tuple[list[np.ndarray], sp.csr_matrix]:
    """Groups of probe numbers that may be changed together, and whom each probe can reach (probes x nodes)."""
    senders, readers = graph.lists.edge_index()
    nodes, count = graph.nodes, len(probes)
    step = sp.csr_matrix((np.ones(len(senders)), (senders, readers)), (nodes, nodes)) + sp.identity(nodes, format="csr")
    reach = sp.csr_matrix((np.ones(count), (np.arange(count), probes)), (count, nodes))
    for _ in range(hops):
        reach = (reach @ step).sign()
    looked_at = sp.csr_matrix((np.ones(len(receivers)), (numbers, receivers)), (count, nodes))
    conflicts = (looked_at @ reach.T).tocsr()  # [a, b]: b reaches somebody who is looked at for a
    conflicts = (conflicts + conflicts.T).tolil()
    conflicts.setdiag(0)
    return independent_groups(conflicts.tocsr()), reach.tocsr()


def independent_groups(conflicts: sp.csr_matrix) -> list[np.ndarray]:
    """A partition into sets without conflicts: maximal independent sets by random priorities, one after the other."""
    coins = np.random.default_rng(0)
    conflicts.eliminate_zeros()
    left, groups = np.arange(conflicts.shape[0]), []
    while len(left):
        among = conflicts[left][:, left].tocoo()
        free, taken = np.ones(len(left), dtype=bool), np.zeros(len(left), dtype=bool)
        priority = coins.permutation(len(left)) + 1.0
        while free.any():
            live = free[among.row] & free[among.col]
            best = np.zeros(len(left))
            np.maximum.at(best, among.row[live], priority[among.col[live]])
            winners = free & (priority > best)
            taken |= winners
            free &= ~winners
            free[among.row[winners[among.col]]] = False
        groups.append(left[taken])
        left = left[~taken]
    return groups


def _check_reach(moved: np.ndarray, reach: sp.csr_matrix, hops: int) -> None:
    reached = np.zeros(len(moved), dtype=bool)
    reached[reach.indices] = True
    outside = np.flatnonzero((moved != 0).any(axis=1) & ~reached)
    if len(outside):
        raise InputError(
            f"the target reads further than the {hops} hops it declares: node {outside[0]} moved; leave hops out or raise it"
        )
