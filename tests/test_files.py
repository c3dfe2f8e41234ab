"""Files are complete or absent, whatever happens while they are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphveil.errors import InputError
from graphveil.files import draft


def test_a_failure_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(RuntimeError), draft(path) as beside:
        beside.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_two_writers_of_one_file_have_drafts_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with draft(path) as first:
        first.write_text("first")
        with draft(path) as second:
            second.write_text("second")
    assert path.read_text() == "first" and list(tmp_path.iterdir()) == [path]


def test_a_kept_draft_survives_a_failure(tmp_path: Path) -> None:
    part = tmp_path / "a.part"
    with pytest.raises(InputError, match="cannot be written: No space left"), draft(tmp_path / "a", kept=part):
        part.write_text("half")
        raise OSError(28, "No space left")
    assert part.read_text() == "half"
    with draft(tmp_path / "a", kept=part):
        part.write_text("whole")
    assert (tmp_path / "a").read_text() == "whole" and not part.exists()
