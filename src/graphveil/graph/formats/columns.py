"""Table columns as bounded features: declared ranges and categories, one-hot and scaling.

A range or a list of categories read off the data is a function of everybody's record and no promise covers it. So
columns are declared, and what is inferred instead is warned about and leaves a note.

===============  =======================================================================================================
``age=0..120``   numbers, clipped to the range and scaled: ``(v - low) / (high - low)``, or ``v / max(|low|, |high|)``
                 if 0 lies inside the range, so that 0 stays 0
``sex=f|m|x``    categories, one column each; ``|*`` at the end: other values are allowed and get no column
``word_*=0..1``  every column whose name fits the pattern
``age``          inferred: warns
===============  =======================================================================================================
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphveil.errors import InputError

OTHERS = "*"


@dataclass(frozen=True)
class Column:
    """One column of the node table: a range, categories, or neither (to be inferred)."""

    name: str
    low: float | None = None
    high: float | None = None
    categories: tuple[str, ...] | None = None
    others: bool = False

    @property
    def declared(self) -> bool:
        return self.low is not None or self.categories is not None

    def pattern(self) -> str:
        """How to declare it; never with values from the data, which would launder them."""
        return f"{self.name}=A|B|C" if self.categories is not None else f"{self.name}=LOW..HIGH"


def parse_columns(specifications: Iterable[str]) -> list[Column]:
    """Columns from ``name``, ``name=low..high`` or ``name=a|b|c``, several separated by commas."""
    parts = [part.strip() for text in specifications for part in text.split(",") if part.strip()]
    columns = [parse_column(part) for part in parts]
    for column in columns:
        if sum(other.name == column.name for other in columns) > 1:
            raise InputError(f"column {column.name!r} is given twice")
    return columns


def parse_column(text: str) -> Column:
    name, equals, declaration = text.partition("=")
    name = name.strip()
    if not name or (equals and not declaration):
        raise InputError(f"cannot read column {text!r}: write NAME, NAME=LOW..HIGH or NAME=A|B|C")
    if not equals:
        return Column(name)
    low, dots, high = declaration.partition("..")
    if dots:
        try:
            bounds = float(low), float(high)
        except ValueError:
            raise InputError(f"cannot read the range of {name!r}: {declaration!r} is not LOW..HIGH") from None
        if not np.isfinite(bounds).all() or bounds[0] >= bounds[1]:
            raise InputError(f"the range of {name!r} is {declaration}: LOW must be below HIGH, both finite")
        return Column(name, low=bounds[0], high=bounds[1])
    categories = tuple(part.strip() for part in declaration.split("|"))
    named = tuple(category for category in categories if category != OTHERS)
    if not named or "" in named or len(set(named)) != len(named):
        raise InputError(f"the categories of {name!r} are {declaration!r}: give distinct names separated by |")
    return Column(name, categories=named, others=OTHERS in categories)


def expand(columns: Sequence[Column], header: Sequence[str], path: str) -> list[Column]:
    """Replace patterns by the columns of ``header`` that fit; every name must exist."""
    expanded: dict[str, Column] = {}
    for column in columns:
        names = [column.name] if column.name in header else fnmatch.filter(header, column.name)
        if not names:
            more = f" and {len(header) - 8} more" if len(header) > 8 else ""
            raise InputError(f"{path} has no column {column.name!r}: it has {', '.join(header[:8])}{more}")
        for name in names:
            expanded.setdefault(name, replace(column, name=name))
    return list(expanded.values())


def infer(column: Column, batches: Iterable[pa.Array], *, classes: bool = False) -> Column:
    """Range or categories of an undeclared column, read off all its values; ``classes``: categories even of numbers."""
    low, high, numeric = np.inf, -np.inf, not classes
    seen: set[str] = set()
    for batch in batches:
        values = _flat(batch).drop_null()
        if numeric:
            try:
                numbers = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
                numbers = numbers[np.isfinite(numbers)]
                low, high = min(low, numbers.min(initial=np.inf)), max(high, numbers.max(initial=-np.inf))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                numeric = False
        if classes or not _is_number(values.type):
            seen.update(pc.unique(values.cast(pa.string())).to_pylist())
    seen.discard("")
    if numeric and low <= high:
        return replace(column, low=float(low), high=float(high) if high > low else float(low) + 1.0)
    if not seen:
        raise InputError(f"column {column.name!r} is empty: leave it out")
    digits = all(text.isdigit() for text in seen)
    return replace(column, categories=tuple(sorted(seen, key=int if digits else None)))


def encode(column: Column, values: pa.Array, zero_missing: bool, first_row: int) -> tuple[np.ndarray, ...]:
    """The non-zero entries of one batch as (rows, columns, values), counted from 0; ``width`` columns in all."""
    if column.categories is not None:
        codes, missing = category_codes(column, values)
        _refuse_missing(column, missing, zero_missing, first_row)
        rows = np.flatnonzero(codes >= 0)
        return rows, codes[rows], np.ones(rows.size, dtype=np.float32)
    flat = _flat(values)
    try:
        numbers = flat.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(f"column {column.name!r} is not numeric: {first_line(error)}") from None
    width = numbers.size // max(len(values), 1) if len(values) else 1
    missing = np.isnan(numbers)
    _refuse_missing(column, missing.reshape(-1, max(width, 1)).any(axis=1), zero_missing, first_row)
    if np.isinf(numbers).any():
        row = first_row + int(np.isinf(numbers).argmax()) // max(width, 1)
        raise InputError(f"column {column.name!r} is infinite in row {row}: give a finite number")
    scaled = np.where(missing, 0.0, scale(column, numbers)).astype(np.float32)
    positions = np.flatnonzero(scaled)
    return positions // max(width, 1), positions % max(width, 1), scaled[positions]


def scale(column: Column, numbers: np.ndarray) -> np.ndarray:
    low, high = float(column.low or 0), float(column.high or 0)
    clipped: np.ndarray = np.clip(numbers, low, high)
    return clipped / max(-low, high) if low < 0 < high else (clipped - low) / (high - low)


def category_codes(column: Column, values: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The number of each value among the categories (-1: none), and which values are missing."""
    texts = values.cast(pa.string())
    missing = pc.fill_null(pc.equal(texts, ""), True).to_numpy(zero_copy_only=False).astype(bool)
    found = pc.fill_null(pc.index_in(texts, pa.array(column.categories, pa.string())), -1)
    codes = np.where(missing, -1, found.to_numpy(zero_copy_only=False))
    unknown = (codes < 0) & ~missing
    if unknown.any() and not column.others:
        value = texts[int(unknown.argmax())].as_py()
        raise InputError(
            f"column {column.name!r} has {int(unknown.sum())} values outside its categories, e.g. {value!r}: declare "
            f"them, or end the list with |{OTHERS}"
        )
    return codes, missing


def width_of(column: Column, values: pa.Array | None) -> int:
    """How many feature columns it fills; lists of numbers take their length from the table."""
    if column.categories is not None:
        return len(column.categories)
    if values is None or not _is_list(values.type):
        return 1
    lengths = pc.unique(pc.list_value_length(values)).to_pylist()
    if len(lengths) != 1 or lengths[0] is None:
        raise InputError(f"column {column.name!r} holds lists of different lengths: give lists of one length")
    return int(lengths[0])


def feature_names(column: Column, width: int) -> list[str]:
    if column.categories is not None:
        return [f"{column.name}={category}" for category in column.categories]
    return [column.name] if width == 1 else [f"{column.name}[{index}]" for index in range(width)]


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0][:160]


def _refuse_missing(column: Column, missing: np.ndarray, zero_missing: bool, first_row: int) -> None:
    if missing.any() and not zero_missing:
        raise InputError(
            f"column {column.name!r} is empty or NaN in {int(missing.sum())} rows, first in row "
            f"{first_row + int(missing.argmax())}: fill them, or pass --on-missing zero"
        )


def _flat(values: pa.Array) -> pa.Array:
    return values.flatten() if _is_list(values.type) else values


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))
