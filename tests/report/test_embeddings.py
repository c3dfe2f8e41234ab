"""Pictures of hidden units: every panel is there, in the colours of the classes."""

import numpy as np

from graphveil.experiments.papers import Embeddings, find
from graphveil.report.embeddings import draw, projected


def test_projected_rows_of_two_classes_stay_apart():
    rng = np.random.default_rng(0)
    hidden = np.concatenate([rng.normal(size=(40, 6)), rng.normal(size=(40, 6)) + 12])
    points = projected(hidden)
    assert points.shape == (80, 2)
    apart = np.linalg.norm(points[:40].mean(0) - points[40:].mean(0))
    assert apart > 2 * np.linalg.norm(points[:40] - points[:40].mean(0), axis=1).mean()


def test_a_panel_per_variant_and_epsilon_is_drawn(tmp_path):
    paper, (entry,) = find("dpar/figure9")
    small = {"sources": 4, "hidden": 3, "epochs": 1}
    asked = Embeddings(
        method="dpar", variants=[{"select": "gm", **small}], epsilons=[0.2, 1], promise=entry.embeddings.promise
    )
    data = ["powerlaw-sbm:nodes=120,features=4,classes=3"]
    quick = entry.model_copy(
        update={"data": data, "prepare": None, "split": "random", "deltas": {}, "embeddings": asked}
    )
    figure = draw(paper, quick, tmp_path / "picture.png", lambda *told: None)
    panels = figure.axes
    assert len(panels) == 2 and (tmp_path / "picture.png").stat().st_size > 5000
    assert all(len(panel.collections[0].get_offsets()) == 90 for panel in panels)
    assert "epsilon 0.2" in panels[0].get_title() and "epsilon 1" in panels[1].get_title()
