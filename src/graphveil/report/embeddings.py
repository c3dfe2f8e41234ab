"""A paper's picture of hidden units: t-SNE of the training nodes, one panel per variant and epsilon, coloured by class."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from graphveil.experiments.papers import Entry, Paper
from graphveil.progress import Progress
from graphveil.report import canvas
from graphveil.report.palette import INK, MUTED

PERPLEXITY = 30
SEED = 0
COLOURS = 10


def draw(paper: Paper, entry: Entry, path: str | Path, progress: Progress) -> Figure:
    """Train, project and draw; seeded, so that the picture can be drawn again."""
    from graphveil.graph import load_dataset
    from graphveil.graph.validate import validate

    asked = entry.embeddings
    assert asked is not None
    name = entry.data[0]
    places = [(variant, epsilon) for variant in asked.variants for epsilon in asked.epsilons]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = load_dataset(name, seed=SEED, prepare=entry.prepare, split=entry.split)
        graph = validate(data)
        train = np.flatnonzero(graph.masks["train"])
        figure = Figure(figsize=(3.1 * len(asked.epsilons), 3.3 * len(asked.variants)), layout="constrained")
        grid = figure.subplots(len(asked.variants), len(asked.epsilons), squeeze=False)
        for number, (axes, (variant, epsilon)) in enumerate(zip(grid.ravel(), places, strict=True)):
            model = _model(entry, name, variant, epsilon, data)
            points = projected(model.predictor.own.hidden(graph)[train])
            axes.scatter(*points.T, c=graph.labels[train] % COLOURS, cmap="tab10", vmin=0, vmax=9, s=3, linewidths=0)
            axes.set(xticks=[], yticks=[])
            told = ", ".join(str(value) for value in variant.values())
            accuracy = 100 * model.score(data, access="public-graph")
            axes.set_title(f"{told}, epsilon {epsilon:g} (claimed)\ntest {accuracy:.1f} %", fontsize=9, color=INK)
            progress("models", number + 1, len(places))
    figure.suptitle(f"{entry.name}, {name}: hidden units of training nodes (t-SNE), by class", color=INK)
    figure.supxlabel(
        "axes of t-SNE have no meaning; the promise does not hold in published mode", fontsize=8, color=MUTED
    )
    canvas.save(figure, Path(path))
    return figure


def projected(hidden: np.ndarray) -> np.ndarray:
    """Two numbers per row by t-SNE."""
    from sklearn.manifold import TSNE

    perplexity = min(PERPLEXITY, max(2, len(hidden) // 4))
    return np.asarray(TSNE(2, perplexity=perplexity, init="pca", random_state=SEED).fit_transform(hidden))


def _model(entry: Entry, name: str, variant: dict[str, Any], epsilon: float, data: Any) -> Any:
    from graphveil.methods.registry import build
    from graphveil.privacy.promise import NodeLevel

    asked = entry.embeddings
    assert asked is not None
    promise = NodeLevel(epsilon, entry.deltas.get(name), **{k: v for k, v in asked.promise.items() if k != "level"})
    return build(asked.method, {"mode": "published", **variant}).fit(data, promise, seed=SEED)
