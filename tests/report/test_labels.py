"""Names never overlap, and stay as near to their lines as that allows."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from graphveil.report.labels import beside, overlap, spread

places = st.lists(st.tuples(st.floats(0, 100), st.floats(1, 8)), min_size=1, max_size=8)


@given(places)
def test_spread_names_do_not_overlap_and_stay_in_the_frame(wanted):
    centres, heights = zip(*wanted, strict=True)
    found = spread(centres, heights, 0, 100)
    boxes = sorted((y - h / 2, y + h / 2) for y, h in zip(found, heights, strict=True))
    assert boxes[0][0] >= -1e-9 and boxes[-1][1] <= 100 + 1e-9
    assert all(above[0] >= below[1] - 1e-9 for below, above in itertools.pairwise(boxes))


def test_spread_is_the_least_squares_solution():
    wanted, heights = np.array([50.0, 51.0, 51.5, 80.0, 99.0]), np.array([4.0, 6.0, 4.0, 4.0, 4.0])
    apart = [
        {"type": "ineq", "fun": lambda y, i=i: y[i + 1] - y[i] - (heights[i] + heights[i + 1]) / 2} for i in range(4)
    ]
    edges = [(h / 2, 100 - h / 2) for h in heights]
    best = minimize(lambda y: np.sum((y - wanted) ** 2), wanted, bounds=edges, constraints=apart, tol=1e-12)
    assert np.allclose(spread(wanted, heights, 0, 100), best.x, atol=1e-4)


def test_names_that_have_room_are_not_moved():
    assert spread([90.0, 10.0, 50.0], [5.0, 5.0, 5.0], 0, 100) == [90.0, 10.0, 50.0]


def test_a_name_beside_a_point_avoids_what_is_there():
    frame = (0.0, 0.0, 100.0, 100.0)
    box, covered = beside((50, 50), (20, 8), [(52, 40, 80, 60)], frame, 4)
    assert covered == 0 and overlap(box, (52, 40, 80, 60)) == 0
    box, covered = beside((98, 50), (20, 8), [], frame, 4)
    assert covered == 0 and box[2] <= 100
