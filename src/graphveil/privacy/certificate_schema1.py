"""Certificates of schema 1, central and local, as schema 2 has them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from graphveil.errors import InputError
from graphveil.privacy.facts import EDGE
from graphveil.privacy.local import LIST_ENTRY, VERTEX, Openness, Part, once

CENTRAL, LOCAL = "graphveil/certificate/1", "graphveil/local-certificate/1"
PAID = "epsilon paid by {} records"
KEYS = {"assumptions", "delta", "digest", "epsilon", "epsilon_claimed", "facts", "gaps", "holds", "method", "mode"}
KEYS |= {"parameters", "promise", "public", "releases", "schema", "seed"}
KEYS_OF = {
    CENTRAL: KEYS | {"implied", "weaker"},
    LOCAL: KEYS | {"covers", "per_edge", "per_holder", "per_list_entry", "per_vertex", "raw", "warnings"},
}


def upgraded(body: Any, schema: object) -> dict[str, Any]:
    """The same certificate with the keys of schema 2; an error if it is neither."""
    if schema not in (CENTRAL, LOCAL):
        raise InputError(f"this certificate has schema {schema!r}; this version reads graphveil/certificate/1 and 2")
    return _central(body) if schema == CENTRAL else _local(body)


def _central(body: Mapping[str, Any]) -> dict[str, Any]:
    paid = {kind: body["implied"].get(PAID.format(kind)) for kind in body["facts"]["kinds"]}
    implied = {key: value for key, value in body["implied"].items() if not key.startswith("epsilon paid by ")}
    return {**body, "implied": implied, "costs": {kind: cost for kind, cost in paid.items() if cost is not None}}


def _local(body: Mapping[str, Any]) -> dict[str, Any]:
    costs = {VERTEX: body["per_vertex"], LIST_ENTRY: body["per_list_entry"], EDGE: body["per_edge"]}
    releases = [upgraded_entry(entry) for entry in body["releases"]]
    new = {"costs": costs, "releases": releases, "holders": body["per_holder"], "implied": {}, "weaker": {}}
    return {**body, **new}


def unlike(body: Mapping[str, Any], expected: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What schema 1 says in other words than schema 2 (``expected``): by key, as recorded and as it follows."""
    named = {"covers": "covers", "warnings": "warnings", "per_holder": "holders"} if body["schema"] == LOCAL else {}
    told = {old: (body.get(old), expected[new]) for old, new in named.items()}
    if named:
        told["raw"] = body.get("raw"), [part for part in Part if expected["promise"][part] == Openness.RAW]
    return told


def upgraded_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A line of a ledger: central ones have not changed."""
    if "unit" not in entry:
        return dict(entry)
    one: float | None = entry["epsilon"]

    def units(cost: float | None) -> float | None:
        return 1.0 if not one else None if cost is None else cost / one

    if entry["unit"] == "vertex":
        sensitivity: dict[str, float | None] = {VERTEX: 1.0}
    else:
        sensitivity = {LIST_ENTRY: units(entry["swap_epsilon"]), EDGE: units(entry["edge_epsilon"])}
    return {
        "name": entry["name"],
        "mechanism": {"kind": re.sub("(?<!^)(?=[A-Z])", "-", entry["mechanism"]).lower(), **entry["parameters"]},
        "sensitivity": {kind: n if n is None or math.isfinite(n) else None for kind, n in sensitivity.items()},
        "own_row_excluded": False,
        "lemma": once(entry["part"]),
        "part": entry["part"],
        "hears": entry["hears"],
        "reporters": entry["vertices"],
    }
