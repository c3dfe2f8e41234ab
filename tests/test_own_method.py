"""docs/own-method.md, executed: one file, conformance, save and load, and the command line by entry point."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import graphveil as gv
from graphveil.audit.central.neighbours import worst_case_graph
from graphveil.cli.app import main
from graphveil.graph import write_npz
from graphveil.methods import registry

PAGE = Path(__file__).parents[1] / "docs" / "own-method.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The page's file as an installed package, in a folder of its own that is also the working directory."""
    (tmp_path / "class_means.py").write_text(blocks("python")[0], encoding="utf-8")
    points = (
        blocks("toml")[0].replace('[project.entry-points."graphveil.methods"]', "[graphveil.methods]").replace('"', "")
    )
    installed = tmp_path / "class_means-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: class-means\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(points)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    registry._entry_points.cache_clear()
    yield tmp_path
    sys.modules.pop("class_means", None)
    registry._REGISTERED.pop("class-means", None)
    registry._entry_points.cache_clear()


def test_the_example_is_one_file_of_under_120_lines():
    assert len(blocks("python")[0].splitlines()) < 120


@pytest.mark.parametrize("example", blocks("python")[1:], ids=["conformance", "save and load"])
def test_the_examples_run(package, example):
    exec(compile(example, "own-method.md", "exec"), {})


def test_conformance_finds_a_forgotten_class(package):
    from class_means import ClassMeans

    class Careless(ClassMeans):
        def design(self, facts, promise):
            plan = super().design(facts, promise)
            halved = gv.Release.gaussian("sums", 1.0, {"train": 0.5}, facts.classes * facts.features, "wrong")
            return gv.Plan(plan.promise, facts, (halved, plan.steps[1]))

    with pytest.raises(gv.GraphveilError, match="sensitivity sums"):
        gv.check_private_method(Careless(), [gv.NodeLevel(4, 1e-4)])


def test_an_infinite_epsilon_plans_without_noise(package):
    from class_means import ClassMeans

    plan = ClassMeans().plan(gv.PublicFacts(100, 5, 3), gv.NodeLevel(float("inf")))
    assert all(isinstance(step.mechanism, gv.Exact) for step in plan.steps)


def test_the_command_line_knows_it_by_entry_point(package, capsys):
    data = write_npz(worst_case_graph(seed=2)[0], package / "small.npz")
    for command in blocks("sh")[0].strip().splitlines():
        words = [str(data) if word == "csbm" else word for word in command.split()[1:]]
        with pytest.raises(SystemExit) as stop:
            main(words)
        told = capsys.readouterr()
        assert stop.value.code == 0, told.err
        assert "class-means" in told.out or words[0] == "verify"


def test_a_new_process_finds_the_installed_method(package):
    """Nothing has imported the module: the entry point alone leads to it."""
    found = subprocess.run(
        [sys.executable, "-m", "graphveil", "methods", "class-means"],
        env={"PYTHONPATH": ":".join([str(package), *sys.path]), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "count_share=0.05" in found.stdout


def test_an_entry_point_must_have_the_name_on_the_card(package):
    points = package / "class_means-1.0.dist-info" / "entry_points.txt"
    points.write_text(points.read_text().replace("class-means =", "my-means ="))
    registry._entry_points.cache_clear()
    with pytest.raises(gv.InputError, match=r"'class-means' .* on its card"):
        registry.method_class("my-means")


def test_the_published_class_is_found_by_its_own_entry_point(package):
    (package / "paper_means.py").write_text(
        "from typing import Literal\nfrom class_means import ClassMeans\n"
        'class PaperMeans(ClassMeans):\n    mode: Literal["published"] = "published"\n'
    )
    with (package / "class_means-1.0.dist-info" / "entry_points.txt").open("a") as file:
        file.write("\nclass-means-published = paper_means:PaperMeans\n")
    registry._entry_points.cache_clear()
    assert registry.modes_of("class-means") == ("sound", "published")
    assert type(registry.build("class-means", {"mode": "published"})).__name__ == "PaperMeans"


def test_names_that_are_taken_and_classes_without_a_card_are_refused(package):
    from class_means import ClassMeans

    class Other(ClassMeans):
        pass

    class Nameless(gv.PrivateMethod):
        pass

    with pytest.raises(gv.InputError, match="already a method"):
        gv.register(Other)
    with pytest.raises(gv.InputError, match="card"):
        gv.register(Nameless)
