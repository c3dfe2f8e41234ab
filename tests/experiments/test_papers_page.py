"""docs/papers.md: a row for every table and figure of every paper, and no file that is not there."""

import re
from pathlib import Path

import pytest

from graphveil.experiments.papers import papers

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "graphveil"
PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
ITEM = r"(?:\d+[a-z]?|[IVX]+)\b"
NAMED = re.compile(rf"(Table|Figure)(?:s ({ITEM}(?:(?:, | and | to ){ITEM})*)| ({ITEM}))")
FILE = re.compile(r"[\w./-]+\.(?:py|toml|md|ya?ml|jsonl|csv|svg|png)\b|(?:[\w.-]+/)+(?=$|\s)")
KEYS = sorted(papers())


def sections(page: str) -> dict[str, str]:
    """What stands below each heading, by the paper's key without its hyphens."""
    parts = re.split(r"^## (.+)$", page, flags=re.MULTILINE)
    return {title.lower().replace("-", ""): text for title, text in zip(parts[1::2], parts[2::2], strict=True)}


def section(key: str) -> str:
    return sections(PAGE)[key.replace("-", "")]


def names(cell: str) -> set[str]:
    """Tables and figures that the first cell of a row begins with; ``Figures 4 to 6`` are three of them."""
    found = NAMED.match(cell)
    if found is None:
        return set()
    kind, many, one = found.groups()
    items = set()
    for part in re.split(r", | and ", many or one):
        first, _, last = part.partition(" to ")
        items |= {str(number) for number in range(int(first), int(last) + 1)} if last else {first}
    return {f"{kind} {item}" for item in items}


def rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:2] == "| "]


def absent(text: str, folder: Path) -> set[str]:
    """Files in backticks that are neither in the repository, nor in the package, nor in the method's own folder."""
    roots = ROOT, PACKAGE, folder
    named = {path for span in re.findall(r"`([^`]+)`", text) for path in FILE.findall(span)}
    return {path for path in named if not any((root / path).exists() for root in roots)}


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("Table 1 (epsilon 4)", {"Table 1"}),
        ("Table V (accuracy)", {"Table V"}),
        ("Figure 2 a to d (D_max)", {"Figure 2"}),
        ("Table 2, appendix 7.4", {"Table 2"}),
        ("Figures 4, 6", {"Figure 4", "Figure 6"}),
        ("Figures 9 to 11 and 13", {"Figure 9", "Figure 10", "Figure 11", "Figure 13"}),
        ("Tables 3a, 3b", {"Table 3a", "Table 3b"}),
        ("5.2, as in Table 3", set()),
    ],
)
def test_ranges_of_tables_and_figures_are_understood(cell, expected):
    assert names(cell) == expected


@pytest.mark.parametrize("key", KEYS)
def test_every_table_and_figure_has_a_row_with_a_place_and_a_verdict(key):
    table = rows(section(key))
    assert all(len(row) == 3 and all(row) for row in table), [row for row in table if len(row) != 3]
    there = set().union(*(names(row[0]) for row in table))
    assert {entry.name for entry in papers()[key].entries} - there == set()


@pytest.mark.parametrize("key", KEYS)
def test_every_file_named_is_there(key):
    folder = PACKAGE / "methods" / key.replace("-", "_")
    assert absent(section(key), folder) == set()
    links = re.findall(r"\]\(([^)#]+)\)", section(key))
    assert {link for link in links if not (ROOT / "docs" / link).exists()} == set()


def test_a_file_that_is_not_there_is_found():
    assert absent("`methods/dpar/nowhere.py`, `privacy/plan.py`, `graphveil sweep benchmarks/gone.yaml`", PACKAGE) == {
        "methods/dpar/nowhere.py",
        "benchmarks/gone.yaml",
    }
