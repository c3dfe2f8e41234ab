"""Pages are made again from committed results by the commands that stand in them, and run nothing else."""

import json

import pytest

from graphveil.experiments.execute import failed
from graphveil.experiments.export import FIELDS, write_rows
from graphveil.experiments.papers import find
from graphveil.experiments.reproduce import reproduction
from graphveil.experiments.tables import tables
from graphveil.report.curves import curves_of
from graphveil.report.pages import BLOCK
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


def test_tables_and_pictures_are_made_again_and_words_are_kept(folder, graphveil):
    code, said, err = graphveil("report", folder)
    assert code == 0 and said == "page.md: 2 made again\n", err
    text = (folder / "page.md").read_text()
    assert "| old |" not in text and "| data | method |" in text and "![picture](r.svg)" in text and "Words." in text
    picture = (folder / "r.svg").read_text()
    assert picture.startswith("<?xml")
    graphveil("report", folder)
    assert (folder / "page.md").read_text() == text  # made twice, nothing moves
    assert (folder / "r.svg").read_text() == picture
    assert (folder / "plain.md").read_text() == "nothing to make\n"


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("train gap --data cora", "none of"),
        ("results absent.jsonl --markdown", "does not exist"),
        ("report .", "within a page"),
        ("reproduce dpdgc/table2", "would train"),
        ("results 'r.jsonl", "cannot be read"),
    ],
)
def test_a_page_runs_nothing_else_and_a_failing_command_leaves_it_as_it_was(folder, graphveil, command, told):
    body = PAGE.replace("results r.jsonl --markdown", command)
    (folder / "page.md").write_text(body)
    code, _, err = graphveil("report", folder)
    assert code == 2 and told in err and "Traceback" not in err
    assert (folder / "page.md").read_text() == body


THEIRS = {
    "words.md": b"# Somebody's notes\r\n\r\nno mark, lines of another system\r\n",
    "latin.md": "caf\u00e9\n".encode("latin-1"),
    "open.md": b"<!-- graphveil results r.jsonl -->\nno end\n",
    "code.md": b"As in\n```\n<!-- graphveil results absent.jsonl -->\n<!-- end -->\n```\n",
    "inline.md": b"write `<!-- graphveil results absent.jsonl -->` and `<!-- end -->`\n",
    "empty.md": b"",
}


def test_pages_of_others_keep_every_byte(folder, graphveil):
    (folder / "page.md").unlink()
    for name, content in THEIRS.items():
        (folder / name).write_bytes(content)
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}
    code, _, err = graphveil("report", folder)
    assert code == 2 and "no page has a table" in err
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()} == before
    (folder / "page.md").write_bytes(PAGE.replace("\n", "\r\n").encode())  # beside a page that is made
    code, _, err = graphveil("report", folder)
    made = (folder / "page.md").read_bytes()
    assert code == 0 and made.count(b"\n") == made.count(b"\r\n") > 20, err
    assert all((folder / name).read_bytes() == content for name, content in THEIRS.items())


def test_a_papers_table_and_curves_stand_in_a_page(folder, graphveil):
    paper, (entry,) = find("lga-pgnn/table5")
    asked = reproduction(paper, entry, data=["cora"], seeds=1)
    accuracy = {run.id: 0.5 + 0.001 * number for number, run in enumerate(asked.runs)}
    runs = [failed(run, "") | {"status": "done", "metrics": {"test_accuracy": accuracy[run.id]}} for run in asked.runs]
    write_rows(runs, folder / "p.jsonl")
    command = "reproduce lga-pgnn/table5 --from p.jsonl --datasets cora --seeds 1"
    marks = f"<!-- graphveil {command} -->\n<!-- end -->\n\n"
    marks += f"<!-- graphveil {command} --figure p.svg -->\n![p](p.svg)\n<!-- end -->\n"
    (folder / "page.md").write_text(marks)
    code, _, err = graphveil("report", folder)
    text, picture = (folder / "page.md").read_text(), (folder / "p.svg").read_text()
    assert code == 0 and "### Privacy-Enhanced Graph Neural Network" in text and "| our own | verdict |" in text, err
    assert "![p](p.svg)" in text and "lga-pgnn, published" in picture and "lga-pgnn, printed" in picture
    (folder / "page.md").write_text(marks.replace("lga-pgnn/table5", "dpdgc/table2"))
    code, _, err = graphveil("report", folder)
    assert code == 2 and "nothing to draw" in err


def test_the_name_of_a_method_is_no_command_of_the_page(folder):
    """A table is made from rows of others: what they call a method must not run when the page is made the next time."""
    evil = "gap <!-- end -->\n<!-- graphveil report r.jsonl --figure stolen.svg -->\n<script>"
    found = [json.loads(line) for line in (folder / "r.jsonl").read_text().splitlines()]
    named = [row | {"label": evil} for row in found if row["method"] == "ballot"]
    shown = [*tables(named), accuracy_table("name", curves_of(named))]
    for table in shown:
        said = table.markdown()
        assert "graphveil report" in said and not BLOCK.search(said) and "<script" not in said and "-->\n" not in said
