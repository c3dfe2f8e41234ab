"""What the attacker holds (rows, clean or released), and the attacked side: anything with ``predict_proba(data)``.

A local model is attacked through its GNN API (:func:`queried`): its network, asked with reports on the edges the server has.

The attacker moves one node's row a little towards the mean row: x' = (1 - step) x + step mean (``direction="mean"``), or
scales it, x' = (1 + step) x (``direction="scale"``, LinkTeller as published). Models that normalise rows do not notice
scaling, which is why it is not the default.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn

from graphveil.errors import InputError
from graphveil.graph import DenseRows, Graph, SparseRows
from graphveil.graph.layout import csr_tensor, scipy_features
from graphveil.graph.validate import validate
from graphveil.methods.common.gnn_api import GnnApi, has_gnn_api

DIRECTIONS = ("mean", "scale")
COMPARED = ("logits", "probabilities")
TINY = 1e-300
REPORTS = "the reports that the model learned from"


def as_graph(data: Any) -> Graph:
    """The data as a validated graph; labels may be missing, since most attacks do not need them."""
    if isinstance(data, Graph):
        return data
    if data.get("y") is None and data.get("num_classes") is None:
        data = copy.copy(data)
        data.num_classes = 1
    return validate(data, on_bad_rows="zero", need_training=False)


def queried(target: Any, data: Any) -> tuple[Any, Any]:
    """What of a target is asked, and with what: a local model's network with its reports and edges, any other with ``data``.

    ``model.predict_proba(data)`` of a local model reads nothing of ``data``; an attacker asks the GNN API, on the edges that the
    server was sent. Networks on public random numbers take no features, so that nobody can change any.
    """
    if not has_gnn_api(target) or target.predictor.random:
        return target, data
    graph, api = as_graph(data), target.gnn_api()
    check_order(target, graph)
    asked = api.data
    asked.y = torch.from_numpy(graph.labels)
    return api, asked


def check_order(model: Any, graph: Graph) -> None:
    """Refuse a graph whose nodes are not the slots of this model, one by one."""
    nodes = model.certificate.facts.nodes
    known = graph.ids is None or model.order is None
    if graph.nodes != nodes or not (known or np.array_equal(model.order.slots_of(graph.ids), np.arange(nodes))):
        raise InputError(f"attack this model with its own {nodes} people, in the order of training")


def rows_of(graph: Graph) -> Any:
    """The feature rows as SciPy CSR or a NumPy array."""
    if isinstance(graph.rows, SparseRows):
        return graph.rows.values
    assert isinstance(graph.rows, DenseRows)
    return graph.rows.values.numpy(force=True)


def dense(rows: Any) -> np.ndarray:
    """SciPy or NumPy rows as a float64 array."""
    return np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)


def as_rows(values: Any) -> DenseRows | SparseRows:
    """Feature rows from SciPy CSR or a NumPy array."""
    return SparseRows(values) if sp.issparse(values) else DenseRows(torch.from_numpy(values))


def posteriors(target: Any, data: Any) -> np.ndarray:
    """Class probabilities of every node in float64, checked."""
    ask = getattr(target, "predict_proba", None)
    if not callable(ask):
        raise InputError(f"{type(target).__name__} has no predict_proba(data): an attack needs class probabilities")
    found = ask(data)
    found = found.detach().numpy(force=True) if isinstance(found, torch.Tensor) else found
    answer = np.asarray(found, dtype=np.float64)
    nodes = data.nodes if isinstance(data, Graph) else int(data.num_nodes)
    if answer.ndim != 2 or answer.shape[0] != nodes:
        raise InputError(f"predict_proba gave shape {answer.shape} for {nodes} nodes: one row of probabilities each")
    if not np.isfinite(answer).all() or answer.min() < 0 or np.abs(answer.sum(axis=1) - 1).max() > 1e-3:
        raise InputError("predict_proba gave rows that are no probabilities: they must be positive and add up to 1")
    return answer


def delta_of(target: Any) -> float:
    """The delta that the certificate of a target promises; 0 for a target without one, or without privacy."""
    return float(getattr(getattr(target, "certificate", None), "delta", None) or 0.0)


@dataclass(frozen=True)
class Perturbation:
    """How a queried row is changed: a ``step`` of size (0, 1] towards the ``mean`` row, or in ``scale`` (published)."""

    step: float = 0.1
    direction: str = "mean"

    def __post_init__(self) -> None:
        if self.direction not in DIRECTIONS:
            raise InputError(f"unknown direction {self.direction!r}; known are: {', '.join(DIRECTIONS)}")
        if not 0 < self.step <= 1:
            raise InputError(f"the step of a perturbation must lie in (0, 1], got {self.step:g}")

    def changed(self, rows: Any, probes: np.ndarray) -> Any:
        """The rows of the probes after the change; ``rows`` is a SciPy or NumPy matrix of everybody."""
        own = rows[probes].astype(np.float64)
        if self.direction == "scale":
            return own * (1 + self.step)
        mean = np.asarray(rows.mean(axis=0, dtype=np.float64)).reshape(1, -1)
        if sp.issparse(rows):
            every = sp.csr_matrix(np.ones((len(probes), 1))) @ sp.csr_matrix(self.step * mean)
            return (own * (1 - self.step) + every).tocsr()
        return own * (1 - self.step) + self.step * mean


def compared(probabilities: np.ndarray, compare: str) -> np.ndarray:
    """As they come, or as logits: log p minus its mean over the classes, all that a softmax does not hide."""
    if compare == "probabilities":
        return probabilities
    logs = np.log(np.maximum(probabilities, TINY))
    return np.asarray(logs - logs.mean(axis=1, keepdims=True))


class Questions:
    """Asks one target about one graph with some rows changed, and counts the queries.

    ``compare``: ``logits``, or ``probabilities`` as they come.
    """

    def __init__(self, target: Any, data: Any, perturbation: Perturbation, compare: str = "logits") -> None:
        if compare not in COMPARED:
            raise InputError(f"answers are compared as {' or '.join(COMPARED)}, not as {compare!r}")
        self.target, self.data, self.perturbation, self.compare = target, data, perturbation, compare
        self.asked = 0
        if isinstance(data, Graph):
            self.rows = rows_of(data)
        else:
            sparse = data.x is not None and data.x.layout != torch.strided
            self.rows = scipy_features(data) if sparse else data.x.numpy(force=True).astype(np.float64)

    def answers(self, probes: np.ndarray) -> np.ndarray:
        """After these probes were changed."""
        self.asked += 1
        return compared(posteriors(self.target, self._with(probes) if len(probes) else self.data), self.compare)

    def _with(self, probes: np.ndarray) -> Any:
        changed = self.perturbation.changed(self.rows, probes)
        if sp.issparse(self.rows):
            kept = np.ones(self.rows.shape[0])
            kept[probes] = 0.0
            places = sp.csr_matrix((np.ones(len(probes)), (probes, np.arange(len(probes)))), (len(kept), len(probes)))
            values = (sp.diags(kept) @ self.rows + places @ changed).tocsr()
        else:
            values = self.rows.copy()
            values[probes] = changed
        return with_rows(self.data, values)


def with_rows(data: Any, values: Any) -> Any:
    """The same data with other feature rows (SciPy or NumPy)."""
    if isinstance(data, Graph):
        return replace(data, rows=as_rows(values))
    other = copy.copy(data)
    if sp.issparse(values):
        values.sum_duplicates()
    other.x = csr_tensor(values, np.float64) if sp.issparse(values) else torch.from_numpy(values)
    return other


class TorchTarget:
    """A torch network that gives logits as ``network(x, edge_index)``, as a target.

    ``hops``: how far from a node its output can read; lets LinkTeller ask about many nodes in one query (checked).
    """

    def __init__(self, network: nn.Module, hops: int | None = None) -> None:
        self.network, self.hops = network, hops

    def predict_proba(self, data: Any) -> torch.Tensor:
        x = data.x.to_dense() if data.x.layout != torch.strided else data.x
        kind = next((p.dtype for p in self.network.parameters()), torch.float32)
        self.network.eval()
        with torch.no_grad():
            return torch.softmax(self.network(x.to(kind), data.edge_index).double(), dim=1)


@dataclass(frozen=True, eq=False)
class Knowledge:
    """The attacker's side of the game."""

    rows: Any  # the attributes of every node as the attacker holds them (dense or SciPy sparse)
    nodes: np.ndarray  # a mask of whose rows those are: the attacker queries and guesses only about them
    edge_share: float = 0.0  # of the game's answers, which the attacker knows and may learn from (link stealing)
    released: str | None = None  # in words, how the rows were randomised; None for clean rows

    def __post_init__(self) -> None:
        if self.nodes.dtype != bool or self.nodes.shape != (self.rows.shape[0],):
            raise InputError(f"the attacker's nodes must be a boolean mask of length {self.rows.shape[0]}")
        if not 0 <= self.edge_share < 1:
            raise InputError(f"the share of answers the attacker knows must lie in [0, 1), got {self.edge_share:g}")

    @classmethod
    def of(cls, graph: Graph, edge_share: float = 0.0, target: Any = None) -> Knowledge:
        """Everybody's rows, clean unless the ``target`` is asked with reports."""
        released = REPORTS if isinstance(target, GnnApi) else None
        return cls(rows_of(graph), np.ones(graph.nodes, dtype=bool), edge_share, released)

    @classmethod
    def released_by(cls, graph: Graph, randomizer: Any, seed: int | None, edge_share: float = 0.0) -> Knowledge:
        """Everybody's report of a local randomizer for features: one stored report each, seen by the attacker as estimates."""
        reports, words = released(rows_of(graph), randomizer, seed)
        return cls(reports, np.ones(graph.nodes, dtype=bool), edge_share, words)

    def check(self, nodes: np.ndarray) -> None:
        """Refuse cases about nodes the attacker knows nothing of."""
        strangers = nodes[~self.nodes[nodes]]
        if len(strangers):
            raise InputError(
                f"the attacker does not know node {strangers[0]} ({len(strangers)} in all): draw pairs with among=knowledge.nodes"
            )

    def dense(self, nodes: np.ndarray) -> np.ndarray:
        """The rows of these nodes."""
        return dense(self.rows[nodes])

    def __str__(self) -> str:
        whose = "everybody's" if self.nodes.all() else f"{int(self.nodes.sum())} nodes'"
        what = f"{whose} attributes ({self.released or 'clean'})"
        return what + (f", {100 * self.edge_share:.0f} % of the answers" if self.edge_share else ", no edges")


def released(rows: Any, randomizer: Any, seed: int | None) -> tuple[Any, str]:
    """Everybody's report of a local randomizer for features, and in words what it is."""
    from graphveil.privacy.noise import Noise

    words = f"{type(randomizer).__name__} reports, epsilon {randomizer.epsilon:.3g} per person"
    return randomizer.randomize(rows, None, Noise(seed)), words


def feature_randomizer(name: str, epsilon: float, width: int, options: Mapping[str, Any] | None = None) -> Any:
    """The randomizer ``name`` for rows of ``width`` attributes in 0..1 at ``epsilon`` per person; ``options`` replace its own.

    LGA-PGNN's readings of the piecewise mechanism, on -1..1: ``piecewise-algorithm`` (every attribute with epsilon),
    ``piecewise-raw`` and ``piecewise-zero`` (m* of them with epsilon/m each); ``piecewise-algorithm:500`` for another m, and
    ``per_dimension`` (``eps`` or ``eps_over_m``) for another budget of each attribute.
    """
    from graphveil.exchange import randomizers

    name, _, number = name.partition(":")
    if number and not (number.isdigit() and int(number) and name.startswith("piecewise-")):
        raise InputError(f"--reports {name}:{number}: only readings of piecewise take m, e.g. piecewise-raw:10")

    def read(rest: str, each: str, sampled: str) -> Any:
        m = int(number) if number else sampled
        reading = randomizers.Rest(rest), randomizers.PerDimension(each)
        return randomizers.Piecewise(epsilon, width, -1.0, 1.0, m, 1.0, *reading)

    known: dict[str, Callable[[], Any]] = {
        "multi-bit": lambda: randomizers.MultiBit(epsilon, width),
        "direction": lambda: randomizers.Direction(epsilon, width, projected=None if width <= 128 else 64),
        "piecewise": lambda: randomizers.Piecewise(epsilon, width, lower=0.0, upper=1.0),
        "piecewise-algorithm": lambda: read("raw", "eps", "all"),
        "piecewise-raw": lambda: read("raw", "eps_over_m", "paper"),
        "piecewise-zero": lambda: read("zero", "eps_over_m", "paper"),
        "laplace": lambda: randomizers.LaplaceRows(epsilon, width),
    }
    if name not in known:
        raise InputError(f"unknown reports {name!r}; known are: {', '.join(known)}")
    return _with_options(known[name](), name, options or {})


def _with_options(randomizer: Any, name: str, options: Mapping[str, Any]) -> Any:
    given = {field.name for field in fields(randomizer)} - {"budget", "width"}
    unknown = sorted(options.keys() - given)
    if unknown:
        raise InputError(f"reports {name} have no option {unknown[0]!r}; theirs are: {', '.join(sorted(given))}")
    try:
        return replace(randomizer, **options)
    except (TypeError, ValueError) as error:
        told = ", ".join(f"{key}={value}" for key, value in options.items())
        raise InputError(f"reports {name} cannot be made with {told}: {error}") from None
