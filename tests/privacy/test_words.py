"""Words made many at a time are those of the bit generator, one by one."""

import numpy as np
import pytest
from randomgen import AESCounter

from graphveil.privacy import words
from graphveil.privacy.noise import Noise
from graphveil.privacy.words import GROUP, OFFSET, Stream

KEY = bytes.fromhex("000102030405060708090a0b0c0d0e0f")  # FIPS 197, appendix C.1
PLAIN = bytes.fromhex("00112233445566778899aabbccddeeff")
CIPHER = bytes.fromhex("69c4e0d86a7b0430d8cdb78070b4c55a")

fast = pytest.mark.skipif(not words.has_instructions(), reason="this processor has no instructions for AES")


def whole(data):
    return int.from_bytes(data, "little")


@fast
def test_the_state_of_the_generator_lies_where_it_is_expected():
    assert Stream(AESCounter(key=3)).memory.size == OFFSET + 1


@fast
def test_words_of_a_given_counter_are_the_cipher_of_the_standard():
    source = AESCounter(key=whole(KEY), counter=whole(PLAIN))
    assert Stream(source)(40 * GROUP)[:2].tobytes() == CIPHER


@pytest.mark.parametrize("known", [True, False])
def test_words_are_those_of_random_raw_whatever_is_drawn_between(known):
    drawn, plain, sizes = AESCounter(key=77), AESCounter(key=77), np.random.default_rng(0)
    stream = Stream(drawn)
    if not known:
        stream.memory = stream.memory[:0]
    for size in [0, 1, 31, 32, 33, 127, 128, 129, *sizes.integers(0, 600, 200)]:
        np.testing.assert_array_equal(stream(int(size)), plain.random_raw(int(size)))
        if size % 3 == 0:
            assert np.random.Generator(drawn).random() == np.random.Generator(plain).random()


@fast
def test_a_counter_that_rolls_over_goes_on_as_the_generator_does():
    first = 2**64 - 40
    drawn, plain = AESCounter(key=5, counter=first), AESCounter(key=5, counter=first)
    for size in (16, 1000, 1000):
        np.testing.assert_array_equal(Stream(drawn)(size), plain.random_raw(size))


def test_a_generator_that_is_not_as_expected_is_asked_for_every_word():
    class Elsewhere:
        def __init__(self, source):
            self._source, self.ctypes, self.lock = source, source.ctypes, source.lock

        @property
        def state(self):
            told = self._source.state
            told["s"]["counter"] = told["s"]["counter"][::-1]
            return told

    stream = Stream(Elsewhere(AESCounter(key=9)))
    assert stream.memory.size == 0
    np.testing.assert_array_equal(stream(100), AESCounter(key=9).random_raw(100))


def test_equal_seeds_give_equal_noise_with_and_without_the_instructions(monkeypatch):
    def drawn():
        noise = Noise(4)
        for size in (1, 7, 20_000, 100_000):
            yield from (noise.gaussian(1.5, size), noise.laplace(0.3, size), noise.uniform(1))

    found = list(drawn())
    monkeypatch.setattr(words, "has_instructions", lambda: False)
    for one, other in zip(found, drawn(), strict=True):
        np.testing.assert_array_equal(one, other)
