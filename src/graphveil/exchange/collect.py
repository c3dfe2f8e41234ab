"""Reports in, noisy data out: the files of several holders become one graph file and one certificate."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from graphveil.errors import InputError
from graphveil.exchange.broadcast import Broadcast
from graphveil.exchange.collector import Collector
from graphveil.exchange.files import ONCE, Files
from graphveil.exchange.randomizers import BucketResponse, Contacts, LabelResponse
from graphveil.graph.formats.npz import feature_arrays, label_arrays, undirected_pairs, unique_arcs
from graphveil.privacy.certificate import Certificate
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import DEGREES, OWNERS, Part
from graphveil.privacy.plan import Plan

COLLECTED = "collected from reports: its labels and features are noisy already"
WHO_REPORTS = "which vertices report, and which of them have a label"


@dataclass(frozen=True, eq=False)
class Collected:
    """What a collection gives: noisy data as the arrays of a graph file, its certificate, and the ids behind the slots."""

    arrays: dict[str, np.ndarray]
    labels: np.ndarray
    arcs: np.ndarray
    certificate: Certificate
    ids: tuple[str, ...]
    resent: int

    @property
    def broadcast(self) -> Broadcast:
        """Everybody's released label; 'no label' is the last bin."""
        if not (self.labels >= 0).any():
            raise InputError("--broadcast needs reports on labels: collect them first")
        return Broadcast.of(self.ids, np.where(self.labels >= 0, self.labels, self.certificate.facts.classes))


def collect(paths: list[Path]) -> Collected:
    """Merge reports files of several holders and rounds; a vertex in several files of a round must have sent the same."""
    files = Files(paths)
    nodes, classes = len(files.ids), files.classes or 2
    collector = Collector(files.rounds.values(), nodes)
    for path, report in files.reports():
        try:
            collector.accept(report)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
    estimates = collector.estimate()
    rows, labels, arcs = np.zeros((nodes, 0)), np.full(nodes, -1), np.zeros((2, 0), dtype=np.int64)
    names: list[str] = []
    for part in files.promise.raw:
        clear = files.in_the_clear(part)
        rows, labels, arcs = (
            clear if part is one else kept
            for one, kept in ((Part.FEATURES, rows), (Part.LABELS, labels), (Part.EDGES, arcs))
        )
    for name, round in files.rounds.items():
        values = estimates.get(name)
        if round.part is Part.FEATURES:
            rows = values
        elif round.part is Part.LABELS:
            labels = values
        elif isinstance(values, Contacts):
            pairs = np.stack([values.owners, values.targets])
            arcs = np.unique(pairs[:, pairs[0] != pairs[1]], axis=1)
    attributes = rows.shape[1]
    for name, round in files.rounds.items():
        if round.part is Part.EDGES and not isinstance(estimates.get(name), Contacts):
            names = [f"f{number}" for number in range(attributes)] + [f"h{n}" for n in range(estimates[name].shape[1])]
            rows = np.hstack(
                [rows, estimates[name]]
            )  # noisy counts of the contacts' released labels are attributes, too
    facts = PublicFacts(nodes, attributes, classes)
    releases = tuple(round.release(int(collector.reported(name).sum())) for name, round in files.rounds.items())
    certificate = Certificate.of(
        Plan(files.promise, facts, releases),
        releases,
        method="collect",
        mode="sound",
        parameters={},
        holders=files.holders,
        public=(WHO_REPORTS, *_edge_statements(files)),
        assumptions=(ONCE,),
        seed=files.seed,
    )
    arrays = _arrays(files, rows, labels, arcs, classes, names)
    return Collected(arrays, labels, arcs, certificate, files.ids, collector.resent)


def _arrays(
    files: Files, rows: np.ndarray, labels: np.ndarray, arcs: np.ndarray, classes: int, names: list[str]
) -> dict[str, np.ndarray]:
    """The graph file: ids, and the channel P(report | class) of randomised labels, travel with it."""
    nodes = len(files.ids)
    directed = not np.array_equal(arcs, np.unique(arcs[::-1], axis=1))
    arrays = {"edge_index": undirected_pairs(arcs, nodes)} | feature_arrays(sp.csr_matrix(rows)) | label_arrays(labels)
    if directed:
        arrays["directed_edge_index"] = unique_arcs(arcs, nodes)
    arrays |= {"directed": np.array(directed), "num_classes": np.array(classes), "notes": np.array([COLLECTED])}
    arrays |= {"ids": np.array(files.ids), "collected": np.array(True)}
    for round in files.rounds.values():
        if isinstance(round.randomizer, LabelResponse):
            arrays["label_channel"] = round.randomizer.channel
    return arrays | ({"feature_names": np.array(names)} if names else {})


def _edge_statements(files: Files) -> tuple[str, ...]:
    edges = [round.randomizer for round in files.rounds.values() if round.part is Part.EDGES]
    if any(isinstance(randomizer, BucketResponse) for randomizer in edges):
        return (DEGREES, OWNERS)
    return (DEGREES,) if any(randomizer.tells_lengths for randomizer in edges) else ()
