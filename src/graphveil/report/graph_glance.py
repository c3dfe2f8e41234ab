"""One graph at a glance: how heavy its degrees are, and how its classes mix."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from graphveil.graph import UNLABELLED
from graphveil.report.canvas import plain_axes, save
from graphveil.report.palette import HUES

if TYPE_CHECKING:
    from torch_geometric.data import Data


def plot_graph(data: Data, path: str | Path, title: str = "") -> Path:
    """How heavy the degrees of a graph are (log axes), and how its classes mix."""
    from graphveil.graph.data.measures import degree_sequence

    mixing = class_mixing(data)
    figure = Figure(figsize=(9 if mixing is not None else 4.8, 4), layout="constrained")
    panels = figure.subplots(1, 1 if mixing is None else 2, squeeze=False)[0]
    panels[0].loglog(*degree_survival(degree_sequence(data)), marker=".", linewidth=1, color=HUES["blue"][0])
    panels[0].set(xlabel="degree d", ylabel="share of nodes with degree ≥ d", title="degree distribution")
    plain_axes(panels[0])
    if mixing is not None:
        image = panels[1].imshow(mixing, vmin=0, vmax=1, cmap="Blues")
        names = data.get("class_names") or list(range(mixing.shape[0]))
        panels[1].set_xticks(range(len(mixing)), names, rotation=45, ha="right", fontsize=7)
        panels[1].set_yticks(range(len(mixing)), names, fontsize=7)
        panels[1].set(xlabel="class of the neighbour", ylabel="class of the node", title="where edges lead")
        figure.colorbar(image, ax=panels[1], shrink=0.8, label="share of the row")
    figure.suptitle(title)
    return save(figure, path)


def degree_survival(degrees: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct positive degrees ``d`` and the share of all nodes whose degree is at least ``d``."""
    values, counts = np.unique(degrees[degrees > 0], return_counts=True)
    return values, np.cumsum(counts[::-1])[::-1] / max(degrees.size, 1)


def class_mixing(data: Data) -> np.ndarray | None:
    """Row ``c``: where the arcs that leave class ``c`` lead, as shares. None without labels."""
    if data.get("y") is None:
        return None
    labels = data.y.numpy()
    u, v = labels[data.edge_index.numpy()]
    known = (u != UNLABELLED) & (v != UNLABELLED)
    classes = int(data.get("num_classes") or labels.max(initial=-1) + 1)
    counts = np.bincount(u[known] * classes + v[known], minlength=classes * classes).reshape(classes, classes)
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))
