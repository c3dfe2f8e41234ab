"""Declared columns: what may be written, and what numbers become."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphveil.errors import InputError
from graphveil.graph.formats.columns import Column, parse_column, parse_columns, scale


@pytest.mark.parametrize(
    "text", ["", "=1..2", "a=", "a=1..", "a=2..1", "a=nan..1", "a=0..inf", "a=x||y", "a=x|x", "a=*", "a=1..x"]
)
def test_malformed_declarations_are_explained(text: str) -> None:
    with pytest.raises(InputError):
        parse_column(text)


def test_declarations_are_read_as_written() -> None:
    columns = parse_columns(["age=0..120, sex=f|m|*", "word_*=-1..1", "free"])
    assert columns == [
        Column("age", 0.0, 120.0),
        Column("sex", categories=("f", "m"), others=True),
        Column("word_*", -1.0, 1.0),
        Column("free"),
    ]
    with pytest.raises(InputError, match="given twice"):
        parse_columns(["a", "a=0..1"])


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(-1e7, 1e7))
def test_scaled_numbers_are_bounded_by_one_and_keep_zero_inside_the_range(
    low: float, high: float, value: float
) -> None:
    if high - low < 1e-6:
        return
    column = Column("c", low, high)
    assert abs(scale(column, np.array([value]))[0]) <= 1
    if low < 0 < high:
        assert scale(column, np.array([0.0]))[0] == 0
