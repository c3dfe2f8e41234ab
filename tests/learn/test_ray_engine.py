"""The same releases from a Ray cluster, also when workers die; one cluster of two workers for all tests of this file."""

import json
import os
import signal
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import graphveil as gv
from graphveil.audit.central.conformance import check_private_method
from graphveil.errors import GraphveilError, InputError, PrivacyError
from graphveil.graph.folder import open_folder, save_folder
from graphveil.learn import engine
from graphveil.learn.engine.cluster import joined
from graphveil.learn.engine.local import Local
from graphveil.learn.engine.ray import Ray, _added, _answer, _sorted
from graphveil.privacy.noise import Noise
from tests.cli.conftest import graphveil as graphveil
from tests.stored import generated, in_folders

ray = pytest.importorskip("ray", reason="Ray is not installed (extra 'ray')")

pytestmark = pytest.mark.long
NODES, BLOCK = 20_000, 1500
PROMISE, EDGE = gv.NodeLevel(8.0), gv.EdgeLevel(8.0)
METHODS = [  # all that run in blocks
    (gv.DpMlp(steps=3), PROMISE),
    (gv.Ballot(steps=3, combiner_steps=3, publish="noisy", release_accuracy=True), PROMISE),
    (gv.Roster(steps=2), PROMISE),
    (gv.Gap(steps=2), PROMISE),
    (gv.Gap(epochs=1, hops=1, hidden=8), EDGE),
    (gv.Mlp(epochs=2), EDGE),
]


@pytest.fixture(scope="module")
def graph():
    return generated(NODES)


@pytest.fixture(scope="module")
def folders(graph, tmp_path_factory):
    return in_folders(graph, tmp_path_factory.mktemp)


@pytest.fixture(scope="module", autouse=True)
def cluster():
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("RAY_worker_niceness", "0")  # else workers wait for whatever else runs here
        with joined(2):
            yield


class Deadly(Ray):
    """Once for each kind of task, the worker is killed in the middle: the answer is computed and not yet sent."""

    graves: Path

    @contextmanager
    def started(self):
        with super().started():
            remote = ray.remote(num_cpus=1, max_retries=self.retries)
            self._tasks = {task: remote(dying_once(task, self.graves)) for task in self._tasks}
            yield


def dying_once(task, graves):
    def attempt(*arguments):
        answer = task(*arguments)
        try:
            (graves / task.__name__).touch(exist_ok=False)
        except FileExistsError:
            return answer
        return os.kill(os.getpid(), signal.SIGKILL)

    return attempt


def released(method, promise, of):
    model = method.fit(of, promise, seed=5)
    scores = model.predict_proba(of).numpy()
    return model.predictor.arrays() | {"scores": scores}, [entry.to_json() for entry in model.certificate.releases]


@pytest.mark.parametrize("method, promise", METHODS, ids=lambda one: getattr(one, "name", None) or one.level)
def test_releases_are_equal_bit_for_bit_with_workers_and_when_they_die(graph, folders, tmp_path, method, promise):
    expected, ledger = released(method, promise, graph)
    if method.name == "ballot":
        assert len(expected["receivers"])  # the graph was used
    places = [(Local(2), folder) for folder in folders.values()]
    places += [(Ray(records=BLOCK, rows=3000), None), (Ray(), folders[16])]
    deadly = Deadly(rows=3000)
    deadly.graves = tmp_path
    if promise is PROMISE:  # at edge level tasks are of the same kinds
        places.append((deadly, folders[16]))
    for where, folder in places:
        with engine.using(where):
            found, entries = released(method, promise, graph if folder is None else open_folder(folder))
        assert all(np.array_equal(found[name], expected[name]) for name in expected), (where, folder)
        assert entries == ledger
    along_lists = (
        {_sorted, _added} if method.name in ("ballot", "gap") else set()
    )  # where messages go along lists there
    died = {_answer, *along_lists} if promise is PROMISE else set()
    assert {grave.name for grave in tmp_path.iterdir()} == {task.__name__ for task in died}


def test_a_task_that_is_lost_for_good_is_one_line(graph, tmp_path):
    deadly = Deadly(records=BLOCK, retries=0)
    deadly.graves = tmp_path
    with engine.using(deadly), pytest.raises(GraphveilError, match="lost for good") as told:
        engine.total(graph, lambda block: np.ones(1))
    assert "\n" not in str(told.value)


def test_an_audit_replays_on_workers():
    with engine.using(Ray(records=8)):
        report = check_private_method(gv.DpMlp(steps=1), [gv.NodeLevel(4.0, 1e-4)])
    assert max(report.largest.values()) > 0.98


def test_a_query_travels_once_and_hands_out_the_labels_of_the_curator(graph, folders):
    """The files hold every label; what a query may read is what the curator's graph says."""
    pickled = []

    class Counted:
        def __reduce__(self):
            pickled.append(1)
            return int, (0,)

    stored, counted = open_folder(folders[16]), Counted()
    readable = stored.masks["train"]
    object.__setattr__(stored, "labels", np.where(readable, stored.labels, -1))
    everybody = np.ones(NODES, dtype=bool)
    with engine.using(Ray()):
        seen = engine.gathered(stored, lambda block: block.labels + int(counted == 1), everybody)
    assert np.array_equal(seen, stored.labels) and (seen >= 0).any() and not (seen[~readable] >= 0).any()
    assert len(pickled) == 1


def test_rows_in_memory_are_stored_once_and_cannot_be_written_to(graph):
    where, unlabelled = Ray(records=BLOCK), replace(graph, labels=np.full(NODES, -1))
    with engine.using(where):
        for shown in (graph, unlabelled):
            writable = lambda block: np.array([[block.lists.entries.flags.writeable, block.labels.flags.writeable]])
            found = np.concatenate(list(engine.each(shown, writable)))
            assert not found.any() and len(found) == len(where.spans(graph)) == 14
        kept = len(where._shared)
    assert kept == 4  # two graphs, and once their rows and their lists


def test_no_more_blocks_are_under_way_than_there_is_room(graph, tmp_path):
    def begun(block):
        (tmp_path / str(block.slots.start)).touch()
        return np.ones(1)

    with engine.using(Ray(records=BLOCK, room=3)):
        answers = engine.each(graph, begun)
        next(answers)
        time.sleep(1.0)
        assert len(list(tmp_path.iterdir())) <= 1 + 3
        assert len(list(answers)) == 13


def test_noise_does_not_leave_the_process_and_errors_come_back_as_they_are(graph, folders, tmp_path):
    noise = Noise(3)
    with engine.using(Ray(records=BLOCK)):
        with pytest.raises(PrivacyError, match="copy of a noise stream"):
            engine.total(graph, lambda block: noise.gaussian(1.0, 3))
        save_folder(graph, tmp_path / "f", 2)
        lost = open_folder(tmp_path / "f")
        next((tmp_path / "f").glob("*.parquet")).unlink()
        with pytest.raises(InputError, match="cannot be read") as told:
            METHODS[0][0].fit(lost, PROMISE, seed=5)
    assert "\n" not in str(told.value) and "Traceback" not in str(told.value)


def test_the_command_line_trains_and_predicts_on_workers(graphveil, folders, tmp_path):
    flags = ("--data", folders[16], "--epsilon", 8, "--seed", 5, "--json", "--set", "steps=5")
    told, tables = [], []
    for name, where in (("here", ()), ("there", ("--engine", "ray"))):
        code, text, err = graphveil("train", "ballot", *flags, "--out", tmp_path / name, *where)
        assert code == 0, err
        told.append({key: value for key, value in json.loads(text).items() if key not in ("seconds", "out")})
        code, text, err = graphveil("predict", tmp_path / name, "--data", folders[16], *where)
        assert code == 0, err
        tables.append(text)
    assert told[0] == told[1] and tables[0] == tables[1]
    assert (tmp_path / "here" / "ledger.jsonl").read_bytes() == (tmp_path / "there" / "ledger.jsonl").read_bytes()
