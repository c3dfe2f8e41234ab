"""Reports in, noisy data out: the files of several holders become one graph and one certificate."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from graphveil.errors import InputError
from graphveil.graph.tables import TableFile
from graphveil.local.certificate import LocalCertificate
from graphveil.local.collector import Collector
from graphveil.local.promise import Local, Openness, Part
from graphveil.local.randomizers import LabelResponse
from graphveil.local.report import Report, Round
from graphveil.local.tables import MECHANISMS, SCHEMA, description
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.verify import read_json

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(frozen=True)
class Collected:
    """What a collection gives: noisy data, its certificate, and the ids behind the slots."""

    data: Data
    certificate: LocalCertificate
    ids: tuple[str, ...]
    resent: int


def collect(paths: list[Path]) -> Collected:
    """Merge reports files that were made under the same promise; a vertex in several files must have sent the same report."""
    import torch

    bodies = [_described(path) for path in paths]
    first = bodies[0]
    for path, body in zip(paths, bodies, strict=True):
        if any(body[key] != first[key] for key in ("promise", "rounds", "attributes", "classes")):
            raise InputError(f"{path} was made under another promise or with other randomizers than {paths[0]}")
    tables = [_read(path) for path in paths]
    ids = tuple(sorted({name for table in tables for name in table["id"]}))
    slot = {name: number for number, name in enumerate(ids)}
    promise = Local.from_json(first["promise"])
    rounds = _rounds(first)
    collector = Collector(rounds, len(ids))
    for path, body, table in zip(paths, bodies, tables, strict=True):
        slots = np.array([slot[name] for name in table["id"]], dtype=np.int64)
        for round in rounds:
            part = table[round.part.value]
            there = part >= 0 if round.part is Part.LABELS else np.ones(len(slots), dtype=bool)
            try:
                collector.accept(Report(round.name, slots[there], part[there], body["holder"]))
            except InputError as error:
                raise InputError(f"{path}: {error}") from None
    data = collector.estimate()
    data.num_classes = first["classes"] or 2
    for part in promise.raw:
        _add_raw(data, part, tables, slot)
    if data.get("x") is None:
        data.x = torch.zeros((len(ids), 0), dtype=torch.float64)
    if data.get("y") is None:
        data.y = torch.full((len(ids),), -1)
    facts = PublicFacts(len(ids), int(first["attributes"]), int(data.num_classes))
    seeds = [body["seed"] for body in bodies if body["seed"] is not None]
    certificate = LocalCertificate.of(
        promise,
        facts,
        [(round, int(collector.reported(round.name).sum())) for round in rounds],
        method="collect",
        holders={body["holder"]: body["vertices"] for body in bodies},
        public=("which vertices report, and which of them have a label",),
        assumptions=("every client used the randomizer it names and reports once",),
        seed=seeds[0] if seeds else None,
    )
    return Collected(data, certificate, ids, collector.resent)


def _described(path: Path) -> dict[str, Any]:
    beside = description(path)
    if not beside.exists():
        raise InputError(f"{beside} is missing: it says how {path} was randomised, keep the two together")
    body: dict[str, Any] = read_json(beside)
    if body.get("schema") != SCHEMA:
        raise InputError(f"{beside} has schema {body.get('schema')!r}; this version reads {SCHEMA!r}")
    return body


def _rounds(body: dict[str, Any]) -> tuple[Round, ...]:
    known = {**MECHANISMS, "label-response": LabelResponse}
    try:
        return tuple(
            Round(entry["part"], Part(entry["part"]), known[entry["mechanism"]](**entry["parameters"]))
            for entry in body["rounds"]
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"the description names a randomizer this version does not know: {error}") from None


def _read(path: Path) -> dict[str, Any]:
    """A reports file as arrays: id, features, labels, contacts."""
    source = TableFile(path)
    names = source.names()
    columns = sorted((n for n in names if n[:1] == "f" and n[1:].isdigit()), key=lambda n: int(n[1:]))
    types = {"id": pa.string(), "contacts": pa.string(), "label": pa.int64()} | {n: pa.float64() for n in columns}
    batches = list(source.batches(names, {name: types[name] for name in names if name in types}))
    if not batches:
        raise InputError(f"{path} has no reports")
    table = pa.Table.from_batches(batches)
    found: dict[str, Any] = {"id": table["id"].cast(pa.string()).to_pylist()}
    if len(set(found["id"])) != len(found["id"]):
        raise InputError(f"{path} has two reports with the same id")
    if columns:
        found["features"] = np.column_stack([table[name].to_numpy() for name in columns])
    if "label" in names:
        found["labels"] = table["label"].fill_null(-1).to_numpy()
    if "contacts" in names:
        found["contacts"] = table["contacts"].fill_null("").to_pylist()
    return found


def _add_raw(data: Data, part: Part, tables: list[dict[str, Any]], slot: dict[str, int]) -> None:
    """Parts that were sent in the clear."""
    import torch

    slots = np.concatenate([[slot[name] for name in table["id"]] for table in tables]).astype(np.int64)
    if part is Part.FEATURES:
        rows = np.concatenate([table["features"] for table in tables])
        data.x = torch.zeros((len(slot), rows.shape[1]), dtype=torch.float64)
        data.x[torch.from_numpy(slots)] = torch.from_numpy(rows.astype(np.float64))
    elif part is Part.LABELS:
        data.y = torch.full((len(slot),), -1)
        data.y[torch.from_numpy(slots)] = torch.from_numpy(
            np.concatenate([t["labels"] for t in tables]).astype(np.int64)
        )
    else:
        arcs = []
        for table in tables:
            for name, contacts in zip(table["id"], table["contacts"], strict=True):
                for other in contacts.split():
                    if other not in slot:
                        raise InputError(f"vertex {name!r} lists {other!r}, who has not reported: unknown neighbour id")
                    arcs.append((slot[name], slot[other]))
        pairs = np.unique(np.array(arcs, dtype=np.int64).reshape(-1, 2), axis=0).T
        data.edge_index = torch.from_numpy(np.ascontiguousarray(pairs))
        data.directed = not np.array_equal(pairs, np.unique(pairs[::-1].T, axis=0).T)


def openness_note(promise: Local) -> str:
    """One line for the terminal."""
    raw = ", ".join(part.value.upper() for part in promise.raw)
    withheld = ", ".join(part.value for part in Part if promise.budget(part) is Openness.WITHHELD)
    return "; ".join(
        text for text in (f"IN THE CLEAR: {raw}" if raw else "", f"withheld: {withheld}" if withheld else "") if text
    )
