"""Records of the wire as an Arrow stream, read with suspicion: plain columns only, nothing compressed, nothing encoded.

A compressed or dictionary-encoded stream can be a thousand times larger than it looks, so both are refused from the message
headers, before anything is unpacked; so are formats before V5, which hide a compression in their metadata, and batches with more
cells than bytes, whose columns are empty or share their buffers. Tests: ``tests/service/test_refusals.py``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

from graphveil.exchange.wire import Defect, Stage, WireRecord, identifier, record_of

PLAIN = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer, pa.types.is_floating, pa.types.is_null)
RECORD_BATCH, COMPRESSION = (
    3,
    3,
)  # the kind of a message's header, and the field of a batch that says how it is compressed


def arrow_records(content: bytes, stage: Stage, most: int) -> Iterator[WireRecord | Defect]:
    """One record, or what is wrong with it, for every row; a :class:`Defect` is raised if it is no such stream at all."""
    try:
        for batch in _batches(content, most):
            yield from rows_of(batch, stage)
    except (pa.ArrowException, ValueError, OSError, struct.error, UnicodeDecodeError, OverflowError):
        raise Defect("not an Arrow stream of plain columns") from None


def arrow_stream(batch: pa.RecordBatch) -> bytes:
    """A batch of a reports file as it is sent."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _batches(content: bytes, most: int) -> Iterator[pa.RecordBatch]:
    for message in pa.ipc.MessageReader.open_stream(pa.BufferReader(content)):
        if message.metadata_version != pa.ipc.MetadataVersion.V5:
            raise Defect("an Arrow stream of an old format: send version 5")
        if message.type == "record batch" and is_compressed(message.metadata.to_pybytes()):
            raise Defect("a compressed Arrow stream: send it as it is")
        if message.type not in ("schema", "record batch"):
            raise Defect("an Arrow stream of plain columns has no dictionaries")
    with pa.ipc.open_stream(content) as stream:
        for field in stream.schema:
            if not any(fits(field.type) for fits in PLAIN):
                raise Defect("an Arrow stream of plain columns has text and numbers only")
        rows = 0
        for batch in stream:
            rows += batch.num_rows
            if rows > most:
                raise Defect(f"more than {most} records in one request: send smaller batches")
            if batch.num_rows * batch.num_columns > len(content):
                raise Defect("an Arrow stream with more numbers than bytes: send plain columns")
            batch.validate(full=True)
            yield batch


def rows_of(batch: pa.RecordBatch, stage: Stage) -> Iterator[WireRecord | Defect]:
    """One record, or what is wrong with it, for every row."""
    names, asked = batch.schema.names, stage.fields
    if len(set(names)) != len(names):
        raise Defect("two columns have the same name")
    known = {name for name in ("label", "contacts", "degree") if name in asked}
    features = [f"f{number}" for number in range(stage.attributes)] if "features" in asked else []
    counts = [f"h{number}" for number in range(stage.count_width)] if "counts" in asked else []
    if set(names) != {"id", *known, *features, *counts} - ({"label"} if "label" not in names else set()):
        raise Defect(f"the columns are not those that stage {stage.name!r} asks for")
    ids = batch.column("id").cast(pa.string()).to_pylist()
    plain = {name: batch.column(name).to_pylist() for name in names if name in known}
    rows, heights = _numbers(batch, features), _numbers(batch, counts)
    for number, name in enumerate(ids):
        body = {"id": name} | {key: values[number] for key, values in plain.items()}
        if "contacts" in body and isinstance(body["contacts"], str):
            body["contacts"] = body["contacts"].split()
        try:
            if "features" in asked:
                row = rows[number]
                there = np.flatnonzero(row != 0)
                body["features"] = {"at": there.tolist(), "is": row[there].tolist()}
            if "counts" in asked:
                body["counts"] = heights[number].tolist()
            identifier(name)
            yield record_of(body, stage)
        except Defect as defect:
            yield defect


def _numbers(batch: pa.RecordBatch, names: Sequence[str]) -> np.ndarray:
    if not names:
        return np.zeros((batch.num_rows, 0))
    columns = [pc.cast(batch.column(name), pa.float64()).to_numpy(zero_copy_only=False) for name in names]
    return np.column_stack(columns)


def is_compressed(metadata: bytes) -> bool:
    """Whether the header of a record batch names a compression (a table of FlatBuffers, field 3 of ``RecordBatch``)."""
    message = struct.unpack_from("<I", metadata, 0)[0]
    header = _field(metadata, message, 2)
    if header is None:
        raise Defect("an Arrow message without a header")
    batch = header + struct.unpack_from("<I", metadata, header)[0]
    return _field(metadata, batch, COMPRESSION) is not None


def _field(buffer: bytes, table: int, number: int) -> int | None:
    """Where a field of a table is; None if it is not there."""
    vtable = table - struct.unpack_from("<i", buffer, table)[0]
    size = struct.unpack_from("<H", buffer, vtable)[0]
    slot = 4 + 2 * number
    if slot + 2 > size:
        return None
    offset = struct.unpack_from("<H", buffer, vtable + slot)[0]
    return table + offset if offset else None
