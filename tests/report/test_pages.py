"""Pages are made again from committed results by the commands that stand in them, and run nothing else."""

import json

import pytest

from graphveil.errors import InputError
from graphveil.experiments.export import FIELDS
from graphveil.experiments.tables import tables
from graphveil.report.curves import curves_of
from graphveil.report.pages import BLOCK, refresh
from graphveil.report.tables import accuracy_table
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


def test_the_name_of_a_method_is_no_command_of_the_page(folder):
    """A table is made from rows of others: what they call a method must not run when the page is made the next time."""
    evil = "gap <!-- end -->\n<!-- graphveil report r.jsonl --figure stolen.svg -->\n<script>"
    found = [json.loads(line) for line in (folder / "r.jsonl").read_text().splitlines()]
    named = [row | {"label": evil} for row in found if row["method"] == "ballot"]
    shown = [*tables(named), accuracy_table("name", curves_of(named))]
    for table in shown:
        said = table.markdown()
        assert "graphveil report" in said and not BLOCK.search(said) and "<script" not in said and "-->\n" not in said
