"""Reports in, noisy data out: the files of several holders become one graph and one certificate."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from graphveil.errors import InputError
from graphveil.exchange.certificate import LocalCertificate
from graphveil.exchange.collector import Collector
from graphveil.exchange.edge_tables import EDGE_MECHANISMS
from graphveil.exchange.randomizers import BucketResponse, Contacts, LabelHistogram, LabelResponse
from graphveil.exchange.report import Report, Round
from graphveil.exchange.tables import MECHANISMS, SCHEMA, description
from graphveil.files import read_json
from graphveil.graph.formats.tables import TableFile
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import DEGREES, OWNERS, Local, Openness, Part

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
    """Merge reports files: of several holders, and of several rounds if each part of the record is reported in one of them.

    A vertex in several files of a round must have sent the same report.
    """
    import torch

    bodies = [_described(path) for path in paths]
    promise = _merged(paths, bodies)
    tables = [_read(path) for path in paths]
    ids = tuple(sorted({name for table in tables for name in table["id"]}))
    slot = {name: number for number, name in enumerate(ids)}
    rounds = {round.name: round for body in bodies for round in _rounds(body)}
    collector = Collector(rounds.values(), len(ids))
    for path, body, table in zip(paths, bodies, tables, strict=True):
        slots = np.array([slot[name] for name in table["id"]], dtype=np.int64)
        for round in _rounds(body):
            try:
                collector.accept(_report(round, table, slots, slot, body["holder"]))
            except InputError as error:
                raise InputError(f"{path}: {error}") from None
    data = collector.estimate()
    reported = data.edge_index.numpy()
    _set_arcs(data, reported[:, reported[0] != reported[1]])
    classes = next((body["classes"] for body in bodies if body["classes"]), None)
    data.num_classes = classes or 2
    for part in promise.raw:
        _add_raw(
            data, part, [t for t, b in zip(tables, bodies, strict=True) if b["promise"][part.value] == "raw"], slot
        )
    if data.get("x") is None:
        data.x = torch.zeros((len(ids), 0), dtype=torch.float64)
    if data.get("y") is None:
        data.y = torch.full((len(ids),), -1)
    attributes = int(data.x.shape[1])
    if "edges" in data:
        _append_histograms(data)
    seeds = [body["seed"] for body in bodies if body["seed"] is not None]
    certificate = LocalCertificate.of(
        promise,
        PublicFacts(len(ids), attributes, int(data.num_classes)),
        [(round, int(collector.reported(round.name).sum())) for round in rounds.values()],
        method="collect",
        holders=_holders(bodies, tables),
        public=("which vertices report, and which of them have a label", *_edge_statements(rounds)),
        assumptions=("every client used the randomizer it names and reports once",),
        seed=seeds[0] if seeds else None,
    )
    return Collected(data, certificate, ids, collector.resent)


def _holders(bodies: list[dict[str, Any]], tables: list[dict[str, Any]]) -> dict[str, int]:
    """How many different vertices each holder reports, over all its files."""
    known: dict[str, set[str]] = {}
    for body, table in zip(bodies, tables, strict=True):
        known.setdefault(body["holder"], set()).update(table["id"])
    return {holder: len(vertices) for holder, vertices in known.items()}


def _merged(paths: list[Path], bodies: list[dict[str, Any]]) -> Local:
    """The promise of all files together; files that report the same part must do it in the same way."""
    kept: dict[str, tuple[Path, list[Any]]] = {}
    for path, body in zip(paths, bodies, strict=True):
        for part in Part:
            budget = body["promise"][part.value]
            if budget == Openness.WITHHELD.value:
                continue
            keys = ("attributes",) if part is Part.FEATURES else ("heard",) if part is Part.EDGES else ("classes",)
            how = [budget, [r for r in body["rounds"] if r["part"] == part.value], [body.get(key) for key in keys]]
            first, before = kept.setdefault(part.value, (path, how))
            if before != how:
                raise InputError(f"{path} was made under another promise or with other randomizers than {first}")
    budgets: dict[str, Any] = {
        part.value: kept[part.value][1][0] if part.value in kept else Openness.WITHHELD for part in Part
    }
    return Local(**budgets)


def _report(round: Round, table: dict[str, Any], slots: np.ndarray, slot: dict[str, int], holder: str) -> Report:
    if round.part is Part.EDGES and not isinstance(round.randomizer, LabelHistogram):
        starts, targets = _arcs(table, slot)
        return Report(round.name, slots, Contacts(starts, targets), holder)
    values = table["histogram" if round.part is Part.EDGES else round.part.value]
    there = values >= 0 if round.part is Part.LABELS else np.ones(len(slots), dtype=bool)
    return Report(round.name, slots[there], values[there], holder)


def _append_histograms(data: Data) -> None:
    """Noisy counts of the contacts' released labels are further attributes, named h0, h1, ..."""
    import torch

    counts = data.edges
    names = [f"f{number}" for number in range(data.x.shape[1])] + [f"h{number}" for number in range(counts.shape[1])]
    data.x = torch.cat([data.x, counts], dim=1)
    data.feature_names = names
    del data.edges


def _edge_statements(rounds: dict[str, Round]) -> tuple[str, ...]:
    randomizer = rounds["edges"].randomizer if "edges" in rounds else None
    if isinstance(randomizer, BucketResponse):
        return (DEGREES, OWNERS)
    return (DEGREES,) if isinstance(randomizer, LabelHistogram) else ()


def _described(path: Path) -> dict[str, Any]:
    beside = description(path)
    if not beside.exists():
        raise InputError(f"{beside} is missing: it says how {path} was randomised, keep the two together")
    body: dict[str, Any] = read_json(beside)
    if body.get("schema") != SCHEMA:
        raise InputError(f"{beside} has schema {body.get('schema')!r}; this version reads {SCHEMA!r}")
    return body


def _rounds(body: dict[str, Any]) -> tuple[Round, ...]:
    known: dict[str, type[Any]] = {**MECHANISMS, **EDGE_MECHANISMS, "label-response": LabelResponse}
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
    counts = sorted((n for n in names if n[:1] == "h" and n[1:].isdigit()), key=lambda n: int(n[1:]))
    if counts:
        found["histogram"] = np.column_stack([table[name].to_numpy() for name in counts]).astype(np.float64)
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
            starts, targets = _arcs(table, slot)
            own = np.array([slot[name] for name in table["id"]], dtype=np.int64)
            arcs.append(np.stack([np.repeat(own, np.diff(starts)), targets]))
        _set_arcs(data, np.concatenate(arcs, axis=1))


def _set_arcs(data: Data, arcs: np.ndarray) -> None:
    """Arcs owner -> contact, once each; the graph is directed unless every arc has its reverse."""
    import torch

    pairs = np.unique(arcs, axis=1)
    data.edge_index = torch.from_numpy(np.ascontiguousarray(pairs))
    data.directed = not np.array_equal(pairs, np.unique(pairs[::-1], axis=1))


def _arcs(table: dict[str, Any], slot: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """The contacts of every record as slots: where each list starts, and all targets."""
    lists = [contacts.split() for contacts in table["contacts"]]
    for name, contacts in zip(table["id"], lists, strict=True):
        unknown = next((other for other in contacts if other not in slot), None)
        if unknown is not None:
            raise InputError(f"vertex {name!r} lists {unknown!r}, who has not reported: unknown neighbour id")
    starts = np.concatenate([[0], np.cumsum([len(contacts) for contacts in lists])]).astype(np.int64)
    return starts, np.array([slot[other] for contacts in lists for other in contacts], dtype=np.int64)


def openness_note(promise: Local) -> str:
    """One line for the terminal."""
    raw = ", ".join(part.value.upper() for part in promise.raw)
    withheld = ", ".join(part.value for part in Part if promise.budget(part) is Openness.WITHHELD)
    return "; ".join(
        text for text in (f"IN THE CLEAR: {raw}" if raw else "", f"withheld: {withheld}" if withheld else "") if text
    )
