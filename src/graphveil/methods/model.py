"""What a fit returns: predictions within the rules, a certificate, and a folder without pickles."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from graphveil.errors import InputError, PrivacyError
from graphveil.files import write_json
from graphveil.graph import Graph
from graphveil.privacy.certificate import Certificate
from graphveil.privacy.ledger import Ledger
from graphveil.privacy.promise import Level

if TYPE_CHECKING:
    from torch import Tensor

    from graphveil.methods.base import PrivateMethod


class Predictor(Protocol):
    """What a fit leaves behind: released numbers, and how to score nodes with them and their own rows."""

    def logits(self, graph: Graph) -> np.ndarray: ...

    def config(self) -> dict[str, Any]: ...

    def arrays(self) -> dict[str, np.ndarray]: ...


class Access(StrEnum):
    """Who will see a prediction, and with what it is computed."""

    OWN_ROW = "own-row"  # the node itself: its own features and the releases
    PUBLIC_GRAPH = "public-graph"  # anybody: the features (and edges) given here are declared public
    CHARGE = "charge"  # anybody, with private features: a further release, to be paid for


class Model:
    """A trained method: ``predict``, ``predict_proba``, ``score``, ``certificate``, ``save``."""

    def __init__(
        self, method: PrivateMethod, predictor: Predictor, certificate: Certificate, ids: Sequence[str] | None = None
    ) -> None:
        self.method = method
        self.predictor = predictor
        self.certificate = certificate
        self.ids = None if ids is None else tuple(ids)

    def of(self, ids: Sequence[str]) -> Model:
        """The same model for slots with these ids."""
        return Model(self.method, self.predictor, self.certificate, ids)

    def predict_proba(self, data: Any = None, access: str = "own-row") -> Tensor:
        """Class probabilities of every node of ``data``, one row each; without data, those that anybody may see."""
        import torch

        wanted = self._check(access if data is not None else Access.CHARGE)
        if data is None:
            shown = self._paid_logits()
            if shown is None:
                raise InputError(f"{self.method.name} predicts from a graph: give the data")
            return torch.softmax(torch.from_numpy(shown), dim=1)
        graph = as_graph(data, need_training=False)
        facts = self.certificate.facts
        transfers = getattr(self.predictor, "transfers", False)  # weights only: no table of the training graph's nodes
        if graph.features != facts.features or (graph.nodes != facts.nodes and not transfers):
            raise InputError(
                f"the model was trained on {facts.nodes} nodes with {facts.features} features, these data have "
                f"{graph.nodes} with {graph.features}; releases of one graph say nothing about another"
            )
        paid = self._paid_logits() if wanted is Access.CHARGE else None
        logits = self.predictor.logits
        if wanted is Access.PUBLIC_GRAPH:
            logits = getattr(self.predictor, "graph_logits", logits)  # may also read the edges given here
        return torch.softmax(torch.from_numpy(logits(graph) if paid is None else paid), dim=1)

    def predict(self, data: Any = None, access: str = "own-row") -> Tensor:
        """The most probable class of every node of ``data``, or of every slot as anybody may see it."""
        return self.predict_proba(data, access).argmax(dim=1)

    def score(self, data: Any, kind: str = "query", access: str = "own-row") -> float:
        """Exact accuracy on labelled nodes of one kind; a figure on private labels that no promise covers."""
        return self.scores(data, kind, access)["accuracy"]

    def scores(self, data: Any, kind: str = "query", access: str = "own-row") -> dict[str, float]:
        """Exact accuracy and macro F1 on labelled nodes of one kind; not covered by the promise."""
        from sklearn.metrics import f1_score

        graph = as_graph(data)
        chosen = graph.masks[kind] & (graph.labels >= 0)
        if not chosen.any():
            raise InputError(f"there is no labelled {kind} node to score on")
        guess, truth = self.predict(graph, access).numpy()[chosen], graph.labels[chosen]
        return {
            "accuracy": float(np.mean(guess == truth)),
            "f1": float(f1_score(truth, guess, average="macro", zero_division=0.0)),
        }

    def save(self, path: str | Path) -> None:
        """Write certificate, ledger, configuration and released arrays into the folder ``path``."""
        from safetensors.numpy import save_file

        folder = Path(path)
        open_run_folder(folder)
        if not (folder / "ledger.jsonl").exists():
            ledger = Ledger(folder / "ledger.jsonl")
            for release in self.certificate.releases:
                ledger.append(release)
            (folder / "ledger.jsonl").touch()
        arrays = {name: np.ascontiguousarray(value) for name, value in self.predictor.arrays().items()}
        save_file(arrays, folder / "model.safetensors")
        config = {
            "method": self.method.name,
            "parameters": self.method.get_params(),
            "predictor": self.predictor.config(),
        }
        write_json(folder / "model.json", config)
        write_json(folder / "certificate.json", self.certificate.to_json())
        if self.ids is not None:
            write_json(folder / "ids.json", list(self.ids))
        write_json(folder / "manifest.json", file_digests(folder))

    def _check(self, access: str) -> Access:
        """The access by name, refused where no promise covers it."""
        try:
            wanted = Access(access)
        except ValueError:
            raise InputError(f"unknown access {access!r}; known are: {', '.join(Access)}") from None
        if self.certificate.promise.level is Level.EDGE:
            return wanted
        parameters = self.certificate.parameters
        if wanted is Access.CHARGE and self._paid_logits() is None:
            offer = ", or train with publish='noisy'" if "publish" in parameters else ""
            raise PrivacyError(
                f"{self.method.name} cannot charge for publishing predictions computed from private features; "
                f"give each node its own prediction (own-row), declare the features public (public-graph){offer}"
            )
        if wanted is Access.PUBLIC_GRAPH and parameters.get("query_features", "public") != "public":
            raise PrivacyError(
                f"this {self.method.name} run was made for private query features; train with query_features='public' "
                "if they are public, or give each node its own prediction (own-row)"
            )
        return wanted

    def _paid_logits(self) -> np.ndarray | None:
        """Scores that may be given to anybody because the run has paid for them, if there are any."""
        published = getattr(self.predictor, "public_logits", None)
        return None if published is None else published(self.certificate.facts.nodes)

    def __repr__(self) -> str:
        return f"Model({self.method!r}, epsilon={self.certificate.epsilon}, holds={self.certificate.holds})"


def as_graph(data: Any, need_training: bool = True) -> Graph:
    """The data as a validated graph, rows that are not finite set to zero."""
    from graphveil.graph.validate import validate

    return data if isinstance(data, Graph) else validate(data, on_bad_rows="zero", need_training=need_training)


def open_run_folder(folder: Path) -> None:
    """Create the folder of a run; refuse one that already holds a finished run."""
    if (folder / "certificate.json").exists():
        raise InputError(f"{folder} already holds a run; choose another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be created: {error.strerror}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"the folder {folder} is not writable")


def file_digests(run: Path) -> dict[str, str]:
    """SHA-256 of the files of a run, all of which hold released values only."""
    names = ("certificate.json", "ledger.jsonl", "model.json", "model.safetensors", "ids.json")
    return {name: hashlib.sha256((run / name).read_bytes()).hexdigest() for name in names if (run / name).is_file()}
