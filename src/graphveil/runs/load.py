"""A model, or its certificate alone, from the folder that ``Model.save`` wrote."""

from __future__ import annotations

from pathlib import Path

import graphveil.exchange.randomizers  # noqa: F401  rounds on certificates name randomizers by kind
from graphveil.errors import InputError
from graphveil.files import read_json
from graphveil.methods.alignment import Order
from graphveil.methods.base import PrivateMethod
from graphveil.methods.model import Model
from graphveil.methods.options import accepts
from graphveil.methods.registry import build, method_class
from graphveil.methods.run_folder import CURATOR, IDS, OWN_ROWS, read_arrays
from graphveil.privacy.certificate import Certificate


def read_certificate(run: Path) -> Certificate:
    """The certificate in a run folder."""
    return Certificate.from_json(read_json(run / "certificate.json"))


def method_of(certificate: Certificate, earlier: bool = False) -> PrivateMethod:
    """The method that made a run, with its options; ``earlier``: options that are no longer there are left out."""
    options = dict(certificate.parameters)
    if earlier:
        known = method_class(certificate.method, certificate.mode)
        options = {name: value for name, value in options.items() if accepts(known, name, value)}
    try:
        return build(certificate.method, options)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"the certificate cannot be read: {type(error).__name__}: {error}") from None


def load_model(path: str | Path) -> Model:
    """A model saved by :meth:`Model.save`."""
    folder = Path(path)
    config = read_json(folder / "model.json")
    certificate = read_certificate(folder)
    arrays = read_arrays(folder / "model.safetensors")
    if config.get("own_rows") or config.get("in_the_clear"):
        kept = folder / CURATOR / OWN_ROWS
        if not kept.exists() and config.get("own_rows"):
            named = ", ".join(certificate.own_rows)
            raise InputError(f"row r of {named} is for node r alone and stays with the curator: {kept} is not here")
        if not kept.exists():
            raise InputError(f"what people sent in the clear stays with whoever collected it: {kept} is not here")
        arrays |= read_arrays(kept)
    try:
        method = build(config["method"], config["parameters"])
        ids = read_json(folder / "ids.json") if (folder / "ids.json").exists() else None
        kept = folder / CURATOR / IDS
        order = Order.from_json(read_json(kept)) if kept.exists() else None
        names = config.get("class_names")
        model = Model(method, method.restore(config["predictor"], arrays), certificate, ids, order, names)
        return model.weighing(config["class_weights"]) if "class_weights" in config else model
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{folder / 'model.json'} is damaged: {type(error).__name__}: {error}") from None
