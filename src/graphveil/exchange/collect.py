"""Reports in, noisy data out: the files of several holders become one graph file and one certificate."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from graphveil.errors import InputError
from graphveil.exchange.broadcast import Broadcast
from graphveil.exchange.collector import Collector
from graphveil.exchange.files import COLLECTED, Files
from graphveil.exchange.randomizers import BucketResponse, Contacts, LabelResponse
from graphveil.exchange.report import Refusal
from graphveil.graph.formats.npz import feature_arrays, label_arrays, undirected_pairs, unique_arcs
from graphveil.privacy.certificate import Certificate
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import DEGREES, OWNERS, Part
from graphveil.privacy.plan import Plan

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
    accepted: int
    refused: tuple[Refusal, ...]

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
    found: dict[Part, Any] = {part: files.in_the_clear(part) for part in files.promise.raw}
    counts = []
    for name, values in collector.estimate().items():
        part = files.rounds[name].part
        if isinstance(values, Contacts):
            found[part] = np.unique(values.arcs[::-1], axis=1)
        elif part is Part.EDGES:
            counts.append(values)
        else:
            found[part] = values
    rows = found.get(Part.FEATURES, np.zeros((nodes, 0)))
    labels, arcs = found.get(Part.LABELS, np.full(nodes, -1)), found.get(Part.EDGES, np.zeros((2, 0), dtype=np.int64))
    attributes, names = rows.shape[1], []
    if counts:  # noisy counts of the contacts' released labels are attributes, too
        rows = np.hstack([rows, *counts])
        names = [f"f{n}" for n in range(attributes)] + [f"h{n}" for n in range(rows.shape[1] - attributes)]
    facts = PublicFacts(nodes, attributes, classes)
    releases = tuple(round.release(int(collector.reported(name).sum())) for name, round in files.rounds.items())
    randomizers = [round.randomizer for round in files.rounds.values()]
    owned = any(isinstance(randomizer, BucketResponse) for randomizer in randomizers)
    lengths = owned or any(randomizer.tells_lengths for randomizer in randomizers)
    certificate = Certificate.of(
        Plan(files.promise, facts, releases),
        releases,
        method="collect",
        mode="sound",
        parameters={},
        holders=files.holders,
        public=(WHO_REPORTS, *([DEGREES] if lengths else []), *([OWNERS] if owned else [])),
        assumptions=files.remarks,
    )
    directed = not np.array_equal(arcs, np.unique(arcs[::-1], axis=1))
    arrays = {"edge_index": undirected_pairs(arcs, nodes)} | feature_arrays(sp.csr_matrix(rows)) | label_arrays(labels)
    if directed:
        arrays["directed_edge_index"] = unique_arcs(arcs, nodes)
    arrays |= {"directed": np.array(directed), "num_classes": np.array(classes), "notes": np.array([COLLECTED])}
    arrays |= {"ids": np.array(files.ids), "collected": np.array(True)}
    for randomizer in randomizers:
        if isinstance(randomizer, LabelResponse):
            arrays["label_channel"] = randomizer.channel  # P(report | class) travels with the labels
    arrays |= {"feature_names": np.array(names)} if names else {}
    taken = collector.resent, files.accepted, tuple(files.refused)
    return Collected(arrays, labels, arcs, certificate, files.ids, *taken)
