"""The noise of a large release in chunks, each with counters of its own.

A release of more than ``CHUNK`` numbers draws one key, 128 bits of the secret stream. Its chunk c, the numbers c CHUNK up to
(c + 1) CHUNK - 1, is made of the AES blocks number c 2^64, c 2^64 + 1, ... under this key and of nothing else: any chunk can be
drawn alone, in any order and in any thread, and holds the same numbers.

*No word is used twice.* Under one key, chunk c has the block numbers whose higher half is c, and leaves them after 2^64 blocks
only, 2^65 words. How many it takes is random, because samplers reject: one attempt reads at most 2^10 words (two after its first;
beyond the table of the Gaussian 51 coins of at most 18) and gives a number with a chance above 1/2. So 2^65 words are at least
2^55 attempts, of which fewer than 2^16 succeed with a chance below exp(-2^53) (Hoeffding), if anybody waited for centuries.
Blocks under one key differ, so chunks share none.

*No key is used twice.* A key is two words of the stream of :class:`~graphveil.privacy.noise.Noise`, each of which is handed out
once; two of q releases have the same with a chance of at most q^2 2^-129, as if each had asked the operating system. Equal seeds
give equal keys, as they give equal noise.
Tests: ``tests/privacy/test_chunks.py``; whole tables of several chunks: ``audit/central/many_draws.py``.
"""

from __future__ import annotations

from collections.abc import Callable

from randomgen import AESCounter

from graphveil.privacy.samplers import Array
from graphveil.privacy.words import Stream
from graphveil.threads import share_out

CHUNK = 1 << 16  # numbers; public, and another one gives other noise for the same seed
SHARE = 2  # chunks for which another thread is worth its while

Draw = Callable[[Array, Stream], None]


def fill(draw: Draw, out: Array, key: int, threads: int = 1) -> None:
    """Let ``draw`` fill every chunk of ``out`` from words of its own, in so many threads at most."""
    chunks = range(-(-len(out) // CHUNK))
    shares = max(1, min(threads, len(chunks) // SHARE))
    share_out(lambda share: fill_chunks(draw, out, key, chunks[share::shares]), shares)


def fill_chunks(draw: Draw, out: Array, key: int, chunks: range) -> None:
    """These chunks of ``out``, one after the other."""
    words = Stream(AESCounter(key=key))
    for chunk in chunks:
        words.start(chunk)
        draw(out[chunk * CHUNK : (chunk + 1) * CHUNK], words)
