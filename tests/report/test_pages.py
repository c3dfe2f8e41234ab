"""Pages are made again from committed results by the commands that stand in them, and run nothing else."""

import json

import pytest

from graphveil.errors import InputError
from graphveil.experiments.export import FIELDS
from graphveil.report.pages import refresh
from tests.report.example import rows

PAGE = """# Page

Words.

<!-- graphveil results r.jsonl --markdown -->
| old |
<!-- end -->

<!-- graphveil report r.jsonl --figure r.svg -->
![picture](r.svg)
<!-- end -->
"""


@pytest.fixture
def folder(tmp_path):
    full = [{field: row.get(field) for field in FIELDS} | {"id": str(n)} for n, row in enumerate(rows())]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in full))
    (tmp_path / "page.md").write_text(PAGE)
    (tmp_path / "plain.md").write_text("nothing to make\n")
    return tmp_path


def test_tables_and_pictures_are_made_again_and_words_are_kept(folder):
    assert refresh(folder) == {"page.md": 2}
    text = (folder / "page.md").read_text()
    assert "| old |" not in text and "| data | method |" in text and "![picture](r.svg)" in text and "Words." in text
    assert (folder / "r.svg").read_text().startswith("<?xml")
    refresh(folder)
    assert (folder / "page.md").read_text() == text  # made twice, nothing moves
    assert (folder / "plain.md").read_text() == "nothing to make\n"


@pytest.mark.parametrize(
    ("command", "told"), [("train gap --data cora", "none of"), ("results absent.jsonl --markdown", "failed")]
)
def test_a_page_runs_nothing_else_and_a_failing_command_leaves_it_as_it_was(folder, command, told):
    body = PAGE.replace("results r.jsonl --markdown", command)
    (folder / "page.md").write_text(body)
    with pytest.raises(InputError, match=told):
        refresh(folder)
    assert (folder / "page.md").read_text() == body
