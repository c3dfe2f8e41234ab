"""Graph files broken at random: one clear line or a graph that keeps every rule, never a traceback."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphveil.errors import GraphveilError
from graphveil.graph import load_dataset, powerlaw_sbm
from graphveil.graph.formats.npz import layout_problem, pack, read_arrays
from graphveil.graph.layout import write_npz
from graphveil.graph.validate import validate
from tests.fuzz.budget import bounded

VALUES = st.one_of(
    st.integers(-3, 40),
    st.sampled_from([-(2**31), 2**31 - 1, 2**63 - 1, -(2**63)]),
    st.floats(width=32),
    st.booleans(),
    st.text(max_size=3),
)
SHAPES = st.lists(st.integers(0, 4), max_size=3).map(tuple)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    data = powerlaw_sbm(1, nodes=30, features=4, classes=3)
    data.y[:5] = -1
    path = tmp_path_factory.mktemp("fuzz") / "graph.npz"
    write_npz(data, path)
    return path


def read_or_refused(path):
    """A graph that every method would take, or an error in one line."""
    try:
        data = load_dataset(str(path), seed=0)
        graph = validate(data)
    except GraphveilError as error:
        assert "\n" not in str(error)
        return None
    assert graph.labels.shape == (graph.nodes,) and graph.labels.max(initial=-1) < graph.classes
    assert layout_problem(read_arrays(path)) is None
    return graph


def test_the_whole_file_is_read(whole):
    assert read_or_refused(whole) is not None


@bounded
@given(st.data())
def test_bytes_that_were_changed_or_lost(whole, tmp_path_factory, data):
    content = bytearray(whole.read_bytes())
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=4)):
        content[place] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("f") / "graph.npz"
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content)
    read_or_refused(path)


@bounded
@given(st.data())
def test_arrays_that_were_exchanged(whole, tmp_path_factory, data):
    with np.load(io.BytesIO(whole.read_bytes())) as archive:
        arrays = dict(archive)
    for name in data.draw(st.lists(st.sampled_from(sorted(arrays) + ["directed", "num_classes", "notes"]), max_size=3)):
        kind = data.draw(st.sampled_from(["gone", "value", "entry", "type", "shape"]))
        old = arrays.get(name, np.zeros(3, dtype=np.int64))
        if kind == "gone":
            arrays.pop(name, None)
        elif kind == "value" or not old.size:
            shape = data.draw(SHAPES)
            arrays[name] = np.full(shape, data.draw(VALUES))
        elif kind == "entry":
            changed = old.copy().reshape(-1)
            value = data.draw(VALUES)
            try:
                changed[data.draw(st.integers(0, changed.size - 1))] = value
            except (OverflowError, ValueError):
                continue
            arrays[name] = changed.reshape(old.shape)
        elif kind == "type":
            wanted = data.draw(st.sampled_from(["f8", "i1", "u8", "?", "U3", "c8", "M8[s]"]))
            try:
                with np.errstate(invalid="ignore", over="ignore"):
                    arrays[name] = (old.real if old.dtype.kind == "c" else old).astype(wanted)
            except (TypeError, ValueError, RuntimeError):
                continue
        else:
            arrays[name] = old.reshape(-1)[: data.draw(st.integers(0, old.size))]
    path = tmp_path_factory.mktemp("f") / "graph.npz"
    pack({name: array for name, array in arrays.items() if array.dtype != object}, path)
    read_or_refused(path)
