"""Secret 64-bit words: those of the bit generator, made many at a time where the processor has instructions for AES.

The stream is AES-128 in counter mode: block number c is the cipher of c, two words each. The generator makes one group of
``GROUP`` words after the other and hands them out by a function call each; a loop over its own round keys and counter makes the
same words in the same order in a quarter of the time. ``tests/privacy/test_words.py`` compares them with ``random_raw``, and
with the example of FIPS 197.
"""

from __future__ import annotations

import ctypes
import platform
from functools import cache
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import njit, types
from numba.core import config
from numba.extending import intrinsic
from numpy.typing import NDArray

ROUNDS, BLOCKS = 10, 8  # AES-128; blocks that are under way at once: each waits for its last round
GROUP = 8  # words that the generator makes at once, four blocks
KEYS, BUFFER, OFFSET = (
    8,
    30,
    38,
)  # where these begin in the state of the generator, after its four counters of two words
WORDS = NDArray[np.uint64]


class Stream:
    """Secret 64-bit words of a bit generator, to be taken under its ``lock``.

    ``address``, ``state``: its C function and that one's argument; ``memory``: its state as words, or none if that is not as
    expected here, and then the function is called for every word.
    """

    def __init__(self, source: Any) -> None:
        self.address: Any = ctypes.cast(source.ctypes.next_uint64, ctypes.c_void_p).value
        self.state: Any = source.ctypes.state_address
        self.lock = source.lock
        self._source = source  # its state must live as long as the addresses
        self.memory = _memory(source) if has_instructions() else np.empty(0, dtype=np.uint64)

    def start(self, part: int) -> None:
        """Go on with the first word of this part: the 2^64 blocks whose number has ``part`` for its higher half."""
        if len(self.memory):
            _go_to(self.memory, part)
            return
        told, memory = self._source.state, np.empty(OFFSET + 1, dtype=np.uint64)
        _go_to(memory, part)
        told["s"]["counter"], told["s"]["offset"] = memory[:KEYS], int(memory[OFFSET])
        self._source.state = told

    def __call__(self, number: int) -> WORDS:
        drawn = np.empty(number, dtype=np.uint64)
        fill_words(self.address, self.state, self.memory, drawn)
        return drawn


@cache
def has_instructions() -> bool:
    """Whether loops are compiled for this very processor and it has instructions for AES."""
    as_found = not any(getattr(config, name, None) for name in ("CPU_NAME", "CPU_FEATURES"))
    return as_found and platform.machine() in ("x86_64", "AMD64") and bool(binding.get_host_cpu_features().get("aes"))


def _memory(source: Any) -> WORDS:
    """The state of the generator in place; nothing if what lies there is not what it says of itself."""
    told = source.state["s"]
    expected = np.concatenate([told["counter"], told["seed"], told["state"].view(np.uint64), [told["offset"]]])
    place = (ctypes.c_uint64 * len(expected)).from_address(source.ctypes.state_address)
    memory = np.ctypeslib.as_array(place)
    return memory if len(memory) == OFFSET + 1 and np.array_equal(memory, expected) else memory[:0]


@intrinsic  # type: ignore[untyped-decorator]
def _call(context: Any, address: Any, state: Any) -> Any:
    """The C function at ``address`` of one pointer, with ``state``: how bit generators of numpy hand out their words."""

    def built(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, word = ir.IntType(8).as_pointer(), ir.IntType(64)
        function = builder.inttoptr(arguments[0], ir.FunctionType(word, [pointer]).as_pointer())
        return builder.call(function, [builder.inttoptr(arguments[1], pointer)])

    return types.uint64(types.intp, types.intp), built


@intrinsic  # type: ignore[untyped-decorator]
def _encrypt(context: Any, keys: Any, low: Any, high: Any, out: Any) -> Any:
    """Write the ciphers of the ``BLOCKS`` numbers from (``low``, ``high``) on to the address ``out``; ``keys``: of the rounds."""

    def built(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word, index = ir.IntType(64), ir.IntType(32)
        block = ir.VectorType(word, 2)
        round_type = ir.FunctionType(block, [block, block])
        instructions = [
            builder.module.globals.get(name) or ir.Function(builder.module, round_type, name)
            for name in ("llvm.x86.aesni.aesenc", "llvm.x86.aesni.aesenclast")
        ]
        keys, low, high, out = arguments

        def at(base: Any, number: int) -> Any:
            return builder.inttoptr(builder.add(base, ir.Constant(word, 16 * number)), block.as_pointer())

        key = [builder.load(at(keys, number), align=8) for number in range(ROUNDS + 1)]
        work = []
        for number in range(BLOCKS):
            counter = ir.Constant(block, ir.Undefined)
            counter = builder.insert_element(
                counter, builder.add(low, ir.Constant(word, number)), ir.Constant(index, 0)
            )
            counter = builder.insert_element(counter, high, ir.Constant(index, 1))
            work.append(builder.xor(counter, key[0]))
        for number in range(1, ROUNDS + 1):
            step = instructions[number == ROUNDS]
            work = [builder.call(step, [one, key[number]]) for one in work]
        for number, one in enumerate(work):
            builder.store(one, at(out, number), align=8)
        return context.get_dummy_value()

    return types.void(types.intp, types.uint64, types.uint64, types.intp), built


@njit(cache=True)
def _go_to(memory: Any, part: int) -> None:
    """Counters at the start of ``part``, and nothing left of the last group."""
    for counter in range(GROUP // 2):
        memory[2 * counter], memory[2 * counter + 1] = counter, part
    memory[OFFSET] = 8 * GROUP


@njit(cache=True, nogil=True)
def fill_words(address: int, state: int, memory: Any, out: Any) -> None:
    """Fill ``out`` from a bit generator: what ``random_raw`` does."""
    at, end = 0, len(out)
    if len(memory) and end >= 4 * GROUP:
        while memory[OFFSET] < np.uint64(8 * GROUP):  # bytes of the last group that were handed out
            out[at] = _call(address, state)  # type: ignore[call-arg]
            at += 1
        turns = (end - at) // (2 * BLOCKS)
        low, high = memory[0], memory[1]
        if low + np.uint64(BLOCKS * (turns + 1)) > low:  # else the counter would roll over
            keys, place = memory.ctypes.data + 8 * KEYS, out.ctypes.data + 8 * at
            for turn in range(turns):
                _encrypt(keys, low + np.uint64(BLOCKS * turn), high, place + 16 * BLOCKS * turn)  # type: ignore[call-arg]
            for counter in range(4):
                memory[2 * counter] += np.uint64(BLOCKS * turns)
            at += 2 * BLOCKS * turns
    for rest in range(at, end):
        out[rest] = _call(address, state)  # type: ignore[call-arg]
