"""Run the command line in this process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from graphveil.audit.central.neighbours import worst_case_graph
from graphveil.cli.app import main
from graphveil.graph import write_npz


@pytest.fixture
def graphveil(capsys) -> Callable[..., tuple[int, str, str]]:
    """``graphveil("train", ...)`` -> exit code, standard output, standard error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return int(stop.value.code or 0), captured.out, captured.err

    return run


@pytest.fixture
def graph_file(tmp_path):
    """A small graph on disk, split by the loader like any other file."""
    return write_npz(worst_case_graph(seed=2)[0], tmp_path / "small.npz")
