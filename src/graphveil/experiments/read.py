"""From a file to a checked experiment: YAML or TOML, and errors that name file, field and fix."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from graphveil.errors import InputError
from graphveil.experiments.spec import Experiment

FIX = {
    "missing": "is missing: add it",
    "extra_forbidden": "is not known here: is it misspelled? docs/experiments.md lists the fields",
}


def read_experiment(path: str | Path) -> Experiment:
    """The experiment in a file."""
    path = Path(path)
    return experiment_from(read_table(path), str(path))


def experiment_from(body: Any, where: str) -> Experiment:
    """The experiment that a table describes; ``where`` is named in errors."""
    if not isinstance(body, dict):
        raise InputError(f"{where}: an experiment is a table of fields (name, methods, data, promises, seeds)")
    try:
        return Experiment.model_validate(body)
    except ValidationError as error:
        raise InputError("; ".join(f"{where}: {line}" for line in _lines(error))) from None


def read_table(path: Path) -> Any:
    """What a YAML or TOML file holds, or one clear line."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; give a specification, .yaml or .toml (docs/experiments.md)") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    if path.suffix == ".toml":
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{path} is not TOML: {error}") from None
    if path.suffix in (".yaml", ".yml"):
        import yaml

        try:
            return yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise InputError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    raise InputError(f"{path}: a specification ends in .yaml, .yml or .toml")


def _lines(error: ValidationError) -> list[str]:
    found = []
    for problem in error.errors():
        place = ".".join(str(part) for part in problem["loc"] if not str(part).startswith("function-"))
        message = problem["msg"].removeprefix("Value error, ")
        given = problem.get("input")
        shown = f", got {given!r}" if isinstance(given, (str, int, float)) and repr(given) not in message else ""
        text = FIX.get(problem["type"], message + shown)
        found.append(f"{place}: {text}" if place else text)
    return list(dict.fromkeys(found))[:5]
