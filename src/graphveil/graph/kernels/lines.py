"""Cache lines: tables that begin on one, and asking for lines ahead of their use.

Rows named by a list lie anywhere, and no processor guesses where. numpy begins large arrays 16 bytes into a line, so that a row
of eight numbers lies in two lines.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LINE = 64
SMALL = 1 << 22  # bytes that stay in a cache anyway
READ, KEEP, DATA = 0, 3, 1  # arguments of llvm.prefetch


def _prefetch(context: Any, array: Any, position: Any) -> Any:
    """Have the cache line of ``array[position]`` fetched while work goes on; any position will do, nothing is read."""

    def built(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        address = builder.bitcast(builder.gep(view.data, [arguments[1]]), byte)
        function = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
            builder.module, ir.FunctionType(ir.VoidType(), [byte, word, word, word]), "llvm.prefetch.p0i8"
        )
        builder.call(function, [address, *(word(value) for value in (READ, KEEP, DATA))])
        return context.get_dummy_value()

    return types.void(types.Array(array.dtype, 1, "C"), types.uint64), built


prefetch: Any = intrinsic(_prefetch)


def zeros_on_lines(rows: int, width: int) -> np.ndarray:
    """A float64 table of zeros that begins on a cache line."""
    room = np.zeros(rows * width + LINE // 8)
    first = -room.ctypes.data % LINE // 8
    return room[first : first + rows * width].reshape(rows, width)


def on_lines(table: np.ndarray) -> np.ndarray:
    """``table`` in float64, contiguous, and from the beginning of a line on where that spares its rows one; a copy if need be."""
    table = np.ascontiguousarray(table, dtype=np.float64)
    if table.ctypes.data % LINE == 0 or table.shape[1] % (LINE // 8) or table.nbytes < SMALL:
        return table
    found = zeros_on_lines(*table.shape)
    found[...] = table
    return found
