"""GAT, GATv2 and the graph transformer on :class:`Arcs`: PyG's operators with their own sums over the arcs of a receiver.

    score_ij = leaky(s . z_j + r . z_i)   or   a . leaky(l_j + r_i)   or   q_i . k_j / sqrt(width)
    out_i = sum_j softmax_j(score_ij) value_j

On pairs they are PyG's own. Tests: ``tests/learn/test_arcs.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.nn import GATConv, GATv2Conv, TransformerConv

from graphveil.learn import attention_kernels
from graphveil.learn.arcs import Arcs, Inputs, Said, on_arcs, together

kernels: Any = attention_kernels


class Gat(GATConv):  # type: ignore[misc]
    """Heads score both ends of an arc by themselves and add."""

    def forward(self, x: Tensor, edges: Tensor | Arcs) -> Tensor:
        if not isinstance(edges, Arcs):
            found: Tensor = super().forward(x, edges)
            return found
        return on_arcs(self, x, edges)

    def sent(self, x: Inputs) -> Said:
        (rows,) = together(x, self.lin.weight)
        pieces = rows.view(-1, self.heads, self.out_channels)
        return rows, (pieces * self.att_src).sum(dim=-1), (pieces * self.att_dst).sum(dim=-1)

    def heard(self, sent: Said, own: Said, arcs: Arcs) -> Tensor:
        around = arcs.with_loops
        scores = added_ends(sent[1], own[2], around, self.negative_slope)
        rows: Tensor = joined(self, attended(scores, sent[0], around)) + self.bias
        return rows


class Gatv2(GATv2Conv):  # type: ignore[misc]
    """The two ends are added before they are bent and scored."""

    def forward(self, x: Tensor, edges: Tensor | Arcs) -> Tensor:
        if not isinstance(edges, Arcs):
            found: Tensor = super().forward(x, edges)
            return found
        return on_arcs(self, x, edges)

    def sent(self, x: Inputs) -> Said:
        sending, receiving = together(x, self.lin_l.weight, self.lin_r.weight)
        return sending + self.lin_l.bias, receiving + self.lin_r.bias

    def heard(self, sent: Said, own: Said, arcs: Arcs) -> Tensor:
        around = arcs.with_loops
        scores = bent_ends(sent[0], own[1], self.att[0], around, self.negative_slope)
        rows: Tensor = joined(self, attended(scores, sent[0], around)) + self.bias
        return rows


class Transformer(TransformerConv):  # type: ignore[misc]
    """Queries of receivers against keys of senders, nobody hears itself; and one's own row beside it."""

    def forward(self, x: Tensor, edges: Tensor | Arcs) -> Tensor:
        if not isinstance(edges, Arcs):
            found: Tensor = super().forward(x, edges)
            return found
        return on_arcs(self, x, edges)

    def sent(self, x: Inputs) -> Said:
        layers = self.lin_key, self.lin_query, self.lin_value, self.lin_skip
        products = together(x, *(layer.weight for layer in layers))
        return tuple(rows + layer.bias for rows, layer in zip(products, layers, strict=True))

    def heard(self, sent: Said, own: Said, arcs: Arcs) -> Tensor:
        keys, values, queries, skipped = sent[0], sent[2], own[1], own[3]
        found = attended(multiplied_ends(keys, queries, arcs, self.heads), values, arcs)
        rows: Tensor = joined(self, found) + skipped
        return rows


def joined(operator: Any, rows: Tensor) -> Tensor:
    """What the heads say, side by side or on average."""
    return rows if operator.concat else rows.view(-1, operator.heads, operator.out_channels).mean(dim=1)


def _arrays(*tensors: Tensor) -> list[np.ndarray]:
    return [tensor.detach().contiguous().numpy() for tensor in tensors]


def _zeros(*like: Tensor) -> list[Tensor]:
    return [torch.zeros(tensor.shape, dtype=tensor.dtype) for tensor in like]


class _Attended(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, values: Tensor, arcs: Arcs) -> Tensor:
        weights = scores.clone()
        kernels.below_largest(arcs.starts, weights.numpy())
        weights.exp_()
        out = torch.zeros(arcs.nodes, values.shape[1], dtype=values.dtype)
        kernels.weigh(arcs.starts, arcs.senders, weights.numpy(), *_arrays(values), out.numpy())
        ctx.arcs = arcs
        ctx.save_for_backward(weights, values, out)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        weights, values, out = ctx.saved_tensors
        of_values, of_scores = _zeros(values, weights)
        given = _arrays(weights, values, out, gradients[0])
        kernels.weigh_back(ctx.arcs.starts, ctx.arcs.senders, *given, of_values.numpy(), of_scores.numpy())
        return of_scores, of_values, None


class _AddedEnds(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, sending: Tensor, receiving: Tensor, arcs: Arcs, slope: float) -> Tensor:
        scores = torch.empty(len(arcs.senders), sending.shape[1], dtype=sending.dtype)
        ctx.slope = scores.numpy().dtype.type(slope)
        kernels.add_ends(arcs.starts, arcs.senders, *_arrays(sending, receiving), ctx.slope, scores.numpy())
        ctx.arcs = arcs
        ctx.save_for_backward(sending, receiving, scores)
        return scores

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        sending, receiving, scores = ctx.saved_tensors
        found, starts, senders = _zeros(sending, receiving), ctx.arcs.starts, ctx.arcs.senders
        kernels.add_ends_back(starts, senders, scores.numpy(), ctx.slope, *_arrays(gradients[0]), *_arrays(*found))
        return *found, None, None


class _BentEnds(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, sending: Tensor, receiving: Tensor, mix: Tensor, arcs: Arcs, slope: float) -> Tensor:
        scores = torch.empty(len(arcs.senders), len(mix), dtype=sending.dtype)
        ctx.slope = scores.numpy().dtype.type(slope)
        kernels.bend_ends(arcs.starts, arcs.senders, *_arrays(sending, receiving, mix), ctx.slope, scores.numpy())
        ctx.arcs = arcs
        ctx.save_for_backward(sending, receiving, mix)
        return scores

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        given, starts, senders = ctx.saved_tensors, ctx.arcs.starts, ctx.arcs.senders
        found = _zeros(*given)
        kernels.bend_ends_back(starts, senders, *_arrays(*given), ctx.slope, *_arrays(gradients[0], *found))
        return *found, None, None


class _MultipliedEnds(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, sending: Tensor, receiving: Tensor, arcs: Arcs, heads: int) -> Tensor:
        scores = torch.empty(len(arcs.senders), heads, dtype=sending.dtype)
        ctx.scale = scores.numpy().dtype.type(1 / math.sqrt(sending.shape[1] // heads))
        kernels.multiply_ends(arcs.starts, arcs.senders, *_arrays(sending, receiving), ctx.scale, scores.numpy())
        ctx.arcs = arcs
        ctx.save_for_backward(sending, receiving)
        return scores

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        given, starts, senders = ctx.saved_tensors, ctx.arcs.starts, ctx.arcs.senders
        found = _zeros(*given)
        kernels.multiply_ends_back(starts, senders, *_arrays(*given), ctx.scale, *_arrays(gradients[0], *found))
        return *found, None, None


attended: Callable[..., Tensor] = _Attended.apply
added_ends: Callable[..., Tensor] = _AddedEnds.apply
bent_ends: Callable[..., Tensor] = _BentEnds.apply
multiplied_ends: Callable[..., Tensor] = _MultipliedEnds.apply
