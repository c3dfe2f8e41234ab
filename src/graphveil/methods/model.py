"""What a fit returns: predictions within the rules, a certificate, and a folder without pickles."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from graphveil.errors import DataWarning, InputError, PrivacyError
from graphveil.files import write_json
from graphveil.graph import Graph
from graphveil.methods.alignment import IN_ORDER, NOT_ALIGNED, Order
from graphveil.methods.run_folder import file_digests, keep_with_curator, open_run_folder, write_arrays
from graphveil.notebook import table
from graphveil.privacy.certificate import Certificate
from graphveil.privacy.certificate_text import SEEDED
from graphveil.privacy.ledger import Ledger
from graphveil.privacy.promise import Level

if TYPE_CHECKING:
    from torch import Tensor

    from graphveil.exchange.files import Files
    from graphveil.methods.base import PrivateMethod
    from graphveil.methods.common.gnn_api import GnnApi


class Predictor(Protocol):
    """What a fit leaves behind: released numbers, and how to score nodes with them and their own rows.

    ``slot_arrays``, if it has one, names the arrays with a row for every slot of the training graph; ``transfers`` says that
    there are none. Whoever says neither is taken to have nothing else. ``reads_lists``: scores are computed with the node's own
    contact list, so only that node may see them. ``takes_newcomers``: people who were not in the training graph may be asked
    about, in slots behind the others, and people of the training graph may be missing: a score reads its own row and list only.
    """

    def logits(self, graph: Graph) -> np.ndarray: ...

    def config(self) -> dict[str, Any]: ...

    def arrays(self) -> dict[str, np.ndarray]: ...


class Access(StrEnum):
    """Who will see a prediction, and with what it is computed."""

    OWN_ROW = "own-row"  # the node itself: its own features and the releases
    PUBLIC_GRAPH = "public-graph"  # anybody: the features (and edges) given here are declared public
    CHARGE = "charge"  # anybody, with private features: a further release, to be paid for


OWN_FEATURES = (
    "each prediction is computed from that node's own features: show it to that node, or declare features public"
)
OWN_LIST = (
    "each prediction is computed from that node's own features and contact list, and may reveal both: show it to that node and "
    "nobody else; --access charge gives what may be shown to anybody"
)
OWN_TABLE_ROW = "each prediction reads rows that are for that node alone: show it to that node and nobody else"
ANYBODY = "these predictions are computed from released numbers and from what was declared public: anybody may see them"

NO_PROMISE = (
    "no promise holds for this run: nothing is proved about who may see these predictions, not even their own nodes"
)


class Model:
    """A trained method: ``predict``, ``predict_proba``, ``score``, ``certificate``, ``save``."""

    def __init__(
        self,
        method: PrivateMethod,
        predictor: Predictor,
        certificate: Certificate,
        ids: Sequence[str] | None = None,
        order: Order | None = None,
        class_names: Sequence[str] | None = None,
    ) -> None:
        self.method = method
        self.predictor = predictor
        self.certificate = certificate
        self.ids = None if ids is None else tuple(ids)
        self.order = order if ids is None else Order.of(ids)
        self.class_names = None if class_names is None else tuple(class_names)
        self.class_weights: dict[str, float] = {}

    def of(self, ids: Sequence[str]) -> Model:
        """The same model for slots with these ids, which its reports have and its folder keeps as they are."""
        return Model(self.method, self.predictor, self.certificate, ids, class_names=self.class_names)

    def ordered_by(self, ids: Iterable[str] | None) -> Model:
        """The same model for slots with these private ids, if there are any: it can recognise them, not tell them."""
        if ids is None:
            return self
        return Model(self.method, self.predictor, self.certificate, order=Order.of(ids), class_names=self.class_names)

    def naming(self, class_names: Sequence[str] | None) -> Model:
        """The same model with what its classes are called."""
        return Model(self.method, self.predictor, self.certificate, self.ids, self.order, class_names)

    @property
    def reads_slots(self) -> bool:
        """Whether a prediction depends on which slot of the training graph a node is in."""
        named: Sequence[str] | None = getattr(self.predictor, "slot_arrays", None)
        return not getattr(self.predictor, "transfers", False) and (named is None or bool(named))

    def predict_proba(self, data: Any = None, access: str = "own-row") -> Tensor:
        """Class probabilities of every node of ``data``, one row each; without data, those that anybody may see.

        Where releases have a row per slot, data are aligned by id; without ids rows are taken in the order of training.
        Reports of people who came later (files that ``graphveil privatize`` wrote, or :meth:`newcomers`) are scored by a local
        model: one row for each of them, in the order of their ids.
        """
        from graphveil.exchange.files import Files

        if isinstance(data, (Files, list, tuple)):
            return self.probabilities(self._newcomer_logits(data))
        wanted = self._check(access if data is not None else Access.CHARGE)
        if data is None:
            shown = self._paid_logits()
            if shown is None:
                raise InputError(f"{self.method.name} predicts from a graph: give the data")
            return self.probabilities(shown)
        graph = as_graph(data, need_training=False)
        facts = self.certificate.facts
        transfers = getattr(self.predictor, "transfers", False)  # weights only: no table of the training graph's nodes
        renewed = getattr(self.predictor, "takes_newcomers", False) and (
            graph.ids is not None or graph.nodes > facts.nodes
        )
        fits = graph.nodes == facts.nodes or transfers or renewed or not self.reads_slots
        if graph.features != facts.features or not fits:
            raise InputError(
                f"the model was trained on {facts.nodes} nodes with {facts.features} features, these data have "
                f"{graph.nodes} with {graph.features}; releases of one graph say nothing about another"
            )
        slots = self._slots_of(graph)
        newcomers = graph.nodes > facts.nodes if slots is None else bool((slots >= facts.nodes).any())
        if newcomers and self.reads_slots and wanted is not Access.OWN_ROW:
            raise InputError(
                "releases say nothing about people who came later: give these their own predictions (own-row)"
            )
        if slots is not None:
            graph = graph.placed(slots, max(facts.nodes, int(slots.max()) + 1))
        paid = self._paid_logits() if wanted is Access.CHARGE else None
        logits = self.predictor.logits
        if wanted is Access.PUBLIC_GRAPH:
            logits = getattr(self.predictor, "graph_logits", logits)  # may also read the edges given here
        found = logits(graph) if paid is None else paid
        return self.probabilities(found if slots is None else found[slots])

    def weighing(self, weights: Mapping[str, float]) -> Model:
        """The same model for somebody to whom missing a class costs so many times as much; classes not named count 1.

        Probabilities are multiplied by the weights and brought back to 1: what follows from released numbers and public
        weights, so the promise is the same.
        """
        check_weights(weights, self.class_names, self.certificate.facts.classes)
        other = Model(self.method, self.predictor, self.certificate, self.ids, self.order, self.class_names)
        other.class_weights = {name: float(weight) for name, weight in weights.items()}
        return other

    def probabilities(self, logits: np.ndarray) -> Tensor:
        """Class probabilities of these scores, classes weighed as :meth:`weighing` says."""
        import torch

        names = self.class_names or tuple(map(str, range(logits.shape[1])))
        weights = np.array([self.class_weights.get(name, 1.0) for name in names])
        return torch.softmax(torch.from_numpy(logits + np.log(weights) if self.class_weights else logits), dim=1)

    def audience(self, access: str = "own-row") -> str:
        """Who may see predictions of this access, in one sentence."""
        wanted = self._check(access)
        if self.certificate.own_rows:
            return OWN_TABLE_ROW
        if not self.certificate.holds:
            return NO_PROMISE
        if wanted is not Access.OWN_ROW or self.certificate.promise.level is Level.EDGE:
            return f"{ANYBODY}; but this run is {SEEDED}" if self.certificate.seeded else ANYBODY
        return OWN_LIST if getattr(self.predictor, "reads_lists", False) else OWN_FEATURES

    def predict(self, data: Any = None, access: str = "own-row") -> Tensor:
        """The most probable class of every node of ``data``, or of every slot as anybody may see it."""
        return self.predict_proba(data, access).argmax(dim=1)

    def score(self, data: Any, kind: str = "query", access: str = "own-row") -> float:
        """Exact accuracy on labelled nodes of one kind; a figure on private labels that no promise covers."""
        return self.scores(data, kind, access)["accuracy"]

    def scores(self, data: Any, kind: str = "query", access: str = "own-row") -> dict[str, float]:
        """Exact accuracy and macro F1 on labelled nodes of one kind; not covered by the promise."""
        from sklearn.metrics import f1_score

        guess, truth = self._compared(data, kind, access)
        return {
            "accuracy": float(np.mean(guess == truth)),
            "f1": float(f1_score(truth, guess, average="macro", zero_division=0.0)),
        }

    def recalls(self, data: Any, kind: str = "query", access: str = "own-row") -> dict[str, float]:
        """By class that occurs, the exact share of its members that were found; not covered by the promise."""
        guess, truth = self._compared(data, kind, access)
        names = self.class_names or tuple(map(str, range(self.certificate.facts.classes)))
        return {names[label]: float(np.mean(guess[truth == label] == label)) for label in np.unique(truth)}

    def _compared(self, data: Any, kind: str, access: str) -> tuple[np.ndarray, np.ndarray]:
        """Predicted and true classes of the labelled nodes of one kind."""
        if kind != "train" and kind in self.method.learns_from:
            raise InputError(f"{self.method.name} learns from {kind} nodes, too: an accuracy on them says nothing")
        graph = as_graph(data)
        chosen = graph.masks[kind] & (graph.labels >= 0)
        if not chosen.any():
            raise InputError(f"there is no labelled {kind} node to score on")
        return self.predict(graph, access).numpy()[chosen], graph.labels[chosen]

    def save(self, path: str | Path) -> None:
        """Write certificate, ledger, configuration and released arrays into the folder ``path``.

        Rows that are for one node alone, what people sent in the clear, and digests of private ids go to its folder ``curator``;
        the rest may be published.
        """
        folder = Path(path)
        open_run_folder(folder)
        if not (folder / "ledger.jsonl").exists():
            ledger = Ledger(folder / "ledger.jsonl")
            for release in self.certificate.releases:
                ledger.append(release)
            (folder / "ledger.jsonl").touch()
        arrays = self.predictor.arrays()
        clear: Sequence[str] = getattr(self.predictor, "clear_arrays", ())
        own_rows = [name for name in arrays if self.certificate.own_rows and self._has_slots(name)]
        kept = [name for name in arrays if name in own_rows or name in clear]
        write_arrays(folder / "model.safetensors", {name: arrays[name] for name in arrays if name not in kept})
        config = {
            "method": self.method.name,
            "parameters": self.method.get_params(),
            "predictor": self.predictor.config(),
            **({} if self.class_names is None else {"class_names": list(self.class_names)}),
            **({"class_weights": self.class_weights} if self.class_weights else {}),
        }
        if self.certificate.own_rows:
            config["own_rows"] = own_rows
        if clear:
            config["in_the_clear"] = list(clear)
        needed = self.order if self.ids is None and self.reads_slots else None
        private_ids = None if needed is None else needed.to_json()
        keep_with_curator(folder, {name: arrays[name] for name in kept}, private_ids)
        write_json(folder / "model.json", config)
        write_json(folder / "certificate.json", self.certificate.to_json())
        if self.ids is not None:
            write_json(folder / "ids.json", list(self.ids))
        write_json(folder / "manifest.json", file_digests(folder))

    def newcomers(self, files: Sequence[Any]) -> Files:
        """The reports of people who came after training: files, or what was read from them."""
        from graphveil.exchange.files import Files

        if not hasattr(self.predictor, "newcomers"):
            raise InputError(f"{self.method.name} has no network that scores newcomers by their reports")
        if self.ids is None and self.order is not None:
            raise InputError("the run keeps its ids to itself: newcomers cannot say whom they know")
        known = self.ids or tuple(map(str, range(self.certificate.facts.nodes)))
        return Files([Path(one) if isinstance(one, str) else one for one in files], known)

    def gnn_api(self) -> GnnApi:
        """The network of a local model, to be asked with any reports on any edges."""
        from graphveil.methods.common.gnn_api import GnnApi

        return GnnApi(self)

    def _newcomer_logits(self, data: Files | Sequence[Any]) -> np.ndarray:
        """Scores of newcomers, from rounds answered as the certificate says and no other."""
        from graphveil.exchange.files import Files
        from graphveil.exchange.round import Round
        from graphveil.privacy.local import Openness

        files = data if isinstance(data, Files) else self.newcomers(data)
        if files.known != self.certificate.facts.nodes or not hasattr(self.predictor, "newcomers"):
            raise InputError("these are no reports of newcomers to this model: give the files to model.newcomers")
        files.check({release.name: Round.of(release) for release in self.certificate.releases})
        if files.promise.labels is not Openness.WITHHELD:
            raise InputError("a newcomer who is asked about tells no label: withhold it")
        found: np.ndarray = self.predictor.newcomers(files, self.certificate.facts.directed)
        return found

    def _check(self, access: str) -> Access:
        """The access by name, refused where no promise covers it."""
        try:
            wanted = Access(access)
        except ValueError:
            raise InputError(f"unknown access {access!r}; known are: {', '.join(Access)}") from None
        if wanted is not Access.OWN_ROW and self.certificate.own_rows:
            raise PrivacyError(
                f"row r of {', '.join(self.certificate.own_rows)} is for node r alone, its noise does not cover r before "
                "others: give each node its own prediction (own-row), or train under another adjacency"
            )
        if self.certificate.promise.level is Level.EDGE:
            return wanted
        if wanted is Access.PUBLIC_GRAPH and getattr(self.predictor, "reads_lists", False):
            raise PrivacyError(
                f"a prediction of {self.method.name} reads the node's own contact list and may reveal it, whether or not its "
                "features are public: give each node its own prediction (own-row), or show what was released (charge)"
            )
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

    def _slots_of(self, graph: Graph) -> np.ndarray | None:
        """The slot of every node, by id; None if nodes are, or are taken to be, in the order of training."""
        if not self.reads_slots:
            return None
        if graph.ids is None:
            warnings.warn(IN_ORDER, DataWarning, stacklevel=4)
            return None
        if self.order is None:
            raise InputError(NOT_ALIGNED)
        slots = self.order.slots_of(graph.ids, newcomers=getattr(self.predictor, "takes_newcomers", False))
        return None if np.array_equal(slots, np.arange(graph.nodes)) else slots

    def _has_slots(self, array: str) -> bool:
        """Whether this array has a row for every slot, or nobody knows."""
        return self.reads_slots and array in getattr(self.predictor, "slot_arrays", (array,))

    def _paid_logits(self) -> np.ndarray | None:
        """Scores that may be given to anybody because the run has paid for them, if there are any."""
        published = getattr(self.predictor, "public_logits", None)
        return None if published is None else published(self.certificate.facts.nodes)

    def _repr_html_(self) -> str:
        note = getattr(self.predictor, "note", "")
        told = [("method", repr(self.method)), *([("note", note)] if note else [])]
        return table("model", told) + self.certificate._repr_html_()

    def __repr__(self) -> str:
        return f"Model({self.method!r}, epsilon={self.certificate.epsilon}, holds={self.certificate.holds})"


def check_weights(weights: Mapping[str, float], names: Sequence[str] | None, classes: int) -> None:
    """Refuse weights of classes that are not there, and weights that are none."""
    known = names or tuple(map(str, range(classes)))
    for name, weight in weights.items():
        if name not in known:
            raise InputError(f"there is no class {name!r} to weigh; the classes are: {', '.join(known)}")
        if not (math.isfinite(weight) and weight > 0):
            raise InputError(f"the weight of class {name!r} must be positive and finite, got {weight}")


def as_graph(data: Any, need_training: bool = True) -> Graph:
    """The data as a validated graph, rows that are not finite set to zero."""
    from graphveil.graph.validate import validate

    return data if isinstance(data, Graph) else validate(data, on_bad_rows="zero", need_training=need_training)
