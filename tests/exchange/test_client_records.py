"""A client refuses records that its randomizers cannot read, in one line that does not quote them."""

import numpy as np
import pytest
import scipy.sparse as sp

from graphveil.errors import GraphveilError, InputError
from graphveil.exchange.client import Client
from graphveil.exchange.randomizers import (
    BucketResponse,
    Contacts,
    Direction,
    EdgeListResponse,
    LabelHistogram,
    LabelResponse,
    LaplaceRows,
    MultiBit,
    NeighbourMean,
    Piecewise,
)
from graphveil.exchange.records import Records
from graphveil.exchange.round import Round
from graphveil.graph.formats.tables import TableFile
from graphveil.privacy.local import Part
from graphveil.privacy.noise import Noise

SECRET = 31337
ROWS = [MultiBit(1.0, 3), Piecewise(1.0, 3), LaplaceRows(1.0, 3), LaplaceRows(1.0, 3, norm=1.0), Direction(1.0, 3)]
LISTS = [
    (BucketResponse(1.0, 2), np.array([0, 1, 0, 1])),
    (LabelHistogram(1.0, 2), np.array([0, 1, 0, 1])),
    (NeighbourMean(1.0, 2), np.eye(4)[:, :2]),
    (EdgeListResponse(1.0, 4), None),
]
name = lambda value: type(value).__name__


def refused(part, randomizer, record, broadcast=None):
    """What the client of two vertices says, one line without the private value."""
    with pytest.raises(InputError) as caught:
        Client([0, 1], {part: record}, [Round("round", part, randomizer)], Noise()).report("round", broadcast)
    said = str(caught.value)
    assert "\n" not in said and str(SECRET) not in said and "secret" not in said
    return said


@pytest.mark.parametrize("randomizer", ROWS, ids=name)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_clients_refuse_nan_and_infinity(randomizer, bad):
    rows = np.array([[0.0, 1.0, 0.0], [SECRET, bad, 0.0]])
    assert "not finite" in refused(Part.FEATURES, randomizer, rows)
    assert "not finite" in refused(Part.FEATURES, randomizer, sp.csr_matrix(rows))


@pytest.mark.parametrize("randomizer", ROWS, ids=name)
@pytest.mark.parametrize("width", [0, 1, 2, 4])
def test_clients_refuse_wrong_widths(randomizer, width):
    said = refused(Part.FEATURES, randomizer, np.full((2, width), float(SECRET)))
    assert f"{width} attributes, the randomizer is for 3" in said


@pytest.mark.parametrize("rows", [[["secret", "0", "0"]] * 2, [[SECRET, 0, 0], [0, 0]], [[None, object(), 0]] * 2])
def test_clients_refuse_features_that_are_no_numbers(rows):
    refused(Part.FEATURES, MultiBit(1.0, 3), rows)


@pytest.mark.parametrize("bad", [SECRET, -SECRET, -2, 3, 0.5, 1e300, float("nan"), float("inf"), "secret", None])
def test_clients_refuse_labels_outside_the_classes(bad):
    refused(Part.LABELS, LabelResponse(1.0, 3), [0, bad])


@pytest.mark.parametrize(("randomizer", "broadcast"), LISTS, ids=name)
@pytest.mark.parametrize("bad", [4, SECRET, -1, -SECRET, 1.5, float("nan"), "secret", None])
def test_clients_refuse_contacts_outside_the_slots(randomizer, broadcast, bad):
    refused(Part.EDGES, randomizer, [[1], [0, bad]], broadcast)
    if isinstance(bad, int):
        refused(Part.EDGES, randomizer, Contacts(np.array([0, 1, 3]), np.array([1, 0, bad])), broadcast)


@pytest.mark.parametrize(
    "row",
    [
        "1,secret,0,31337",
        "1,0.5,0,secret",
        "1,0.5,0,31337",
        "1,0.5,0,1,secret",
        "1,0.5,0,-31337",
        "1,nan,0,1",
        "1,,0,1",
    ],
)
def test_tables_of_records_are_refused_without_quoting_them(tmp_path, row):
    path = tmp_path / "records.csv"
    path.write_text(f"id,w0,w1,group\n{row}\n2,0.5,0,1\n")
    source = Records(TableFile(path), features=("w*",), label="group", classes=3)
    with pytest.raises(GraphveilError) as caught:
        list(source.batches(["w0", "w1"]))
    said = str(caught.value)
    assert "records.csv" in said and "secret" not in said and str(SECRET) not in said and "\n" not in said
