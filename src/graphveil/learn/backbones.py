"""Graph networks by name, two layers each, on PyG's operators: what methods train on a noisy, released or public graph.

==============  =======================================================================================
``gcn``         GCNConv, Kipf and Welling 2017
``sage``        SAGEConv (mean, root weight), Hamilton et al. 2017
``gat``         GATConv, 4 heads then 1, Velickovic et al. 2018
``gatv2``       GATv2Conv, 4 heads then 1, Brody et al. 2022
``transformer`` TransformerConv, 4 heads then 1, Shi et al. 2021
``graphconv``   GraphConv (sum), Morris et al. 2019
``cheb``        ChebConv of order 2, Defferrard et al. 2016
``sgc``         SGConv with 2 hops: one linear layer, Wu et al. 2019
``tag``         TAGConv with 3 hops, Du et al. 2017
==============  =======================================================================================

Deeper ones, for local methods: dense layers at the end (:func:`with_dense_end`), or twice as many graph layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from graphveil.errors import InputError
from graphveil.learn.arcs import Arcs

HEADS = 4


class TwoLayers(nn.Module):
    """second(dropout(selu(first(dropout(x))))): logits of every node, by operators called as ``operator(x, edges)``.

    ``drop_inputs`` false: x is taken whole.
    """

    def __init__(self, first: nn.Module, second: nn.Module | None, dropout: float, drop_inputs: bool = True) -> None:
        super().__init__()
        self.first, self.second = first, second
        self.dropout, self.drop_inputs = dropout, drop_inputs

    def forward(self, x: Tensor, edge_index: Tensor | Arcs) -> Tensor:
        inputs = dropout(x, self.dropout) if self.training and self.drop_inputs else x
        return self.above(self.first(inputs, edge_index), edge_index)

    def above(self, hidden: Tensor, edge_index: Tensor | Arcs) -> Tensor:
        """Logits from what the first operator gave."""
        if self.second is None:
            return hidden
        rate = self.dropout if self.training else None
        logits: Tensor = self.second(dropout(nn.functional.selu(hidden), rate), edge_index)
        return logits


def dropout(values: Tensor, rate: float | None) -> Tensor:
    """Inverted dropout with a byte per number instead of a float (twice as quick); the rate is rounded to 1/256."""
    if rate is None:
        return values
    if values.layout is torch.sparse_csr:
        places = values.crow_indices(), values.col_indices()
        return torch.sparse_csr_tensor(*places, dropout(values.values(), rate), values.shape)
    cut = min(round(256 * rate), 255)
    coins = torch.empty((values.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
    heads = coins.view(torch.uint8)[: values.numel()].view(values.shape)
    if values.requires_grad or values.dtype is not torch.float32:
        return (values * (heads >= cut)).mul_(256 / (256 - cut))
    from graphveil.learn.kernels import kept_where

    kept = torch.empty(values.shape)
    kept_where(
        values.contiguous().view(-1).numpy(), heads.view(-1).numpy(), cut, 256 / (256 - cut), kept.view(-1).numpy()
    )
    return kept


Builder = Callable[[int, int, int], tuple[nn.Module, nn.Module | None]]


def _plain(operator: type[nn.Module], **options: object) -> Builder:
    return lambda width, hidden, classes: (operator(width, hidden, **options), operator(hidden, classes, **options))


def _attention(operator: type[nn.Module]) -> Builder:
    def build(width: int, hidden: int, classes: int) -> tuple[nn.Module, nn.Module | None]:
        each = max(1, hidden // HEADS)
        return operator(width, each, heads=HEADS), operator(each * HEADS, classes, heads=1, concat=False)

    return build


def _builders() -> dict[str, Builder]:
    from torch_geometric import nn as pyg

    from graphveil.learn.attention import Gat, Gatv2, Transformer
    from graphveil.learn.operators import Chebyshev, Gcn, GraphSum, Sage, Sgc

    return {
        "gcn": _plain(Gcn),
        "sage": _plain(Sage),
        "gat": _attention(Gat),
        "gatv2": _attention(Gatv2),
        "transformer": _attention(Transformer),
        "graphconv": _plain(GraphSum),
        "cheb": _plain(Chebyshev, K=2),
        "sgc": lambda width, hidden, classes: (Sgc(width, classes, K=2), None),
        "tag": _plain(pyg.TAGConv, K=3),
    }


ATTENTION = ("gat", "gatv2", "transformer")  # these need single arcs; the others also take a sparse matrix
ON_ARCS = (*ATTENTION, "gcn", "sage", "graphconv")  # these read graphveil.learn.arcs.Arcs, double arcs included
NAMES = ("gcn", "sage", "gat", "gatv2", "transformer", "graphconv", "cheb", "sgc", "tag")


def build_backbone(name: str, width: int, hidden: int, classes: int, dropout: float = 0.5, seed: int = 0) -> TwoLayers:
    """The backbone with initial weights from ``seed`` (public); the global random state is left as it was."""
    if name not in NAMES:
        raise InputError(f"unknown backbone {name!r}; known are: {', '.join(NAMES)}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return TwoLayers(*_builders()[name](width, hidden, classes), dropout)


def hops_of(name: str) -> int:
    """How far one of its operators reads, at most."""
    return {"sgc": 2, "tag": 3}.get(name, 1)


@contextmanager
def one_graph(network: nn.Module) -> Iterator[None]:
    """While this lasts the network sees one graph only, so that GCN keeps its normalised matrix."""
    from torch_geometric.nn import GCNConv

    layers = [layer for layer in network.modules() if isinstance(layer, GCNConv)]
    for layer in layers:
        layer.cached = True
    try:
        yield
    finally:
        for layer in layers:
            layer.cached, layer._cached_edge_index, layer._cached_adj_t = False, None, None


class DenseEnd(nn.Module):
    """Two graph layers, then two dense layers with ReLU: logits = B drop(relu(A drop(relu(graph(x))))) (LGA-PGNN)."""

    def __init__(self, graph: nn.Module, hidden: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.graph = graph
        linear = nn.Linear(hidden, hidden), nn.Linear(hidden, classes)
        self.dense = nn.Sequential(*(part for last in linear for part in (nn.ReLU(), nn.Dropout(dropout), last)))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        logits: Tensor = self.dense(self.graph(x, edge_index))
        return logits


class TwiceAsDeep(nn.Module):
    """Four graph layers: one backbone on top of another."""

    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        logits: Tensor = self.second(nn.functional.selu(self.first(x, edge_index)), edge_index)
        return logits


def with_dense_end(name: str, width: int, hidden: int, classes: int, dropout: float, seed: int) -> nn.Module:
    """The backbone followed by two dense layers, with initial weights from ``seed``."""
    graph = for_one_graph(name, width, hidden, hidden, dropout, seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return DenseEnd(graph, hidden, classes, dropout)


def twice_as_deep(name: str, width: int, hidden: int, classes: int, dropout: float, seed: int) -> nn.Module:
    """Two backbones, one on the output of the other, with initial weights from ``seed``."""
    first = for_one_graph(name, width, hidden, hidden, dropout, seed)
    return TwiceAsDeep(first, for_one_graph(name, hidden, hidden, classes, dropout, seed + 1))


class PrivateLayerFirst(nn.Module):
    """A private layer on (already averaged) inputs, one graph layer, then two dense layers with ReLU (LGA-PGNN, eq. 18-20).

    The private layer is told which vertices the inputs are of (None: all).
    """

    def __init__(self, private: nn.Module, graph: nn.Module, hidden: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.private, self.graph, self.rate = private, graph, dropout
        self.dense, self.last = nn.Linear(hidden, hidden), nn.Linear(hidden, classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        rate = self.rate if self.training else None
        near = self.private(x, getattr(edge_index, "rows", None))
        hidden = torch.relu(self.graph(dropout(near, rate), edge_index))
        logits: Tensor = self.last(dropout(torch.relu(self.dense(dropout(hidden, rate))), rate))
        return logits


def with_private_layer(
    private: Callable[[int, int], nn.Module],
    name: str,
    width: int,
    hidden: int,
    classes: int,
    dropout: float,
    seed: int,
) -> nn.Module:
    """``private(width, hidden)`` as first graph layer, one of the backbone and two dense ones, weights from ``seed``."""
    hidden = max(1, hidden // HEADS) * HEADS if name in ATTENTION else hidden
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        first, second = _builders()[name](hidden, hidden, hidden)
        network = PrivateLayerFirst(private(width, hidden), second or first, hidden, classes, dropout)
    if name == "gcn":
        network.graph.cached = True  # type: ignore[assignment]
    return network


def as_lpgnn_builds(name: str, width: int, hidden: int, classes: int, dropout: float, seed: int) -> TwoLayers:
    """The network of the released code of LPGNN and GraphPrivatizer: inputs whole, GAT with four heads of ``hidden`` each, the
    other attention with one; it sees one graph."""
    from graphveil.learn.attention import Gat, Gatv2, Transformer

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if name in ATTENTION:
            operator: Any = {"gat": Gat, "gatv2": Gatv2, "transformer": Transformer}[name]
            heads = HEADS if name == "gat" else 1
            first, second = operator(width, hidden, heads=heads), operator(heads * hidden, classes, concat=False)
        else:
            first, second = _builders()[name](width, hidden, classes)
        network = TwoLayers(first, second, dropout, drop_inputs=False)
    if name == "gcn":
        network.first.cached = network.second.cached = True  # type: ignore[union-attr, assignment]
    return network


def for_one_graph(name: str, width: int, hidden: int, classes: int, dropout: float, seed: int) -> TwoLayers:
    """A backbone that sees one graph only, so that GCN keeps its normalised matrix."""
    network = build_backbone(name, width, hidden, classes, dropout, seed)
    if name == "gcn":
        network.first.cached = network.second.cached = True  # type: ignore[union-attr, assignment]
    return network
