"""What sound DPAR plans to release: a mean or a table, private rows, and gradients.

A person can move all M rows, but rows are clipped as a whole. gm: one Gaussian of Frobenius sensitivity sqrt(2M) C1, since
non-negative rows of norm C1 are at most sqrt 2 C1 apart. em: rho = M K eps^2/2. Given the rows, a person owns one example and
visits at most s others, so a gradient sum changes in s + 1 examples of which s stay (Lemma G; in full batches 2 s + 1 clips);
with identity rows s = 0. Shares are parts of mu^2.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from graphveil.methods.common.group_training import group_release
from graphveil.methods.common.own_predictor import GROWTH, mean_release
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import DpGradient, Exact, Gaussian, GumbelTop
from graphveil.privacy.noise import summation_error
from graphveil.privacy.plan import Release
from graphveil.privacy.promise import Promise, Relation

if TYPE_CHECKING:
    from graphveil.methods.dpar import Dpar


def sound_releases(method: Dpar, facts: PublicFacts, promise: Promise, mu: float) -> tuple[Release, ...]:
    """All releases for a total Gaussian budget of mu, divided by ``centring``, ``pagerank_share`` and ``table_share``."""
    parts = {"mean": method.centring if method.linear and facts.features else 0.0}
    parts["rows"] = method.pagerank_share if method.rows == "private" else 0.0
    parts["table"] = method.table_share if method.aggregated else 0.0
    parts["gradient"] = 1 - sum(parts.values())
    share = {name: mu * math.sqrt(part) for name, part in parts.items()}
    kinds = ("train", "calibration") if method.inductive else None
    mean = (mean_release(facts, promise, share["mean"], kinds),) if parts["mean"] else ()
    rows = _row_releases(method, facts, promise, share["rows"]) if parts["rows"] else ()
    table = (_table_release(method, facts, promise, share["table"]),) if method.aggregated else ()
    return *mean, *rows, *table, _gradient_release(method, facts, promise, share["gradient"])


def _row_releases(method: Dpar, facts: PublicFacts, promise: Promise, mu: float) -> tuple[Release, ...]:
    m, everybody = method.source_count(facts), [kind for kind, n in facts.kinds.items() if n]
    if method.select == "gm":
        bound = math.sqrt(2 * m) * method.row_clip
        lemma = "non-negative rows of norm C1 are at most sqrt 2 C1 apart, whatever happens to the graph; M of them"
        noise: Any = Gaussian.for_mu(bound, mu, m * method.candidates(facts)) if promise.private else Exact()
        return (Release("pagerank", noise, dict.fromkeys(everybody, bound), lemma),)
    parts = 2 if method.select == "em1" else 1
    each = mu / math.sqrt(parts)
    lemma = "entries lie in [0, C2]; M K choices with range 2 C2/scale each"
    k = method.picks_of(facts)
    scale = method.entry_clip * math.sqrt(m * k) / each if promise.private else 0.0
    picking = GumbelTop(scale, k, m, method.candidates(facts)) if promise.private else Exact()
    picks = Release("pagerank", picking, dict.fromkeys(everybody, method.entry_clip), lemma)
    if method.select == "em0":
        return (picks,)
    bound = math.sqrt(m * k) * method.entry_clip
    noise = Gaussian.for_mu(bound, each, m * k) if promise.private else Exact()
    return picks, Release("weights", noise, dict.fromkeys(everybody, bound), "M K entries in [0, C2]")


def _table_release(method: Dpar, facts: PublicFacts, promise: Promise, mu: float) -> Release:
    bound = method.column_norm * (2 if promise.relation is Relation.REPLACE else 1)
    size = method.source_count(facts) * method.shape(facts).inputs
    noise: Any = Gaussian.for_mu(bound * (1 + 1e-9), mu, size) if promise.private else Exact()
    everybody = dict.fromkeys((kind for kind, n in facts.kinds.items() if n), bound * (1 + 1e-9))
    return Release("table", noise, everybody, "a unit row travels with a column of Pi of norm at most tau")


def _gradient_release(method: Dpar, facts: PublicFacts, promise: Promise, mu: float) -> Release:
    m, clip, replaced = method.source_count(facts), method.clipping, promise.relation is Relation.REPLACE
    if method.aggregated:
        lemma = "given the table, a source owns one clipped row"
        if not promise.private:
            return Release("gradient", Exact(method.steps), {"train": clip}, lemma)
        slack = 2 * summation_error(m, clip)
        descent = DpGradient.for_mu(clip, mu, method.steps, method.shape(facts).size, replaced, slack)
        return Release("gradient", descent, {"train": clip}, lemma)
    visits, examples = 0 if method.rows == "identity" else method.column_rows, max(1, facts.count("train"))
    # A number of the gradient is a sum over at most this many entries of Pi, of which ``examples`` have the norm of a clip; so
    # examples (entries + 4) <= entries (entries + 2), the roundings of both products and of the centre included.
    entries = examples + m * method.picks + visits
    return group_release(
        "gradient",
        promise,
        dict.fromkeys((kind for kind, n in facts.kinds.items() if n), clip),
        (facts.features + 1) * facts.classes,
        group=(visits + 1, visits + 1 if replaced else visits),
        records=entries,
        steps=method.steps,
        rate=min(1.0, (method.batch_size or examples) / examples),
        clip=clip,
        mu=mu,
        lemma="Lemma G: a person owns one example and visits at most s others",
        growth=GROWTH,
    )
