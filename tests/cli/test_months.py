"""``graphveil train --previous``: what carries over, what both months cost, and who is new."""

import json

import numpy as np
import pytest

from graphveil.audit.central.neighbours import worst_case_graph
from graphveil.graph import write_npz

FLAGS = ("--adjacency", "record", "--set", "steps=4", "--on-bad-rows", "zero", "--seed", 1)


@pytest.fixture
def months(tmp_path, graphveil):
    """Two exports, of which the second has two new people, and a run on the first."""
    for name, first in (("october", 0), ("november", 2)):
        data, _ = worst_case_graph(seed=2)
        data.ids = [f"AC{number + first}" for number in range(data.num_nodes)]
        write_npz(data, tmp_path / f"{name}.npz")
    run = tmp_path / "run"
    told = graphveil("train", "roster", "--data", tmp_path / "october.npz", "--epsilon", 3, *FLAGS, "--out", run)
    assert told[0] == 0, told
    return tmp_path


def test_the_second_month_says_what_it_takes_over_and_what_both_cost(graphveil, months):
    later = ("train", "roster", "--data", months / "november.npz", "--previous", months / "run", *FLAGS)
    told = json.loads(graphveil(*later, "--epsilon", 3, "--out", months / "second", "--json")[1])["previous"]
    assert told["people"]["new"] == 2 == told["people"]["left"] and told["taken_over"] and told["runs_before"] == 1
    assert 3 < told["epsilon_together"] < 6 and told["epsilon_before"] == pytest.approx(3)
    code, out, err = graphveil(*later[:-2], "--seed", 2, "--epsilon", 3)
    assert code == 0 and "2 new, 2 have left" in out and "what it released is averaged in" in out, err
    assert f"in all 2 runs: epsilon {told['epsilon_together']:.6g} together" in out
    body = json.loads(graphveil("certificate", months / "second", "--json")[1])
    assert body["together"] == told["epsilon_together"] and body["earlier"][0]["certificate"] == told["certificate"]
    page = months / "page.html"
    assert graphveil("certificate", months / "second", "--html", page)[0] == 0
    assert "Together with the runs before" in page.read_text()
    assert graphveil("verify", months / "second")[0] == 0


def test_the_promise_of_the_first_month_is_asked_for_again(graphveil, months):
    later = ("train", "roster", "--data", months / "november.npz", "--previous", months / "run", "--no-evaluate")
    told = json.loads(graphveil(*later, *FLAGS[2:], "--json")[1])
    assert (told["epsilon_target"], told["adjacency"]) == (3.0, "record")
    told = json.loads(graphveil(*later, *FLAGS, "--delta", "1e-4", "--json")[1])
    assert (told["epsilon_target"], told["delta"]) == (3.0, 1e-4)


def test_predictions_say_how_many_are_new(graphveil, months):
    code, out, err = graphveil("predict", months / "run", "--data", months / "november.npz", "--json")
    told = json.loads(out)
    assert code == 0 and told["people"] == {"known": len(told["predictions"]) - 2, "new": 2, "left": 2}
    assert "2 of " in err and "not in the training data" in err


def test_both_months_are_charged_to_one_book(graphveil, months):
    book = months / "book.db"
    graphveil("budget", "init", book, "--epsilon", 4, "--delta", "0.001", "--adjacency", "record")
    charged = ("--data", months / "november.npz", *FLAGS, "--epsilon", 3, "--delta", "0.001", "--budget", book)
    assert graphveil("train", "roster", *charged, "--previous", months / "run", "--out", months / "a")[0] == 0
    code, _, err = graphveil("train", "roster", *charged, "--previous", months / "a", "--out", months / "b")
    assert code == 2 and "was refused" in err and not (months / "b" / "certificate.json").exists()


def test_a_run_whose_files_were_changed_is_not_followed(graphveil, months):
    path = months / "run" / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    code, _, err = graphveil("train", "roster", "--data", months / "november.npz", "--previous", months / "run")
    assert code == 2 and "does not verify" in err and err.count("\n") == 1


def test_ids_of_other_people_are_refused(graphveil, months):
    data, _ = worst_case_graph(seed=2)
    data.ids = np.array([f"X{number}" for number in range(data.num_nodes)])
    write_npz(data, months / "other.npz")
    code, _, err = graphveil(
        "train", "roster", "--data", months / "other.npz", "--previous", months / "run", *FLAGS[2:]
    )
    assert code == 2 and "none of these ids is in the run before" in err
