"""DPDGC as published: one noise multiplier z for all parts, and what is wrong with the bounds it goes by.

Claimed: codes cost one replaced row at noise 2z, whatever the group (their noise is 2z sqrt(group)); table c, c sqrt k or
c sqrt(2D); classifier one row at noise z ("Opacus default"); z by the paper's accounting, Renyi bounds for batches of a fixed
size (``privacy/accounting/paper.py``). Where the truth is known (edge and k-neighbor level) it is declared, so the certificate
prints it beside the claim; at node level the lists cut by the code leave no bound.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphveil.methods.common.private_training import LEMMA, paper_batches
from graphveil.methods.dpdgc.bounds import group_of
from graphveil.privacy.accounting.paper import claimed_noise
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import DpGradient, Exact, Gaussian
from graphveil.privacy.noise import summation_error
from graphveil.privacy.plan import Gap, Plan, Release
from graphveil.privacy.promise import Adjacency, Level, Promise, Relation

if TYPE_CHECKING:
    from graphveil.methods.dpdgc import Dpdgc

AS_STATED = "as the paper states it"
DIRECTED = Gap(
    "A1",
    "the noise covers one directed entry; a friendship is stored in both lists, so two rows of the table and of every "
    "gradient sum move",
    check="promise",
)
CAP = Gap(
    "D3",
    "lists are cut to D entries by the code: when a person comes or goes, their contacts' lists take in or drop others, so "
    "far more than the counted rows move (epsilon 4.38 becomes about 17.6 at n = 2000, D = 100)",
    check="sensitivity",
    release="table",
)
ROWS = Gap(
    "D4",
    "replacing a person touches the rows of old and new contacts and the own one, 2D + 1 of them; D + 1 are counted",
    check="promise",
)
ROOT = Gap(
    "D5",
    "'group size' is not defined in the paper; the authors' code multiplies the noise by 2 sqrt(group), but a sum moves in "
    "proportion to the group",
    check="promise",
)
TWO_CLIPS = Gap(
    "D6",
    "replacing a person exchanges one clipped gradient for another and moves the classifier's sum by two clipping norms; the "
    "noise covers one",
    check="sensitivity",
    release="classifier",
)
GAPS = (DIRECTED, CAP, ROWS, ROOT, TWO_CLIPS)


def published_plan(method: Dpdgc, facts: PublicFacts, promise: Promise) -> Plan:
    """The paper's noise for its claim, with the truth declared where it is known."""
    stages = 1 if promise.level is Level.EDGE else 2
    batches = paper_batches(facts, method.paper_epochs, method.batch_size)
    scale = claimed_noise(replace(promise, relation=Relation.REPLACE), stages=stages, gaussians=1, **batches)
    true = Plan(promise, facts, _releases(method, facts, promise, scale), claim=promise.epsilon)
    known = true.epsilon() if promise.private else None
    if promise.level is Level.NODE:
        stated = tuple(_as_stated(method, release, scale) for release in true.steps)
        gaps = (CAP, ROWS, ROOT, TWO_CLIPS)
        return replace(true, steps=stated, gaps=gaps, provable=False, corrected=known)
    if known is not None and known > promise.epsilon:
        return replace(true, gaps=(DIRECTED,) if promise.level is Level.EDGE else (ROOT,))
    return true


def _releases(method: Dpdgc, facts: PublicFacts, promise: Promise, scale: float) -> tuple[Release, ...]:
    """The three releases with noise multiplier ``scale``, declared at what they really move."""
    from graphveil.methods.dpdgc import payers

    shape, kinds, clip = method.shape(facts, promise), payers(facts, promise), method.paper_clip
    size, records = (facts.nodes + 1) * shape.width, facts.count("train")
    steps = max(1, method.paper_epochs * records // method.batch_size)
    open_records = promise.level is Level.EDGE
    if not promise.private:
        codes = Release("codes", Exact(steps), dict.fromkeys(kinds, clip), AS_STATED)
        table = Release("table", Exact(), dict.fromkeys(kinds, 1.0), AS_STATED, not open_records)
        rest = () if open_records else (Release("classifier", Exact(steps), {"train": clip}, LEMMA),)
        return codes, table, *rest

    table_bound = method.norm * _claimed_table(method, promise)
    noise = Gaussian(scale * table_bound, facts.nodes * shape.width)
    batches: dict[str, Any] = {
        "rate": min(1.0, method.batch_size / records),
        "slack": 2 * summation_error(records, clip),
    }
    replaced = promise.relation is Relation.REPLACE
    sigma = 2 * math.sqrt(_claimed_group(method, promise)) * clip * scale
    descent = DpGradient(sigma, clip, steps, size, group=_true_group(method, promise), **batches)
    table_bound *= math.sqrt(2) if promise.adjacency is Adjacency.EDGE_UNDIRECTED else 1.0
    last = DpGradient(scale * clip, clip, steps, shape.classifier_size, replaces=replaced, **batches)
    bound = dict.fromkeys(kinds, table_bound * (1 + 1e-9))
    releases = (
        Release("codes", descent, dict.fromkeys(kinds, clip), AS_STATED),
        Release("table", noise, bound, AS_STATED, not open_records),
        Release("classifier", last, {"train": clip}, LEMMA),
    )
    return releases[:2] if open_records else releases


def _as_stated(method: Dpdgc, release: Release, scale: float) -> Release:
    """A release with the sensitivity that the paper's noise is made for, so that the suite can measure against it."""
    if not isinstance(release.mechanism, DpGradient):
        return release
    plain = replace(release.mechanism, group=None, replaces=False)
    return replace(release, mechanism=plain, sensitivity=dict.fromkeys(release.sensitivity, plain.sigma / scale))


def _true_group(method: Dpdgc, promise: Promise) -> tuple[int, int]:
    if promise.level is Level.NODE:
        return group_of(replace(promise, adjacency=Adjacency.RECORD), method.cap)
    return group_of(promise, method.cap)


def _claimed_group(method: Dpdgc, promise: Promise) -> int:
    if promise.level is Level.EDGE:
        return 1
    return (promise.k or method.cap) + 1


def _claimed_table(method: Dpdgc, promise: Promise) -> float:
    if promise.level is Level.EDGE:
        return 1.0
    if promise.k is not None:
        return math.sqrt(promise.k)
    return math.sqrt(2 * method.cap)
