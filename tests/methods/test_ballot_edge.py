"""Edge level: each public class of edges moves one release, by at most its declared bound."""

import math

import numpy as np
import pytest
import torch

from graphveil.graph import DenseRows, Graph, Lists
from graphveil.methods.ballot import Ballot
from graphveil.methods.ballot.edge import directed_sum, edge_releases, first_tally, plausible_classes, receiver_coded
from graphveil.methods.ballot.public_records import public_log_probabilities
from graphveil.methods.common.labels import label_rows
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.plan import edge_kind
from graphveil.privacy.promise import EdgeLevel
from graphveil.progress import silent

KINDS = ("train", "calibration", "query", "other")
CLASSES = 4


def random_graph(rng):
    nodes = int(rng.integers(3, 9))
    kinds = rng.choice(KINDS, nodes, p=(0.4, 0.2, 0.3, 0.1))
    upper = np.triu(rng.random((nodes, nodes)) < rng.random(), 1)
    return nodes, kinds, upper | upper.T


def tables(matrices, kinds, labels, probabilities, plausible):
    """The clean tables of many graphs as components of one, which cannot see each other."""
    starts = np.cumsum([0, *map(len, matrices)])
    arcs = [np.array(np.nonzero(matrix)) + start for matrix, start in zip(matrices, starts, strict=False)]
    masks = {kind: kinds == kind for kind in KINDS[:3]}
    lists = Lists.from_edge_index(np.concatenate(arcs, axis=1), len(kinds))
    graph = Graph(DenseRows(torch.ones(len(kinds), 1)), labels, lists, masks, CLASSES)
    votes = label_rows(graph, ("train", "calibration"))
    votes = np.where(votes.any(axis=1)[:, None], votes, probabilities)
    receivers = masks["calibration"] | masks["query"]
    coded = receiver_coded(directed_sum(graph, votes, masks, probabilities), plausible)[receivers]
    return {
        "first tally": (masks["train"], first_tally(graph, label_rows(graph), masks["train"])),
        "ballots": (receivers, coded),
    }


@pytest.mark.parametrize("directed", [False, True])
def test_an_edge_moves_only_the_release_of_its_public_class_and_by_at_most_its_bound(directed):
    rng, cases, edges = np.random.default_rng(0), [], []
    for _ in range(1500):
        nodes, kinds, matrix = random_graph(rng)
        labels = rng.integers(0, CLASSES, nodes)
        probabilities = rng.dirichlet(np.full(CLASSES, 0.3), nodes)
        plausible = plausible_classes(probabilities) if rng.random() < 0.7 else np.ones((nodes, CLASSES), dtype=bool)
        i, j = rng.choice(nodes, 2, replace=False)
        other = matrix.copy()
        other[i, j] = ~matrix[i, j]
        if not directed:
            other[j, i] = other[i, j]
        cases.append((matrix, other, kinds, labels, probabilities, plausible))
        edges.append(edge_kind(kinds[i], kinds[j]))
    first, second, *public = zip(*cases, strict=True)
    public = list(map(np.concatenate, public))
    before, after = tables(first, *public), tables(second, *public)
    component, edges = np.repeat(np.arange(len(cases)), list(map(len, first))), np.array(edges)
    counts = {kind: int((public[0] == kind).sum()) for kind in KINDS}
    facts, worst = PublicFacts(len(component), 1, CLASSES, kinds=counts), {}
    for release in edge_releases(facts, EdgeLevel(1.0, 1e-5, directed=directed)):
        (rows, old), (_, new) = before[release.name], after[release.name]
        moved = np.sqrt(np.bincount(component[rows], np.square(new - old).sum(axis=1), len(cases)))
        for kind in set(edges):
            worst[release.name, kind] = largest = moved[edges == kind].max()
            assert largest <= release.bound(kind) + 1e-9, (release.name, kind, largest)
    assert worst["first tally", "train-train edge"] == pytest.approx(1.0 if directed else math.sqrt(2))
    for kind in ("train-calibration edge", "train-query edge", "calibration-query edge"):
        assert worst["ballots", kind] == pytest.approx(1.0)
    assert worst["ballots", "train-train edge"] == 0.0


def test_every_class_of_edges_pays_for_one_release_only():
    releases = edge_releases(PublicFacts(100, 1, 3), EdgeLevel(1.0, 1e-5))
    classes = [kind for release in releases for kind in release.sensitivity]
    assert len(classes) == len(set(classes))
    assert "calibration-calibration edge" not in classes  # never read


def test_two_plausible_classes_are_farther_apart_than_seven():
    """Squared distance 2|K|/(|K|-1) of two votes: why weak votes are coded for their receiver."""
    votes = np.eye(7)
    two = np.zeros((7, 7), dtype=bool)
    two[:, :2] = True
    distance = lambda plausible: float(np.sum((np.subtract(*receiver_coded(votes, plausible)[:2])) ** 2))
    assert distance(two) == pytest.approx(4.0, rel=1e-6)
    assert distance(np.ones((7, 7), dtype=bool)) == pytest.approx(14 / 6, rel=1e-6)
    assert not receiver_coded(votes, two)[2:].any()


def test_the_two_most_probable_classes_are_always_plausible():
    probabilities = np.array([[0.97, 0.02, 0.01], [0.5, 0.3, 0.2]])
    assert plausible_classes(probabilities).tolist() == [[True, True, False], [True, True, True]]


def test_the_public_own_prediction_reads_no_edge_and_no_label_outside_training():
    rng = np.random.default_rng(0)
    nodes = 60
    labels = rng.integers(0, 2, nodes)
    kinds = np.array(["train"] * 40 + ["calibration"] * 10 + ["query"] * 10)
    masks = {kind: kinds == kind for kind in KINDS[:3]}
    rows = DenseRows(torch.from_numpy(np.eye(2)[labels] + 0.1 * rng.random((nodes, 2))))
    lists = Lists.from_edge_index(np.zeros((2, 0), dtype=int), nodes)
    graph = Graph(rows, np.where(kinds == "query", -1, labels), lists, masks, 2)
    z = public_log_probabilities(graph, masks, 20, np.random.default_rng(1), silent)
    assert (z.argmax(axis=1)[kinds == "query"] == labels[kinds == "query"]).mean() > 0.9


def test_ballots_help_where_neighbours_agree():
    from graphveil.graph import load_dataset

    data = load_dataset("csbm", seed=0, nodes=1000, phi=0.9)
    model = Ballot().fit(data, EdgeLevel(8.0), seed=0)
    assert model.predictor.facts["mode"] == "homophilous"
    assert model.score(data) > 0.8
