"""Chunks of a large release: the same numbers however the work was cut, and no word of the stream in two of them."""

import threading
from functools import partial

import numpy as np
import pytest
from randomgen import AESCounter

from graphveil.learn import engine
from graphveil.learn.engine.local import Local
from graphveil.privacy import chunks, words
from graphveil.privacy.chunks import CHUNK, SHARE
from graphveil.privacy.noise import Noise, grid
from graphveil.privacy.samplers import draw_gaussian, draw_laplace
from graphveil.privacy.words import Stream

KEY = 0x0F1E2D3C4B5A69788796A5B4C3D2E1F0
SIZE = 2 * SHARE * CHUNK + 4321  # enough for two threads, and a chunk that is not full
CHUNKS = 2 * SHARE + 1
LAWS = {"gaussian": draw_gaussian, "laplace": draw_laplace}


def drawn(law, threads=1, size=SIZE):
    out = np.full(size, np.nan)
    chunks.fill(partial(LAWS[law], 1.5, grid(1.5)), out, KEY, threads)
    return out


@pytest.mark.parametrize("law", LAWS)
def test_every_chunk_alone_and_in_any_order_holds_the_same_numbers(law):
    """By a generator of the library that starts at the chunk's own counter, last chunk first."""
    whole = drawn(law)
    for chunk in reversed(range(CHUNKS)):
        alone = np.empty(len(whole[chunk * CHUNK : (chunk + 1) * CHUNK]))
        LAWS[law](1.5, grid(1.5), alone, Stream(AESCounter(key=KEY, counter=chunk << 64)))
        np.testing.assert_array_equal(alone, whole[chunk * CHUNK : (chunk + 1) * CHUNK])


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("threads", [2, 3, 40])
def test_threads_do_not_change_a_number(law, threads):
    np.testing.assert_array_equal(drawn(law), drawn(law, threads))


def test_threads_are_used_where_there_is_enough_to_do():
    seen = set()

    def draw(out, stream):
        if threads == 2 and threading.get_ident() not in seen:
            both.wait()  # neither may take the other's share
        seen.add(threading.get_ident())
        out[:] = 0

    both = threading.Barrier(2, timeout=60)
    for size, threads in ((SIZE, 2), (2 * SHARE * CHUNK - CHUNK, 1)):
        seen.clear()
        chunks.fill(draw, np.empty(size), KEY, 2)
        assert len(seen) == threads and threading.get_ident() in seen


def test_a_chunk_that_fails_in_a_thread_stops_the_release():
    def draw(out, stream):
        if len(out) < CHUNK:
            raise MemoryError
        out[:] = 0

    with pytest.raises(MemoryError):
        chunks.fill(draw, np.empty(SIZE), KEY, 2)


@pytest.mark.parametrize("law", LAWS)
def test_no_word_is_used_by_two_chunks(law):
    """All words of 17 chunks, whatever the sampler rejected: 10^6 words of 64 bits have a pair by chance with 3e-8."""
    heard = []

    class Listening(Stream):
        def start(self, part):
            super().start(part)
            heard.append([])
            self.first = self._source.state["s"]["counter"].copy()

    def draw(out, stream):
        LAWS[law](1.5, grid(1.5), out, stream)
        low, high = stream._source.state["s"]["counter"][:2]
        assert high == stream.first[1] == len(heard) - 1 and stream.first[0] == 0  # it stayed in its part
        taken = Stream(AESCounter(key=KEY, counter=int(high) << 64))(2 * int(low))
        assert len(taken) > len(out)
        heard[-1] = taken

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "Stream", Listening)
        chunks.fill(draw, np.empty(SIZE), KEY)
    assert len(heard) == CHUNKS
    together = np.concatenate(heard)
    assert len(np.unique(together)) == len(together)


def test_parts_are_those_of_the_generator_with_and_without_the_instructions(monkeypatch):
    for known in (True, False):
        monkeypatch.setattr(words, "has_instructions", lambda known=known: known)
        stream = Stream(AESCounter(key=KEY))
        assert known or stream.memory.size == 0
        for part, size in ((0, 5), (3, 1000), (3, 7), (2**40, 200), (1, 40), (0, 5)):
            stream.start(part)
            np.testing.assert_array_equal(stream(size), AESCounter(key=KEY, counter=part << 64).random_raw(size))


def magnitudes(*releases):
    return np.concatenate([np.abs(release) for release in releases])


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("seed", [None, 8])
def test_no_release_repeats_a_chunk_of_its_own_or_of_another(law, seed):
    """Among 4 x 10^5 magnitudes of 40 bits about 0.1 pairs by chance; a key or counter that comes again gives 65,536."""
    noise = Noise(seed)
    releases = [getattr(noise, law)(1.0, size) for size in (3 * CHUNK, CHUNK + 1, 2 * CHUNK + 5)]
    together = magnitudes(*releases)
    assert len(together) - len(np.unique(together)) < 20
    again = Noise(seed)
    repeated = [np.array_equal(getattr(again, law)(1.0, len(release)), release) for release in releases]
    assert repeated == [seed is not None] * 3


def test_a_release_takes_two_words_of_the_stream_and_only_above_one_chunk(monkeypatch):
    keys = []
    monkeypatch.setattr(chunks, "fill", lambda draw, out, key, threads: keys.append((key, threads)))
    noise, plain = Noise(3, threads=7), Noise(3)._generator.bit_generator
    for _ in range(2):
        noise.gaussian(1.0, (CHUNK + 1, 1))
    words_ = plain.random_raw(4).tolist()
    assert keys == [(words_[1] << 64 | words_[0], 7), (words_[3] << 64 | words_[2], 7)]
    noise.gaussian(1.0, CHUNK)
    assert len(keys) == 2


def test_noise_is_drawn_in_the_threads_of_the_engine(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert engine.threads() == 3
    with engine.using(Local(5)):
        assert engine.threads() == 5


@pytest.mark.entropy
def test_large_releases_of_two_streams_have_nothing_in_common():
    together = magnitudes(Noise().gaussian(1.0, 2 * CHUNK), Noise().gaussian(1.0, 2 * CHUNK))
    assert len(together) - len(np.unique(together)) < 20
