"""The report: one page that needs nothing else, readable at any width, with a file for every picture and table."""

import csv
import json
import re

import pytest

from graphveil.cli.app import main
from graphveil.report.report import write_report
from tests.report.example import local_rows, row, rows


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    files = write_report([*rows(), *local_rows()[:3]], folder / "report.html", folder / "files", title="<Example>")
    return folder, files


def test_the_page_needs_nothing_but_itself(written):
    page = (written[0] / "report.html").read_text()
    outside = [address for address in re.findall(r'(?:src|href)="([^"#]+)"', page) if not address.startswith("data:")]
    assert outside and all(
        address.startswith("files/") for address in outside
    )  # links to files beside it, nothing loaded
    assert not re.search(r"<(script|img|iframe|link)[^>]+(src|href)=\"(?!data:)", page) and "@import" not in page
    assert "&lt;Example&gt;" in page and "own &lt;b&gt;" in page and "<b>,</b>" not in page  # names are escaped


def test_every_picture_and_every_table_is_a_file_too(written):
    folder, files = written
    page = (folder / "report.html").read_text()
    linked = set(re.findall(r'href="files/([^"]+)"', page))
    assert linked == {path.name for path in files[1:]}
    assert len([name for name in linked if name.endswith(".svg")]) == page.count('<svg role="img"') > 5
    assert {path.suffix for path in files[1:]} == {".svg", ".png", ".csv", ".md"}
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_tables_say_what_was_measured(written):
    with (written[0] / "files" / "accuracy-node-level-record-zero-out.csv").open() as file:
        lines = list(csv.DictReader(file))
    ballot = next(line for line in lines if line["method"] == "ballot" and line["data set"] == "cora")
    assert ballot["epsilon 4"] == "72.9 ± 0.4" and ballot["no noise"] == "87.9 ± 0.4" and ballot["seeds"] == "3"
    assert [line["no noise"] for line in lines if line["method"] == "mlp, not private"] == ["70.4 ± 0.4"]
    needed = (written[0] / "files" / "epsilon-needed-node-level-record-zero-out.md").read_text()
    assert "| cora | ballot | ≤ 1 | ≤ 1 | 2.9 | 8.8 |" in needed
    with (written[0] / "files" / "runs.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(rows()) + 3


def test_what_must_not_be_missed_is_said_in_words(written):
    page = (written[0] / "report.html").read_text()
    assert "InputError: &lt;no&gt; such file" in page and "Failed runs" in page
    assert "In 9 of 9 runs the promise DOES NOT HOLD" in page and "The promise holds in all 36 runs." in page
    assert "† selected on private data: not covered by the promise" in page and "no finite value" in page
    table = (written[0] / "files" / "certificates-edge-level-edge-undirected-zero-out.md").read_text()
    assert table.count("DOES NOT HOLD") == 3 and table.count("| A1 | not covered |") == 3


def test_methods_have_their_cards_and_strangers_are_named(tmp_path):
    write_report([row("gap", 4.0, 0), row("stranger", 4.0, 0)], tmp_path / "a.html", None)
    page = (tmp_path / "a.html").read_text()
    assert "GAP D3" in page and "USENIX Security" in page and "not installed here" in page
    assert not (tmp_path / "a-files").exists() and 'href="' not in page.replace('href="#', "").replace(
        'href="data:', ""
    )


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (390, "dark"), (1440, "light"), (1440, "dark")])
def test_the_page_is_readable_at_any_width_in_light_and_dark(written, shown, tmp_path, width, scheme):
    with shown(written[0] / "report.html", width, scheme) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        figures = page.locator("figure svg")
        assert figures.count() > 5 and all(
            box["width"] >= 250 for box in (figures.nth(n).bounding_box() for n in range(3))
        )
        words = figures.nth(0).locator("text").all_text_contents()
        assert {"epsilon", "test accuracy, %", "ballot", "gap", "dp-mlp", "4"} <= set(words)
        sizes = figures.nth(0).evaluate(
            "s => [...s.querySelectorAll('text')].map(t => t.getBoundingClientRect().height)"
        )
        assert min(sizes) >= 8
        paper, ink = page.evaluate("(s => [s.backgroundColor, s.color])(getComputedStyle(document.body))")
        bright = lambda color: sum(map(int, re.findall(r"\d+", color)[:3])) / 3
        assert (
            (bright(paper) > 200 > 80 > bright(ink)) if scheme == "light" else (bright(paper) < 50 < 200 < bright(ink))
        )
        assert page.screenshot(path=tmp_path / f"report-{width}-{scheme}.png", full_page=True)


def test_tables_are_sorted_the_slider_moves_and_colours_are_switched(written, shown):
    with shown(written[0] / "report.html", 1440) as page:
        table = page.locator("#t-accuracy-node-level-record-zero-out")
        column = lambda: table.locator("tbody td:nth-child(5)").all_text_contents()
        table.locator("th:nth-child(5) button").click()
        assert column() == sorted(column(), key=lambda text: float(text.split()[0] if text else -1))
        table.locator("th:nth-child(5) button").click()
        assert column()[0].startswith("85.4")
        live = page.locator("#t-epsilon-needed-node-level-record-zero-out td.live")
        slider = page.locator("#s-epsilon-needed-node-level-record-zero-out")
        slider.fill("80")
        assert live.all_text_contents() == ["8.8", "-", "-", "8.8"]
        slider.fill("50")
        assert live.all_text_contents() == ["≤ 1", "1.2", "≤ 1", "≤ 1"]
        before = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.locator("button.theme").click()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_the_command_writes_the_page_and_says_where(tmp_path, capsys):
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, [row("gap", 4.0, 0), row("gap", 1.0, 0)])))
    with pytest.raises(SystemExit) as stop:
        main(["report", str(tmp_path / "rows.jsonl"), "--out", str(tmp_path / "page.html"), "--json"])
    said = json.loads(capsys.readouterr().out)
    assert not stop.value.code and said["runs"] == 2 and said["assets"] == str(tmp_path / "page-files")
    assert said["files"] == 1 + len(list((tmp_path / "page-files").iterdir()))


def test_runs_that_are_not_private_say_so(tmp_path):
    write_report([row("mlp", None, 0)], tmp_path / "a.html", None)
    assert "No run among these is private" in (tmp_path / "a.html").read_text()


def test_the_command_draws_one_picture_with_printed_figures(tmp_path, capsys):
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, [row("gap", 4.0, 0), row("gap", 1.0, 0)])))
    (tmp_path / "printed.csv").write_text(
        "dataset,level,method,epsilon,accuracy,source\ncora,node,dpdgc,4,60,A PAPER\n"
    )
    words = ["report", str(tmp_path / "rows.jsonl"), "--figure", str(tmp_path / "a.svg")]
    with pytest.raises(SystemExit) as stop:
        main([*words, "--printed", str(tmp_path / "printed.csv")])
    assert not stop.value.code and capsys.readouterr().out.strip() == str(tmp_path / "a.svg")
    assert "A PAPER" in (tmp_path / "a.svg").read_text() and not list(tmp_path.glob("*.html"))


@pytest.mark.parametrize(
    ("lines", "out", "told"),
    [
        ([], "page.html", "no rows"),
        ([row("gap", 4.0, 0)], "page.pdf", ".html"),
        ([row("gap", 4.0, 0, status="failed")], "page.html", "nothing to report"),
    ],
)
def test_mistakes_are_one_line(tmp_path, capsys, lines, out, told):
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(SystemExit) as stop:
        main(["report", str(tmp_path / "rows.jsonl"), "--out", str(tmp_path / out)])
    err = capsys.readouterr().err
    assert stop.value.code == 2 and told in err and len(err.splitlines()) == 1


def test_no_name_in_a_row_becomes_a_script(tmp_path):
    """Labels, data sets, releases, options, gaps, errors and titles, in the page, in its pictures and in its numbers for JS."""
    evil = "</text></script><script>alert(1)</script>--><img src=x onerror=alert(2)>\"'&"
    found = [dict(one) for one in [*rows(1), *local_rows()] if one["dataset"] == "cora" or one["method"] == "ballot"]
    for one in found:
        one |= {
            "label": one["label"] + evil,
            "dataset": one["dataset"] + evil,
            "preparation": evil,
            "options": {evil: evil},
        }
        one |= {"gaps": [evil] if one["gaps"] else [], "error": evil if one["error"] else None}
        one["releases"] = [release | {"name": release["name"] + evil} for release in one["releases"]]
    write_report(found, tmp_path / "report.html", None, title=evil, source=evil)
    page = (tmp_path / "report.html").read_text()
    assert "alert(1)" in page and page.count("<script") == page.count("</script") == 1 and "<img" not in page
