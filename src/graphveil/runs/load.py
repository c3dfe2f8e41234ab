"""A model from the folder that ``Model.save`` wrote."""

from __future__ import annotations

from pathlib import Path

from graphveil.errors import InputError
from graphveil.files import read_json
from graphveil.methods.model import Model
from graphveil.methods.registry import build
from graphveil.runs.local_verify import read_certificate


def load_model(path: str | Path) -> Model:
    """A model saved by :meth:`Model.save`."""
    from safetensors.numpy import load_file

    folder = Path(path)
    config = read_json(folder / "model.json")
    certificate = read_certificate(read_json(folder / "certificate.json"))
    try:
        arrays = load_file(folder / "model.safetensors")
    except Exception as error:  # safetensors raises its own, undocumented types
        raise InputError(f"{folder / 'model.safetensors'} cannot be read: {error}") from None
    try:
        method = build(config["method"], config["parameters"])
        return Model(method, method.restore(config["predictor"], arrays), certificate)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{folder / 'model.json'} is damaged: {type(error).__name__}: {error}") from None
