"""GraphPrivatizer as published: the experimenter replaces neighbours with everybody's lists at hand, and LPGNN learns."""

from __future__ import annotations

import numpy as np

from graphveil.exchange.randomizers.base import Contacts
from graphveil.exchange.server import Server as Session
from graphveil.methods.common.backbone_training import NoisyLabels
from graphveil.methods.common.propagated_training import Candidate, PropagatedTraining, heard_rows
from graphveil.methods.local_method import ScoresPredictor
from graphveil.privacy.plan import Gap

GAPS = (
    Gap(
        "G1",
        "the proof needs reports that do not depend on the contact, but they are the contact and its own contacts: most swaps "
        "of one neighbour can be told apart with certainty, epsilon is infinite",
        check="exact ratio",
        release="edges",
    ),
    Gap(
        "G2",
        "where two contacts share a report, their normalisers differ: the log-ratio is eps + log of their quotient",
        check="exact ratio",
        release="edges",
    ),
    Gap(
        "G3",
        "a contact without a candidate above the threshold is sent as it is, with probability 1",
        check="exact ratio",
        release="edges",
    ),
    Gap(
        "G4",
        "contacts of contacts are read and reported by people who are not their endpoints: no client could do this, and "
        "other people's edges leak",
        check="exact ratio",
        release="edges",
    ),
    Gap(
        "G5",
        "both ends report an undirected edge: it would cost 2 eps even with a valid mechanism",
        check="exact ratio",
        release="edges",
    ),
)


def learn(training: PropagatedTraining, session: Session) -> ScoresPredictor:
    """Algorithm 1 on everybody's list, then LPGNN on the perturbed graph."""
    rows, labels = heard_rows(session), NoisyLabels.heard(session)
    arcs = reported_arcs(session.ask_everybody("edges", rows))
    inputs = training.propagated(rows, arcs, session.facts.nodes, session.coins)
    return training.fit(session, {"graph": Candidate(inputs, arcs)}, labels)


def reported_arcs(lists: Contacts) -> np.ndarray:
    """Everybody hears the contacts of their (noisy) list: arcs contact -> owner, once each, without loops."""
    pairs = np.stack([lists.targets, lists.owners])
    pairs = pairs[:, pairs[0] != pairs[1]]
    return np.unique(pairs, axis=1)
