"""The audit of a local method: every round's exact ratio on what it really hears, and what is sent in the clear.

A method runs once on a small graph while the audit listens to its rounds: which broadcast each one hears. Then each randomizer
is compared on records that differ in one unit (``exact_ratios.py``), and the run is repeated on another graph with the same
reports, which shows whatever the collector reads besides them (``local_replay.py``). Rounds on the same vertex add up, as
the certificate says; a raw part, or a report that one record can send and the other cannot, makes the observed epsilon infinite.
The sum is of pure epsilons; the sampled bound of a Gaussian round (``NeighbourMean``) holds at that round's delta, so a sum
with it in is a yardstick beside the promise and not itself a bound.
Tests: ``tests/audit/test_local_audit.py``.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from graphveil.audit.central.neighbours import worst_case_graph
from graphveil.audit.local.clients import on_neighbouring_records, reports_of_a_client
from graphveil.audit.local.exact_ratios import CONTACTS, DrawnBy, audit_randomizer, edge_domain
from graphveil.audit.local.replay import Heard, listen, replay
from graphveil.audit.result import ROUNDING, UNEXPLAINED, Audit, Evidence, Failure, Share
from graphveil.audit.settings import audit_settings
from graphveil.audit.witnesses import witnesses
from graphveil.errors import InputError
from graphveil.exchange.in_process import InProcess
from graphveil.exchange.randomizers import Contacts, NeighbourMean
from graphveil.exchange.randomizers.replacement import ReadsEverybody
from graphveil.exchange.round import Round
from graphveil.methods.local_method import LocalMethod
from graphveil.privacy.local import Local, Part
from graphveil.privacy.noise import Noise
from graphveil.privacy.plan import Gap
from graphveil.progress import Progress, silent
from graphveil.statistics.lower_bounds import CONFIDENCE, epsilon_lower_bound

CHECKS = (
    "each round's largest log-ratio over records that differ in one unit is at most its declared epsilon",
    "what clients send is drawn with the stated probabilities",
    "if one record changes, the same people report, and with equal coins nobody else reports anything else",
    "the rounds of each part cost no more than the promise gives that part",
    "the rounds add up to no more than the promise, and what is sent in the clear is said so",
    "a client that is asked twice repeats its report",
    "with equal reports and raw parts, broadcasts, scores and certificate are equal on another graph",
)


def audit_local(
    method: Any,
    promise: Local,
    data: Any = None,
    *,
    name: str = "",
    runs: int = 1,
    seed: int = 0,
    small: bool = True,
    progress: Progress | None = None,
) -> Audit:
    """Audit a local ``method`` under ``promise``; ``runs`` is accepted for symmetry: exact ratios need one run."""
    started, tell = time.perf_counter(), progress or silent
    if not isinstance(method, LocalMethod):
        raise InputError(f"{method.name} trusts a curator and has no level local; use --level node or edge")
    settings = audit_settings(method) if small else {}
    method = method.clone().set_params(**settings)
    data = local_graph(seed) if data is None else data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        heard = listen(method, data, promise, seed)
        certificate, broadcasts = heard.model.certificate, heard.answers.broadcasts
        noise, evidence, failures, shares = Noise(seed + 17), [], [], []
        rounds = list(heard.server.rounds.values())
        for number, round in enumerate(rounds):
            tell("rounds", number, len(rounds))
            ratio, bound = _round(round, broadcasts.get(round.name), certificate.facts, heard.clients, noise)
            evidence.append(ratio)
            stated = getattr(round.randomizer, "claim", round.randomizer.cost)
            shares.append(Share(round.name, ratio.epsilon, stated))
            failures += bound
        tell("rounds", len(rounds), len(rounds))
        failures += _beyond_their_part(promise, rounds, shares)
        failures += _memory(heard)
        graph = method.validated(data, "raise")
        failures += on_neighbouring_records(method, graph, heard.server.plan, broadcasts, seed)
        failures += replay(method, data, promise, seed, heard)
    # raw parts have no epsilon; those that the promise does not count are public by declaration
    clear = "{} are sent in the clear: any two records differ visibly"
    evidence += [Evidence(f"raw {p}", math.inf, clear.format(p)) for p in promise.raw if p in promise.counted]
    claimed, known = heard.server.plan.claim, tuple(gap.code for gap in certificate.gaps)
    added = "exact ratios of one vertex's reports, added up"
    gaussian = ", ".join(round.name for round in rounds if isinstance(round.randomizer, NeighbourMean))
    added += f"; with {gaussian} at its delta a yardstick, not a bound" if gaussian else ""
    confidence = min((entry.confidence for entry in evidence), default=1.0)
    total = Evidence("all rounds", sum(entry.epsilon for entry in evidence), added, confidence)
    found = Audit(
        method=method.name,
        mode=method.mode,
        promise=promise.to_json(),
        data=f"{name or 'worst-case graph (generated)'}, {certificate.facts.nodes} nodes",
        settings=settings,
        claimed=promise.epsilon if claimed is None else claimed,
        provable=math.inf if certificate.epsilon is None else certificate.epsilon,
        shares=tuple(shares),
        failures=tuple(failures),
        witnesses=witnesses(method.name, known),
        evidence=(*evidence, total) if len(evidence) != 1 else tuple(evidence),
        checks=CHECKS,
        known_gaps=known,
        notes=tuple(certificate.warnings),
        seed=seed,
        seconds=time.perf_counter() - started,
    )
    return replace(found, codes=_codes(found, certificate.gaps))


def _codes(found: Audit, gaps: tuple[Gap, ...]) -> tuple[str, ...]:
    """A violation has the codes of the plan, which declares what these options and this promise meet; a failure that none of them
    looks like is not explained by them."""
    if not found.violated:
        return ()
    strange = [f.check for f in found.failures if not any(gap.explains(f.check, f.release) for gap in gaps)]
    return tuple(sorted({*found.known_gaps, *(f"{UNEXPLAINED} {check}" for check in strange)}))


def local_graph(seed: int) -> Any:
    """The worst-case graph with attributes in the public range 0..1."""
    data, _ = worst_case_graph(seed)
    data.x = torch.sigmoid(2 * data.x)
    return data


def _round(
    round: Round, broadcast: Any, facts: Any, clients: InProcess, noise: Noise
) -> tuple[Evidence, list[Failure]]:
    """The exact ratio of one round, and the checks it failed."""
    randomizer: Any = round.randomizer
    name = f"round {round.name}"
    lists = clients.everybodys_lists
    if isinstance(randomizer, ReadsEverybody) and lists is not None:
        randomizer = replace(randomizer, lists=lists)
        leaked = _edges_of_others(randomizer, lists, broadcast)
        if leaked is not None:
            detail = "a report that is possible with one edge of the graph is impossible without it"
            return Evidence(name, math.inf, leaked), [Failure("exact ratio", round.name, detail)]
    if isinstance(randomizer, NeighbourMean):
        return _gaussian_round(randomizer, name, broadcast, noise), []
    sent: DrawnBy | None = None
    if not isinstance(randomizer, ReadsEverybody):
        sent = lambda records, draws: reports_of_a_client(round, records, draws, broadcast, noise)
    ratio = audit_randomizer(randomizer, round.part, facts.classes, facts.nodes, broadcast, noise, sent)
    declared, failures = randomizer.cost, []
    if ratio.epsilon > declared * (1 + ROUNDING) + ROUNDING:
        failures.append(Failure("exact ratio", round.name, f"log-ratio {ratio.epsilon:.4g}, declared {declared:.4g}"))
    if math.isinf(ratio.epsilon):
        failures.append(Failure("exact ratio", round.name, randomizer.unbounded or "the log-ratio is infinite"))
    if not ratio.honest:
        failures.append(Failure("law", round.name, "reports are not drawn with the stated probabilities"))
    reports = "all reports" if ratio.whole else "drawn and extreme reports, which are not all"
    infinite = f"; infinite for {ratio.infinite_pairs} of them" if ratio.infinite_pairs else ""
    how = f"{type(randomizer).__name__}, {ratio.unit}: {ratio.pairs} pairs at {reports}{infinite}"
    return Evidence(name, ratio.epsilon, how), failures


def _beyond_their_part(promise: Local, rounds: Sequence[Round], shares: Sequence[Share]) -> list[Failure]:
    """Parts whose rounds together have a larger ratio than the promise gives them; an infinite one has failed already."""
    failures = []
    for part in Part:
        asked = promise.share(part)
        spent = sum(share.measured for round, share in zip(rounds, shares, strict=True) if round.part is part)
        if math.isfinite(spent) and spent > asked * (1 + ROUNDING) + ROUNDING:
            failures.append(Failure("budget", part.value, f"its rounds cost {spent:.4g}, promised {asked:.4g}"))
    return failures


def _edges_of_others(randomizer: Any, lists: Contacts, broadcast: Any) -> str | None:
    """Whether some vertex's report shows an edge of the graph outright, for a mechanism that reads everybody's lists."""
    pairs = edge_domain(randomizer, lists)[:40]
    found = sum(bool(np.any(_support(a, broadcast) != _support(b, broadcast))) for a, b in pairs)
    name = type(randomizer).__name__
    return f"{name}: {found} of {len(pairs)} edges decide what some vertex can report" if found else None


def _support(randomizer: Any, broadcast: Any) -> np.ndarray:
    """Which slots each record can be reported as: a small dense table, for graphs of this size only."""
    support = randomizer.support(broadcast)
    table = np.eye(len(support), dtype=bool)
    table[support.owners, support.targets] = True
    return table


def _gaussian_round(randomizer: NeighbourMean, name: str, broadcast: Any, noise: Noise) -> Evidence:
    """Gaussian reports have no worst ratio: a sampled bound at their delta, where of two lists of three (of one, if there are no
    more slots) the contacts that differ are those farthest apart."""
    rows = np.asarray(broadcast, dtype=np.float64)
    distance = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    first, second = np.unravel_index(np.argmax(distance), distance.shape)
    stay = np.setdiff1d(np.arange(len(rows)), [first, second])[: CONTACTS - 1]
    a, b = (np.sort(np.append(stay, slot)) for slot in (first, second))
    draws = 20_000
    worlds = [randomizer.randomize(Contacts.of([record] * draws), broadcast, noise) for record in (a, b)]
    sigma, centre = randomizer.sigma(len(a)), randomizer.means(Contacts.of([a, b]), broadcast)
    change = centre[0] - centre[1]
    scores = [((reports - centre.mean(axis=0)) @ change) / sigma**2 for reports in worlds]
    bound = epsilon_lower_bound(scores[0], scores[1], randomizer.delta, CONFIDENCE)
    how = f"NeighbourMean, one contact exchanged in lists of {len(a)}: {draws} draws per world at delta {randomizer.delta:g}"
    return Evidence(name, bound.epsilon, how, CONFIDENCE)


def _memory(heard: Heard) -> list[Failure]:
    """Asked again, a client repeats its report."""
    client, failures = heard.clients.clients[0], []
    for name, broadcast in heard.answers.broadcasts.items():
        if not isinstance(heard.server.rounds[name].randomizer, ReadsEverybody):
            first, again = (client.report(name, broadcast).to_bytes() for _ in range(2))
            if first != again:
                failures.append(Failure("memory", name, "a second request was answered with fresh noise"))
    return failures
