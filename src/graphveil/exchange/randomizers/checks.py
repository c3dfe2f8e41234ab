"""What is wrong with reports that no client can have made: the checks that randomizers share.

A check yields *defects*: a mask over the reports, and the reason why those cannot be. A report is refused for the first of its
defects; whatever is not refused could have been drawn. Where reports do not have the form at all (a list instead of numbers,
text, another width) the first defect is everybody's, and later masks are empty.
Tests: ``tests/exchange/test_check_report.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from graphveil.exchange.randomizers.base import Contacts

Defects = Iterator[tuple[np.ndarray, str]]
LAPLACE_REACH = 700.0  # scales; noise beyond has probability e^-700
LARGEST = float(np.finfo(np.float32).max)  # graph files keep single precision
BLOCK = 1 << 17  # numbers read at a time, so that they are still in the cache
GAUSSIAN_REACH = 40.0  # standard deviations; noise beyond has probability below e^-800


def reasons(defects: Defects) -> dict[int, str]:
    """Why reports are refused, by their number: the first defect of each."""
    found: dict[int, str] = {}
    with np.errstate(all="ignore"):  # what is computed with an absurd number is absurd, and refused
        for mask, reason in defects:
            for number in np.flatnonzero(mask).tolist():
                found.setdefault(number, reason)
    return found


def classes(reports: Any, number: int) -> Defects:
    """One class 0 .. ``number`` - 1 each."""
    if not isinstance(reports, np.ndarray) or reports.ndim != 1 or reports.dtype.kind not in "iu":
        yield everybody(reports), "not a class number"
    else:
        yield np.asarray((reports < 0) | (reports >= number)), f"a class outside 0..{number - 1}"


def numbers(reports: Any, width: int) -> Defects:
    """``width`` numbers each, finite in single precision, dense or sparse."""
    if not _is_table(reports):
        yield everybody(reports), f"not a row of {width} numbers"
    elif reports.shape[1] != width:
        yield everybody(reports), f"{reports.shape[1]} numbers instead of {width}"
    else:
        wrong = counted(reports, width, lambda values: ~(np.abs(values) <= LARGEST))
        yield wrong > 0, "a number that is empty or not finite"


def filled(reports: Any, width: int) -> tuple[np.ndarray, np.ndarray]:
    """The entries that are not 0, each with the number of its report; none if the form is wrong."""
    if not _fits(reports, width):
        return np.empty(0, dtype=np.int64), np.empty(0)
    if sp.issparse(reports):
        table = reports.tocoo()
        there = table.data != 0
        return table.row[there].astype(np.int64), table.data[there].astype(np.float64)
    owners, columns = np.nonzero(reports)
    return owners, reports[owners, columns].astype(np.float64)


def counted(reports: Any, width: int, chosen: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """How many entries of each report are ``chosen``, which 0 never is; dense reports are read some rows at a time."""
    if sp.issparse(reports) or not _fits(reports, width):
        owners, values = filled(reports, width)
        return count_of(owners, chosen(values), reports)
    found, step = np.empty(len(reports), dtype=np.int64), max(1, BLOCK // max(width, 1))
    for start in range(0, len(reports), step):
        here = reports[start : start + step].astype(np.float64, copy=False)
        found[start : start + step] = np.count_nonzero(chosen(here), axis=1)
    return found


def how_many(reports: Any, width: int) -> np.ndarray:
    """How many entries of each report are not 0; nothing if the form is wrong."""
    return np.bincount(filled(reports, width)[0], minlength=reports.shape[0] if _fits(reports, width) else 0)


def within(reports: Any, width: int, lowest: float, highest: float, cell: float) -> Defects:
    """Multiples of ``cell`` from ``lowest`` to ``highest``; entries that are not there are 0, and no table is built of them."""
    owners, values = filled(reports, width)
    far = "a number farther away than any noise goes"
    if not lowest <= 0 <= highest:
        yield how_many(reports, width) < width, far
    yield some(owners, (values < lowest) | (values > highest), reports), far
    cells = values / cell
    yield some(owners, cells != np.rint(cells), reports), "a number that is not on the public grid"


def lists(reports: Any, slots: int) -> Defects:
    """Contacts among the slots 0 .. ``slots`` - 1."""
    if not _is_lists(reports):
        yield everybody(reports), "not a list of contacts"
    else:
        outside = (reports.targets < 0) | (reports.targets >= slots)
        yield (
            some(reports.owners, outside, reports),
            f"a contact outside the {slots} who take part: unknown neighbour id",
        )


def sorted_lists(reports: Any, slots: int, *, twice: bool) -> Defects:
    """Such contacts in the order of the slots, each once or perhaps ``twice``."""
    yield from lists(reports, slots)
    if _is_lists(reports):
        owners, steps = reports.owners[1:], np.diff(reports.targets)
        wrong = (owners == reports.owners[:-1]) & ((steps < 0) | ((steps == 0) & (not twice)))
        yield some(owners, wrong, reports), "contacts that are not sorted" if twice else "contacts not sorted, or twice"


def some(owners: np.ndarray, wrong: np.ndarray, reports: Any) -> np.ndarray:
    """Which reports own an entry that is wrong."""
    return count_of(owners, wrong, reports) > 0


def count_of(owners: np.ndarray, chosen: np.ndarray, reports: Any) -> np.ndarray:
    """How many of the chosen entries every report owns."""
    return np.bincount(owners[chosen], minlength=count(reports))


def _is_table(reports: Any) -> bool:
    plain = sp.issparse(reports) or (isinstance(reports, np.ndarray) and reports.ndim == 2)
    return plain and reports.dtype.kind in "iuf"


def _fits(reports: Any, width: int) -> bool:
    return _is_table(reports) and reports.shape[1] == width


def _is_lists(reports: Any) -> bool:
    starts, targets = getattr(reports, "starts", None), getattr(reports, "targets", None)
    if not all(isinstance(one, np.ndarray) and one.ndim == 1 and one.dtype.kind in "iu" for one in (starts, targets)):
        return False
    found: Contacts = reports
    ends = len(found.starts) and found.starts[0] == 0 and found.starts[-1] == len(found.targets)
    return bool(ends and (np.diff(found.starts.astype(np.int64)) >= 0).all())


def count(reports: Any) -> int:
    return int(reports.shape[0]) if hasattr(reports, "shape") else len(reports)


def everybody(reports: Any) -> np.ndarray:
    """The mask of all reports."""
    return np.ones(count(reports), dtype=bool)
