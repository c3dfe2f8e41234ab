"""``graphveil datasets``: for people, for programs, and when something is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphveil.cli.app import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(["datasets", *arguments])
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err.strip()


def test_the_list_names_every_data_set_and_where_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--json")
    rows = {row["name"]: row for row in json.loads(out)["datasets"]}
    assert (
        code == 0 and len(rows) == 33 and {"cora", "reddit", "facebook100-uiuc", "csbm", "powerlaw-sbm"} <= rows.keys()
    )
    assert rows["cora"]["nodes"] == 2708 and rows["amazon-photo"]["prepare"]["dpdgc"]["printed"]["nodes"] == 7535
    assert all(row["available"] in ("here", "wheel", "download", "by hand", "generated") for row in rows.values())
    code, out, _ = run(capsys)
    assert code == 0 and all(name in out for name in rows)


def test_one_data_set_has_the_printed_statistics(cora, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "cora", "--json")
    body = json.loads(out)
    assert (code, err) == (0, "") and body["measured"] and body["licence"] and body["citation"]
    figures = body["statistics"]
    assert [figures[key] for key in ("nodes", "edges", "features", "classes", "isolated", "component_nodes")] == [
        2708,
        5278,
        1433,
        7,
        0,
        2485,
    ]
    rounded = [f"{figures[key]:.3f}" for key in ("homophily", "class_homophily")]
    assert (
        rounded == ["0.810", "0.766"]
        and f"{figures['mean_degree']:.2f} {figures['nonzeros_per_node']:.2f}" == "3.90 18.17"
    )
    assert sum(row["nodes"] for row in body["degree_histogram"]) == 2708


def test_people_see_table_degrees_and_preparations(cora, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "cora")
    assert code == 0 and "degree distribution" in out and "lga-pgnn: largest-component" in out and "0.810" in out


def test_a_preparation_and_a_picture(cora, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = run(capsys, "cora", "--prepare", "lga-pgnn", "--plot", str(tmp_path / "cora.png"), "--json")
    body = json.loads(out)
    assert code == 0 and body["statistics"]["nodes"] == 2485 and body["prepared"] == "lga-pgnn"
    assert (tmp_path / "cora.png").read_bytes().startswith(b"\x89PNG")


def test_a_set_that_is_not_here_shows_its_printed_figures(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("GRAPHVEIL_DATA", raising=False)
    monkeypatch.setenv("GRAPHVEIL_CACHE", str(tmp_path))
    code, out, _ = run(capsys, "reddit", "--json")
    body = json.loads(out)
    assert code == 0 and not body["measured"] and body["statistics"]["classes"] == 41
    assert run(capsys, "facebook100-uiuc")[0] == 0
    code, _, err = run(capsys, "facebook100-uiuc", "--download")
    assert code == 2 and "facebook100-uiuc.npz" in err and str(tmp_path) in err


def test_generated_graphs_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "csbm", "--json")
    assert code == 0 and json.loads(out)["statistics"]["nodes"] == 10_000


@pytest.mark.parametrize(
    "arguments",
    [
        ("cora-mm",),
        ("cora", "--prepare", "nonsense"),
        ("nowhere.npz",),
        ("--plot", "a.png"),
        ("csbm", "--plot", "a.txt"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    code, out, err = run(capsys, *arguments)
    assert code == 2 and out == "" and err.startswith("graphveil: error: ") and "\n" not in err
