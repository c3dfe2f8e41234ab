"""Read CSV, TSV and Parquet in batches, with one-line errors that name the file."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from graphveil.errors import InputError
from graphveil.graph.formats.columns import first_line

BLOCK_BYTES = 32 << 20
LOOKED_AT = 1 << 16  # bytes from which delimiter and header are guessed
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
BLOCK_CELLS = 1 << 20  # numbers read at a time, at least 2^14 rows


@dataclass(frozen=True)
class TableFile:
    """A table on disk that is read batch by batch, never as a whole.

    Text files have a delimiter (default: tab for ``.tsv``, else comma), an encoding and perhaps a header: a first line
    that names the columns (else they are ``f0``, ``f1``, ...). What is not said :meth:`guessed` reads off the first lines.
    """

    path: Path
    delimiter: str | None = None
    encoding: str = "utf8"
    header: bool | None = True

    def guessed(self) -> tuple[TableFile, list[str]]:
        """The same table with delimiter and header decided, and what was assumed, in words."""
        if self.is_parquet or (self.delimiter is not None and self.header is not None):
            return replace(self, header=self.header is not False), []
        lines, said = self._first_lines(), []
        delimiter, header = self.delimiter, self.header
        if delimiter is None and ".tsv" not in self.path.suffixes:
            delimiter = max(DELIMITERS, key=lambda mark: _columns(lines, mark))
            if delimiter != ",":
                said.append(f"{self.path.name}: {DELIMITERS[delimiter]} between columns (--delimiter says otherwise)")
        if header is None:
            cells = [_cells(line, delimiter or "\t") for line in lines]
            header = not (len(cells) > 1 and all(map(_is_number, cells[0])) and any(map(_is_number, cells[1])))
            if not header:
                said.append(f"{self.path.name}: no line with the names of the columns (--header says otherwise)")
        return replace(self, delimiter=delimiter, header=header), said

    def _first_lines(self) -> list[str]:
        try:
            with self.path.open("rb") as file:
                text = file.read(LOOKED_AT).decode(self.encoding, errors="replace")
        except (OSError, LookupError) as error:
            raise self._problem(error) from None
        lines = [line for line in text.splitlines() if line.strip()]
        return lines[:-1] if len(text) >= LOOKED_AT and len(lines) > 1 else lines  # the last one may be cut

    @property
    def is_parquet(self) -> bool:
        return ".parquet" in self.path.suffixes or self.path.suffix in (".pq", ".parq")

    def names(self) -> list[str]:
        """The names of the columns."""
        try:
            if self.is_parquet:
                names = list(pa.parquet.ParquetFile(self.path).schema_arrow.names)
            else:
                with self._open({}, None) as reader:
                    names = list(reader.schema.names)
        except (pa.ArrowException, OSError, UnicodeError, LookupError) as error:
            raise self._problem(error) from None
        if len(set(names)) != len(names):
            raise InputError(f"{self.path} has two columns of the same name: rename one")
        return names

    def batches(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
        """The named columns in batches; ``types`` are imposed on text files, Parquet keeps its own."""
        try:
            if self.is_parquet:
                # pre_buffer would keep every row group that has been read: memory would grow with the file
                file = pa.parquet.ParquetFile(self.path, pre_buffer=False)
                rows = max(1 << 14, BLOCK_CELLS // max(len(columns), 1))
                for batch in file.iter_batches(batch_size=rows, columns=list(columns)):
                    batch.validate(full=True)  # Parquet promises UTF-8 and does not check it
                    yield batch
            else:
                with self._open(types, list(columns)) as reader:
                    yield from reader
        except (pa.ArrowException, OSError, UnicodeError, LookupError) as error:
            raise self._problem(error) from None

    def _open(self, types: Mapping[str, pa.DataType], columns: list[str] | None) -> pa.csv.CSVStreamingReader:
        delimiter = self.delimiter or ("\t" if ".tsv" in self.path.suffixes else ",")
        if len(delimiter) != 1:
            raise InputError(f"the delimiter is {delimiter!r}: give one character")
        return pa.csv.open_csv(
            self.path,
            read_options=pa.csv.ReadOptions(
                block_size=BLOCK_BYTES, encoding=self.encoding, autogenerate_column_names=self.header is False
            ),
            parse_options=pa.csv.ParseOptions(delimiter=delimiter),
            convert_options=pa.csv.ConvertOptions(column_types=dict(types), include_columns=columns),
        )

    def _problem(self, error: Exception) -> InputError:
        text = first_line(error)
        if isinstance(error, FileNotFoundError):
            return InputError(f"cannot read {self.path}: there is no such file")
        if "Empty CSV file" in text:
            return InputError(f"{self.path} is empty: it needs at least a line with the names of the columns")
        if isinstance(error, UnicodeError | LookupError) or "UTF8" in text or "UTF-8" in text:
            return InputError(
                f"{self.path} is not text in {self.encoding}: convert it, or pass --encoding (e.g. latin-1)"
            )
        return InputError(f"cannot read {self.path}: {text}")


def _cells(line: str, delimiter: str) -> list[str]:
    return [cell.strip().strip('"') for cell in line.split(delimiter)]


def _columns(lines: Sequence[str], delimiter: str) -> int:
    """How many columns the lines have with this delimiter, if they all have equally many; else 1."""
    found = {len(next(csv.reader([line], delimiter=delimiter))) for line in lines}
    return found.pop() if len(found) == 1 else 1


def _is_number(cell: str) -> bool:
    try:
        return bool(cell) and float(cell) == float(cell)
    except ValueError:
        return False


def column_of(batch: pa.RecordBatch, name: str) -> pa.Array:
    """A column of the batch; codes of a dictionary are replaced by what they stand for."""
    values = batch.column(batch.schema.get_field_index(name))
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def text_column(batch: pa.RecordBatch, name: str, file: TableFile, first_row: int) -> pa.Array:
    """A column of identifiers as text; integers become their digits, so 7 and "7" are the same node."""
    values = column_of(batch, name)
    kinds = pa.types.is_integer, pa.types.is_string, pa.types.is_large_string
    if not any(is_kind(values.type) for is_kind in kinds):
        raise InputError(f"column {name!r} of {file.path} has type {values.type}: identifiers are integers or text")
    values = values.cast(pa.large_string())  # 64-bit offsets: identifiers of a big graph exceed 2 GiB of text
    empty = pa.compute.fill_null(pa.compute.equal(values, ""), True)
    if pa.compute.any(empty).as_py():
        row = first_row + pa.compute.index(empty, True).as_py()
        raise InputError(f"column {name!r} of {file.path} is empty in row {row}: every row needs an identifier")
    return values
