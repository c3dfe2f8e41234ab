"""Loops over arcs in the order of their receivers: scores, their softmax, and sums of rows under it, forwards and backwards.

Rows are ``heads`` pieces of equal width side by side; scores are arcs x heads. Gradients are added to what is there.
"""

from __future__ import annotations

from typing import Any

from numba import njit


@njit(cache=True, fastmath=True, error_model="numpy")
def below_largest(starts: Any, scores: Any) -> None:
    """Every score minus the largest one of its receiver and head, in place."""
    for receiver in range(len(starts) - 1):
        first, last = starts[receiver], starts[receiver + 1]
        for head in range(scores.shape[1]):
            largest = scores[first, head] if last > first else scores.dtype.type(0)
            for arc in range(first, last):
                largest = max(largest, scores[arc, head])
            for arc in range(first, last):
                scores[arc, head] -= largest


@njit(cache=True, fastmath=True, error_model="numpy")
def weigh(starts: Any, senders: Any, weights: Any, values: Any, out: Any) -> None:
    """Weights to sum 1 for every receiver and head, in place; ``out[i] = sum_j weight_ij values[j]``."""
    heads = weights.shape[1]
    width = values.shape[1] // heads
    for receiver in range(len(starts) - 1):
        first, last = starts[receiver], starts[receiver + 1]
        for head in range(heads):
            total = weights.dtype.type(0)
            for arc in range(first, last):
                total += weights[arc, head]
            for arc in range(first, last):
                weights[arc, head] /= total
        for arc in range(first, last):
            for head in range(heads):
                weight = weights[arc, head]
                heard = values[senders[arc], head * width : (head + 1) * width]
                into = out[receiver, head * width : (head + 1) * width]
                for at in range(width):
                    into[at] += weight * heard[at]


@njit(cache=True, fastmath=True, error_model="numpy")
def weigh_back(
    starts: Any, senders: Any, weights: Any, values: Any, out: Any, gradient: Any, of_values: Any, of_scores: Any
) -> None:
    """``d score_ij = weight_ij gradient_i . (value_j - out_i)`` and ``d value_j = sum_i weight_ij gradient_i``."""
    heads = weights.shape[1]
    width = values.shape[1] // heads
    for receiver in range(len(starts) - 1):
        for head in range(heads):
            slope = gradient[receiver, head * width : (head + 1) * width]
            own = out[receiver, head * width : (head + 1) * width]
            level = weights.dtype.type(0)
            for at in range(width):
                level += slope[at] * own[at]
            for arc in range(starts[receiver], starts[receiver + 1]):
                weight = weights[arc, head]
                heard = values[senders[arc], head * width : (head + 1) * width]
                into = of_values[senders[arc], head * width : (head + 1) * width]
                product = weights.dtype.type(0)
                for at in range(width):
                    product += slope[at] * heard[at]
                for at in range(width):
                    into[at] += weight * slope[at]
                of_scores[arc, head] = weight * (product - level)


@njit(cache=True, fastmath=True, error_model="numpy")
def add_ends(starts: Any, senders: Any, sending: Any, receiving: Any, slope: Any, scores: Any) -> None:
    """``leaky(sending_j + receiving_i)``: GAT."""
    for receiver in range(len(starts) - 1):
        for arc in range(starts[receiver], starts[receiver + 1]):
            for head in range(scores.shape[1]):
                both = sending[senders[arc], head] + receiving[receiver, head]
                scores[arc, head] = both if both > 0 else slope * both


@njit(cache=True, fastmath=True, error_model="numpy")
def add_ends_back(
    starts: Any, senders: Any, scores: Any, slope: Any, gradient: Any, of_sending: Any, of_receiving: Any
) -> None:
    for receiver in range(len(starts) - 1):
        for arc in range(starts[receiver], starts[receiver + 1]):
            for head in range(scores.shape[1]):
                part = gradient[arc, head] if scores[arc, head] > 0 else slope * gradient[arc, head]
                of_sending[senders[arc], head] += part
                of_receiving[receiver, head] += part


@njit(cache=True, fastmath=True, error_model="numpy")
def bend_ends(starts: Any, senders: Any, sending: Any, receiving: Any, mix: Any, slope: Any, scores: Any) -> None:
    """``mix . leaky(sending_j + receiving_i)``: GATv2."""
    heads = scores.shape[1]
    width = sending.shape[1] // heads
    for receiver in range(len(starts) - 1):
        for arc in range(starts[receiver], starts[receiver + 1]):
            for head in range(heads):
                heard = sending[senders[arc], head * width : (head + 1) * width]
                own = receiving[receiver, head * width : (head + 1) * width]
                weights = mix[head]
                total = scores.dtype.type(0)
                for at in range(width):
                    both = heard[at] + own[at]
                    total += weights[at] * max(both, slope * both)
                scores[arc, head] = total


@njit(cache=True, fastmath=True, error_model="numpy")
def bend_ends_back(
    starts: Any,
    senders: Any,
    sending: Any,
    receiving: Any,
    mix: Any,
    slope: Any,
    gradient: Any,
    of_sending: Any,
    of_receiving: Any,
    of_mix: Any,
) -> None:
    heads = gradient.shape[1]
    width = sending.shape[1] // heads
    for receiver in range(len(starts) - 1):
        for arc in range(starts[receiver], starts[receiver + 1]):
            for head in range(heads):
                heard = sending[senders[arc], head * width : (head + 1) * width]
                own = receiving[receiver, head * width : (head + 1) * width]
                into = of_sending[senders[arc], head * width : (head + 1) * width]
                into_own = of_receiving[receiver, head * width : (head + 1) * width]
                into_mix, weights, part = of_mix[head], mix[head], gradient[arc, head]
                for at in range(width):
                    both = heard[at] + own[at]
                    bent = both if both > 0 else slope * both
                    step = part * weights[at] * (gradient.dtype.type(1) if both > 0 else slope)
                    into_mix[at] += part * bent
                    into[at] += step
                    into_own[at] += step


@njit(cache=True, fastmath=True, error_model="numpy")
def multiply_ends(starts: Any, senders: Any, sending: Any, receiving: Any, scale: Any, scores: Any) -> None:
    """``scale sending_j . receiving_i``: attention with keys and queries."""
    heads = scores.shape[1]
    width = sending.shape[1] // heads
    for receiver in range(len(starts) - 1):
        for arc in range(starts[receiver], starts[receiver + 1]):
            for head in range(heads):
                heard = sending[senders[arc], head * width : (head + 1) * width]
                own = receiving[receiver, head * width : (head + 1) * width]
                total = scores.dtype.type(0)
                for at in range(width):
                    total += heard[at] * own[at]
                scores[arc, head] = scale * total


@njit(cache=True, fastmath=True, error_model="numpy")
def multiply_ends_back(
    starts: Any,
    senders: Any,
    sending: Any,
    receiving: Any,
    scale: Any,
    gradient: Any,
    of_sending: Any,
    of_receiving: Any,
) -> None:
    heads = gradient.shape[1]
    width = sending.shape[1] // heads
    for receiver in range(len(starts) - 1):
        for arc in range(starts[receiver], starts[receiver + 1]):
            for head in range(heads):
                part = scale * gradient[arc, head]
                heard = sending[senders[arc], head * width : (head + 1) * width]
                own = receiving[receiver, head * width : (head + 1) * width]
                into = of_sending[senders[arc], head * width : (head + 1) * width]
                into_own = of_receiving[receiver, head * width : (head + 1) * width]
                for at in range(width):
                    into[at] += part * own[at]
                    into_own[at] += part * heard[at]
