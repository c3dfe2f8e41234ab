"""Saved runs broken or forged at random: ``verify`` says what is wrong or refuses in a line, and passes no changed promise."""

import copy
import json
import shutil
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphveil as gv
from graphveil.audit.central.neighbours import worst_case_graph
from graphveil.errors import GraphveilError
from graphveil.runs.verify import check_run
from tests.fuzz.budget import bounded
from tests.runs.forging import forge

RUNS = {
    "gap": (gv.Gap(steps=2), gv.NodeLevel(4.0)),
    "ballot": (gv.Ballot(steps=2, combiner_steps=2), gv.NodeLevel(4.0)),
    "lpgnn": (gv.Lpgnn(epochs=1), gv.Local(1, 1, "raw")),
}
UNKNOWN = {"seed", "holders", "facts", "digest"}  # what no check can know; verify says that it goes by these
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.floats(-1e3, 1e3), st.text(max_size=4), st.just([]), st.just({})
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder, data = tmp_path_factory.mktemp("runs"), worst_case_graph(seed=7)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (method, promise) in RUNS.items():
            method.fit(data, promise).save(folder / name)
            assert check_run(folder / name).disagreements == ()
    return folder


def copied(runs, name, tmp_path_factory):
    target = tmp_path_factory.mktemp("f") / "run"
    shutil.copytree(runs / name, target)
    return target


def passes(run):
    """Whether ``verify`` has nothing to say against the run; whatever it says is one line each."""
    try:
        verdict = check_run(run)
    except GraphveilError as error:
        assert "\n" not in str(error)
        return False
    assert not any("\n" in line for line in verdict.disagreements)
    return not verdict.disagreements


def places(body, path=()):
    """Every path into a JSON value."""
    yield path
    inside = body.items() if isinstance(body, dict) else enumerate(body) if isinstance(body, list) else ()
    for key, value in inside:
        yield from places(value, (*path, key))


def changed(body, path, value):
    """``body`` with another value there; None deletes it."""
    body = copy.deepcopy(body)
    *before, last = path
    holder = body
    for key in before:
        holder = holder[key]
    if value is None:
        del holder[last]
    else:
        holder[last] = value
    return body


@bounded
@given(st.data())
def test_bytes_of_a_run_that_were_changed_or_lost(runs, tmp_path_factory, data):
    name = data.draw(st.sampled_from(sorted(RUNS)))
    run = copied(runs, name, tmp_path_factory)
    path = data.draw(st.sampled_from(sorted(p for p in run.rglob("*") if p.is_file())))
    content = path.read_bytes()
    broken = bytearray(content)
    for place in data.draw(st.lists(st.integers(0, len(broken) - 1), max_size=3)):
        broken[place] = data.draw(st.integers(0, 255))
    broken = broken[: data.draw(st.integers(0, len(broken)))] if data.draw(st.booleans()) else broken
    path.write_bytes(broken)
    passed = passes(run)
    assert not passed or bytes(broken) == content or path.suffix in (".json", ".jsonl"), path
    try:
        gv.load_model(run)
    except GraphveilError as error:
        assert "\n" not in str(error)


@bounded
@given(st.data())
def test_fields_that_a_forger_changed_and_signed_again(runs, tmp_path_factory, data):
    name = data.draw(st.sampled_from(sorted(RUNS)))
    run = copied(runs, name, tmp_path_factory)
    body = json.loads((run / "certificate.json").read_text())
    path = data.draw(st.sampled_from([path for path in places(body) if path]))
    value = data.draw(VALUES)
    forged = changed(body, path, value)
    try:
        forge(run, lambda certificate: (certificate.clear(), certificate.update(forged)))
    except (KeyError, TypeError):
        return  # no ledger can be written from this
    # an adaptive plan may leave out slots or use smaller shares of them, and fewer people may report than were asked
    left_out = (len(path) == 2 and value is None) or (len(path) == 1 and value == [])
    adaptive = name == "ballot" and path[0] == "releases" and (path[-1] == "sigma" or left_out)
    free = adaptive or path[-1] == "reporters"
    assert not passes(run) or same(forged, body) or path[0] in UNKNOWN or free, path


def same(one, other):
    """Equal as JSON, up to the last digits that verify allows."""
    if isinstance(one, float | int) and isinstance(other, float | int) and not isinstance(one, bool):
        return abs(one - other) <= 1e-6 * abs(other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other
