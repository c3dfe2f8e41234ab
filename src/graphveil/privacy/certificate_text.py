"""A certificate in words: the layout for a curator's releases and the one for rounds of reports."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

from graphveil.notebook import LEFT
from graphveil.privacy.facts import EDGE
from graphveil.privacy.local import LIST_ENTRY, NOT_LOCAL, VERTEX, Local, Part
from graphveil.privacy.promise import IN_PLAIN_WORDS, Adjacency, Promise, Relation

if TYPE_CHECKING:
    from graphveil.privacy.certificate import Certificate
    from graphveil.privacy.facts import PublicFacts
    from graphveil.privacy.plan import Release

LOUD = ("Gap", "BUT", "WARNING", "!!!!")
CHOSEN = "this counts on epsilons that were not chosen by looking at earlier results; a budget book holds without that"
SEEDED = "seeded: not for release (anyone who knows the seed can subtract the noise)"


def lines(certificate: Certificate) -> list[str]:
    """The whole certificate, line by line."""
    promise, title = certificate.promise, f"PRIVACY CERTIFICATE   {certificate.method} ({certificate.mode})"
    if promise.adjacency is Adjacency.NONE:
        return [title, "  Protected: nothing; this run is not private."]
    verdict, local = verdict_words(certificate), isinstance(promise, Local)
    head = _local(certificate, promise, verdict) if isinstance(promise, Local) else _central(certificate, verdict)
    found = [title + head[0], *head[1:]]
    if certificate.mode == "published":
        claimed = shown(certificate.epsilon_claimed, local)
        found.append(f"  Claimed     epsilon {claimed} by the paper's own accounting")
    found += [f"  Gap {gap.code:<7} {gap.text}" for gap in certificate.gaps]
    found += [f"              {name}: {shown(value, False)}" for name, value in certificate.implied.items()]
    found += [f"  {'Together' if first else '':<10}  {line}" for first, line in _marked(following_words(certificate))]
    found += _releases(certificate, local)
    found += [f"              {line}" for line in certificate.public]
    found += [f"  Terms       {line}" for line in certificate.assumptions]
    return [*found, f"  WARNING     {SEEDED}"] if certificate.seeded else found


def html(certificate: Certificate) -> str:
    """The same lines as a small table, for notebooks; what must not be missed is bold and red."""
    title, *rest = lines(certificate)
    cells = []
    for line in rest:
        name, text = (
            (line[2:14].strip(), line[14:]) if certificate.promise.adjacency is not Adjacency.NONE else ("", line)
        )
        loud = name.split(" ")[0] in LOUD or "DOES NOT HOLD" in text
        style = ' style="color:#b3261e;font-weight:600"' if loud else ""
        cells.append(f"<tr><th{LEFT}>{escape(name)}</th><td{LEFT}><span{style}>{escape(text)}</span></td></tr>")
    return f"<div><strong>{escape(title)}</strong><table>{''.join(cells)}</table></div>"


def promise_words(promise: Promise) -> str:
    """What was asked for, in the words of the library."""
    if isinstance(promise, Local):
        return ", ".join(f"{part} {promise.asked(part)}" for part in Part)
    extra = (
        f", k = {promise.k}" if promise.k is not None else f", D = {promise.max_degree}" if promise.max_degree else ""
    )
    named = f"level {promise.level}, adjacency {promise.adjacency}, relation {promise.relation}{extra}"
    return f"{named}; epsilon {promise.epsilon:g}, delta {promise.delta:g}"


def following_words(certificate: Certificate) -> list[str]:
    """What this run and those before it cost people who were in all of them; nothing where it follows none."""
    earlier = certificate.earlier
    if not earlier:
        return []
    runs = "this run and the one before" if len(earlier) == 1 else f"this run and the {len(earlier)} before"
    found = [
        f"epsilon {shown(certificate.together, True)} at delta {certificate.delta:g} for people who were in {runs}; "
        "their noise is composed, epsilons are not added"
    ]
    for run in earlier:
        found.append(f"before: {run.method}, {promise_words(run.promise)}; certificate {run.certificate[:12]}")
        found += [f"BUT ONLY, there, {line}" for line in covered_only(run.weaker)]
        found += [f"BUT that run was {SEEDED}"] if run.seeded else []
    if earlier[-1].taken:
        found.append("the numbers that the one before released are averaged in: they are public, and cost nothing more")
    return [*found, CHOSEN]


def _marked(found: list[str]) -> list[tuple[bool, str]]:
    return [(not number, line) for number, line in enumerate(found)]


def verdict_words(certificate: Certificate) -> str:
    return f"the promise {'HOLDS' if certificate.holds else 'DOES NOT HOLD'}"


def shown(value: float | None, loud: bool) -> str:
    if value is None:
        return "NO FINITE VALUE" if loud else "no finite value"
    return f"{value:.6g}"


def covered_only(weaker: Mapping[str, Adjacency]) -> list[str]:
    """In plain words, which kinds of records are covered under another adjacency only."""
    found = []
    for adjacency in sorted(set(weaker.values())):
        kinds = " and ".join(kind for kind, known in weaker.items() if known == adjacency)
        found.append(f"for {kinds} nodes: {IN_PLAIN_WORDS[adjacency]}")
    return found


def _central(certificate: Certificate, verdict: str) -> list[str]:
    """What follows the title, and the lines below it."""
    promise = certificate.promise
    found = ["", f"  Protected   {IN_PLAIN_WORDS[promise.adjacency]}"]
    found += [f"  BUT ONLY    {line}" for line in covered_only(certificate.weaker)]
    found += [
        f"  Promise     {promise_words(promise)}",
        f"  Proved      epsilon {shown(certificate.epsilon, False)} at delta {promise.delta:g}; {verdict}",
    ]
    if len(set(certificate.costs.values())) > 1:
        paid = ", ".join(f"{kind} {shown(cost, False)}" for kind, cost in certificate.costs.items())
        found.append(f"  Costs       epsilon by kind of record: {paid}")
    return found


def _releases(certificate: Certificate, local: bool) -> list[str]:
    facts, count = certificate.facts, len(certificate.releases)
    head = f"Rounds      {count}, one memoised report per vertex in each:"
    if not local:
        head = f"Releases    {count} noisy releases read private data:"
    found = [f"  {head}", *(f"              {release_words(release, local)}" for release in certificate.releases)]
    return [*found, f"  Public      {public_sizes(facts, local)}"]


def public_sizes(facts: PublicFacts, local: bool) -> str:
    """The sizes that are declared public; a central plan also counts on who is of which kind."""
    sizes = f"{facts.nodes} slots, {facts.features} feature columns, {facts.classes} classes"
    slots = ", ".join(f"{kind} ({count})" for kind, count in facts.kinds.items() if count)
    return sizes if local else f"{sizes}, which slots are {slots}"


def release_words(release: Release, local: bool) -> str:
    if local:
        heard = f", after hearing {release.hears}" if release.hears else ""
        return f"{release.name}: {release.mechanism.words()}, {release.reporters} vertices{heard}"
    reads = ", ".join(f"{kind} {bound:.4g}" for kind, bound in release.sensitivity.items() if bound)
    own = "; own row excluded" if release.own_row_excluded else ""
    return f"{release.name}: {release.mechanism.words()}; sensitivity {reads or 'none'}{own}"


def _local(certificate: Certificate, promise: Local, verdict: str) -> list[str]:
    called = "which the paper calls local and which is not"
    trust = called if NOT_LOCAL in certificate.assumptions else "local model: no curator is trusted"
    costs = certificate.costs
    edges = [release.mechanism for release in certificate.releases if release.part == Part.EDGES]
    changes = " / ".join(dict.fromkeys(mechanism.edge_change for mechanism in edges))
    rewired = f" ({changes})" if changes else ""
    found = [f", {trust}", *(f"  !!!!        {warning}" for warning in certificate.warnings)]
    found += [
        f"  Promise     {promise_words(promise)}",
        f"  Proved      epsilon {shown(certificate.epsilon, True)} for {promise.covers}, delta {certificate.delta:g}; "
        f"{verdict}",
        f"  Costs       one vertex (features and label): {shown(costs[VERTEX], True)}",
        f"              one entry of a contact list{_changed(promise)}: {shown(costs[LIST_ENTRY], True)}",
        f"              one undirected edge, in all lists{rewired}: {shown(costs[EDGE], True)}",
    ]
    for holder, cost in certificate.per_holder.items():
        whose = f"all {certificate.holders[holder]} vertices of holder {holder!r}"
        found.append(f"              features and labels of {whose}: {shown(cost, True)}")
    return found


def _changed(promise: Local) -> str:
    """What happens to the entry, where that is not an exchange."""
    return f" ({promise.entry_change}; exchanged: twice that)" if promise.relation is Relation.ZERO_OUT else ""
