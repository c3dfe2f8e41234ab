"""Every registered method, every mode, every level: one audit each."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from graphveil.audit.central.conformance import awkward_graph, example_promise
from graphveil.audit.result import Audit
from graphveil.audit.settings import audit_settings
from graphveil.errors import InputError
from graphveil.methods.base import PrivateMethod
from graphveil.methods.registry import MODES, method_class, method_names, modes_of
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import LOCAL, Local
from graphveil.privacy.promise import ADJACENCIES, Level, Relation
from graphveil.progress import Progress, silent

LOCAL_PROMISES = (
    ("withheld", 1.0, "raw"),
    (1.0, 1.0, "raw"),
    ("withheld", 1.0, 1.0),
    (1.0, 1.0, 1.0),
    ("raw", "raw", 1.0),
)


def audit_everything(
    epsilon: float = 4.0, *, runs: int = 2, seed: int = 0, modes: tuple[str, ...] = MODES, progress: Progress = silent
) -> list[Audit]:
    """One audit for every (method, mode, level); the adjacency is the one that the command line takes by default."""
    from graphveil.audit import audit_method

    chosen = [method_class(name, mode)() for name in method_names() for mode in modes_of(name) if mode in modes]
    jobs = [(method, promise) for method in chosen for promise in promises_of(method, epsilon, seed)]
    found: list[Audit] = []
    for number, (method, promise) in enumerate(jobs):
        progress(f"audit {len(jobs)} promises", number, len(jobs))
        found.append(audit_method(method.clone(), promise, runs=runs, seed=seed))
    progress(f"audit {len(jobs)} promises", len(jobs), len(jobs))
    return found


def promises_of(method: PrivateMethod, epsilon: float, seed: int = 0) -> list[Any]:
    """One promise per level that the method supports: undirected edges, zero-out, the first adjacency."""
    if LOCAL in method.supports:
        accepted: list[Any] = []
        for promise in (Local(*parts) for parts in LOCAL_PROMISES):
            with suppress(InputError):  # private edges count only if a round reports them
                method.clone().plan(PublicFacts(33, 6, 3), promise)
                accepted.append(promise)
        return accepted
    small = method.clone().set_params(**audit_settings(method))
    data, _ = awkward_graph(small, seed)
    widest = int(data.edge_index[0].bincount().max())
    found = []
    for level, adjacencies in ADJACENCIES.items():
        known = [guarantee for guarantee in method.supports if guarantee.level is level is not Level.NONE]
        if known:
            first = min(known, key=lambda g: (adjacencies.index(g.adjacency), g.relation is not Relation.ZERO_OUT))
            found.append(example_promise(first, widest, epsilon))
    return found
