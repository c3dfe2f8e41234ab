"""How long work is told about: the stage, how much is done, and of how much."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
