"""What is committed under docs/results comes out of the committed rows: a stale page, picture or table turns red here."""

import re
import runpy
import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from graphveil.experiments import expand, read_experiment
from graphveil.experiments.drawn import drawn_runs
from graphveil.experiments.export import brief, read_rows
from graphveil.experiments.heat import heat_runs
from graphveil.experiments.papers import papers
from graphveil.experiments.reproduce import reproduction
from graphveil.experiments.run import TRAINING
from graphveil.report.pages import BLOCK

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
MOST = 1 << 20  # bytes of a committed file of rows
BY_SCRIPT = ("mutants", "months")
NAMES = sorted(path.stem for path in RESULTS.glob("*.jsonl") if path.stem not in BY_SCRIPT)


def asked_for(name, seeds):
    """The runs that a specification, or the tables of a paper, ask for."""
    specification = ROOT / "benchmarks" / f"{name.replace('-', '_')}.yaml"
    if specification.exists():
        return expand(read_experiment(specification))
    paper = next(paper for key, paper in papers().items() if name == key or name.startswith(f"{key}-"))
    entries = [entry for entry in paper.entries if entry.runs]
    printed = [run for entry in entries for run in reproduction(paper, entry, seeds=seeds).runs]
    drawn = [drawn_runs(paper, entry, seeds=seeds) for entry in entries]
    drawn += [heat_runs(paper, entry, seeds=seeds) for entry in entries if entry.heat is not None]
    return printed + [run for runs in drawn for some in runs.values() for run in some]


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """The README, the results and what their commands read, where they may be made again."""
    folder = tmp_path_factory.mktemp("committed")
    shutil.copytree(RESULTS, folder / "docs" / "results")
    (folder / "benchmarks").mkdir()
    for path in (ROOT / "benchmarks").glob("*.csv"):
        shutil.copy(path, folder / "benchmarks")
    shutil.copy(ROOT / "README.md", folder)
    for picture in (folder / "docs" / "results").glob("*.svg"):
        picture.unlink()
    return folder


def plain(path):
    """A file as text; of a picture without the ids that a drawing library makes up and the version it names."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".svg":
        return text
    text = re.sub(r"<dc:title>.*?</dc:title>", "", text)
    return re.sub(r'(id="|#)[a-z]+[0-9a-f]{10}', r"\1", text)


def test_every_page_and_picture_comes_out_as_it_is_committed(copied, graphveil):
    made = copied / "docs" / "results"
    for folder in (made, copied):
        code, _, err = graphveil("report", folder)
        assert code == 0, err
    for path in sorted(RESULTS.iterdir()):
        assert plain(made / path.name) == plain(path), (
            f"{path.name} is stale: 'graphveil report docs/results' makes it again"
        )
    assert plain(copied / "README.md") == plain(ROOT / "README.md"), (
        "README.md is stale: 'graphveil report .' makes it again"
    )
    assert {path.name for path in made.iterdir()} == {path.name for path in RESULTS.iterdir()}


def test_results_are_committed_in_one_form_and_every_page_has_its_rows():
    kinds = {path.suffix for path in RESULTS.iterdir()}
    assert kinds <= {".jsonl", ".md", ".svg", ".csv"}, kinds
    assert [path.name for path in RESULTS.glob("*.csv")] == ["printed.csv"]  # figures out of papers, not results
    for path in RESULTS.glob("*.jsonl"):
        assert path.stat().st_size < MOST and read_rows(path), path.name
    for page in RESULTS.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        assert BLOCK.search(text), f"{page.name} has nothing that is made from rows"
        written = BLOCK.sub("", text)
        assert "![" not in written, f"{page.name} has a picture that no command makes"


@pytest.mark.parametrize("name", NAMES)
def test_committed_rows_are_runs_of_their_specification_or_paper(name):
    rows = read_rows(RESULTS / f"{name}.jsonl")
    asked = asked_for(name, sorted({row["seed"] for row in rows}))
    versions = {row["version"] for row in rows}
    runs = {replace(run, version=version).id: run for run in asked for version in versions}
    strangers = [row["label"] for row in rows if row["id"] not in runs]
    assert not strangers, f"{len(strangers)} of {len(rows)} rows are of another specification: {strangers[:3]}"
    for row in rows:
        run = runs[row["id"]]
        assert (row["label"], row["kind"], row["seed"]) == (run.label, run.kind, run.seed)
        assert row["kind"] == TRAINING or "kind" in brief(row)
    seeds = {}
    for row in rows:
        seeds.setdefault((row["label"], row["dataset"], row["epsilon_target"], str(row["parts"])), set()).add(
            row["seed"]
        )
    trained = {key for row in rows if row["kind"] == TRAINING for key in seeds if key[0] == row["label"]}
    few = [key for key in trained if len(seeds[key]) < 2]
    assert not few, f"figures of a single seed: {few[:3]}"


def test_committed_rows_of_two_months_are_those_of_their_script():
    script = runpy.run_path(str(ROOT / "benchmarks" / "months.py"))
    rows = read_rows(RESULTS / "months.jsonl")
    seeds = {row["seed"] for row in rows}
    parts = (script["METHODS"], script["DATA"], seeds, script["TOTALS"], script["ARMS"])
    assert {row["id"] for row in rows} == {script["identifier"](*asked) for asked in product(*parts)}
    assert len(seeds) >= 5 and min(seeds) >= 500  # constants were chosen on seeds 0 to 4
    for row in rows:
        assert row["epsilon"] <= row["epsilon_target"] * (1 + 1e-9) and row["epsilon"] > 0.999 * row["epsilon_target"]
