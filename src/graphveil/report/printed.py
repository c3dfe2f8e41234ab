"""Figures out of papers, to be drawn beside measured ones."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from graphveil.errors import InputError

COLUMNS = ("dataset", "level", "method", "epsilon", "accuracy", "source")


@dataclass(frozen=True)
class Printed:
    """The accuracy (0 to 1) of a method in a paper, and what to write beside it.

    ``level``: that of the promise, in the local model with the part that has the epsilon, as in ``local features``.
    """

    dataset: str
    epsilon: float
    value: float
    source: str
    method: str = ""
    level: str = "node"


def read_printed(path: Path) -> list[Printed]:
    """The figures of a CSV file with these columns: dataset, level, method, epsilon, accuracy (in percent), source."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
            if missing:
                raise InputError(f"{path} has no column {', '.join(missing)}; it needs {', '.join(COLUMNS)}")
            found = []
            for line in reader:
                try:
                    numbers = float(line["epsilon"]), float(line["accuracy"]) / 100
                except (TypeError, ValueError):
                    told = f"{path}, line {reader.line_num}: epsilon and accuracy must be numbers"
                    raise InputError(told) from None
                found.append(Printed(line["dataset"], *numbers, line["source"], line["method"], line["level"]))
            return found
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
