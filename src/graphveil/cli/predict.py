"""``graphveil predict``: who is of which class, with ids and class names, for those who may see it."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from graphveil.cli import options as opt
from graphveil.cli.options import flag
from graphveil.cli.runs import Run
from graphveil.cli.where import WhereFlags
from graphveil.errors import InputError

BY_ID, OWN_FEATURES = "aligned by id", "each prediction reads its own row of features only, in any order"
RANKED = "; who is in this list, and in which order, tells about everybody's own rows: the list stays with the curator"
ENDINGS = (".csv", ".parquet", ".json")


def predict(
    run: Run,
    where: WhereFlags,
    data: Annotated[
        str | None, flag("--data NAME|PATH", "The graph; not needed for scores made from reports alone.")
    ] = None,
    prepare: opt.Prepare = None,
    access: Annotated[str, flag("--access", "own-row, public-graph or charge.")] = "own-row",
    in_order: Annotated[bool, flag("--in-order", "Ignore ids: rows are in the order of training.")] = False,
    only: Annotated[str, flag("--only all|unlabelled", "Whom to write: everybody, or those without a label.")] = "all",
    of_class: Annotated[
        str | None,
        flag("--of-class NAME", "The probability of this class, largest first, instead of the most probable class."),
    ] = None,
    top: Annotated[int | None, flag("--top N", "Only the N rows with the largest probability.", min=1)] = None,
    out: Annotated[
        Path | None, flag("--out FILE", "Write there (.csv, .parquet or .json) instead of printing.")
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Predict the class of every node; each prediction is for the eyes of that node unless its features are public."""
    from graphveil.methods.alignment import IN_ORDER
    from graphveil.methods.model import ANYBODY
    from graphveil.methods.previous import met_again
    from graphveil.runs.load import load_model

    if only not in ("all", "unlabelled"):
        raise InputError(f"--only takes all or unlabelled, got {only!r}")
    if out is not None and out.suffix not in ENDINGS:
        raise InputError(f"--out writes {', '.join(ENDINGS)}, got {out.name!r}")
    model = load_model(run)
    names = model.class_names or tuple(map(str, range(model.certificate.facts.classes)))
    if of_class is not None and of_class not in names:
        raise InputError(f"there is no class {of_class!r}; the classes are: {', '.join(names)}")
    if only == "unlabelled" and data is None:
        raise InputError("--only unlabelled needs --data, which says who has a label")
    graph = None if data is None else opt.load_data(data, model.certificate.seed, prepare)
    if in_order:
        _forget_ids(graph)
    with where.running(model.method, model.certificate.promise):
        chances = model.predict_proba(graph, access).numpy()
    ids = None if graph is None else _ids_of(graph, len(chances))
    people: Any = (model.ids or range(len(chances))) if ids is None else ids.tolist()
    best = np.full(len(chances), names.index(of_class)) if of_class is not None else chances.argmax(axis=1)
    chance = chances[np.arange(len(chances)), best]
    rows = np.arange(len(chances))
    if only == "unlabelled" and graph is not None:
        rows = rows[_unlabelled(graph, len(rows))]
    if top is not None or of_class is not None:
        rows = rows[np.argsort(-chance[rows], kind="stable")][:top]
    table = {
        "node": [people[row] for row in rows],
        "prediction": [int(best[row]) for row in rows],
        **({} if model.class_names is None else {"class": [names[best[row]] for row in rows]}),
        "probability": [round(float(chance[row]), 6) for row in rows],
    }
    note = model.audience(access if graph is not None else "charge")
    if (top is not None or of_class is not None) and not note.startswith(ANYBODY):
        note += RANKED
    if as_json or (out is not None and out.suffix == ".json"):
        order = BY_ID if ids is not None or graph is None else IN_ORDER
        order = order if model.reads_slots else OWN_FEATURES
        found = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        about = {"run": str(run), "access": access, "note": note, "rows": order, "people": met_again(model, ids)}
        told: dict[str, Any] = about | {"predictions": found}
        _write(out, opt.as_json(told) + "\n")
        return
    opt.say(f"note: {note}")
    if out is not None and out.suffix == ".parquet":
        _write_parquet(out, table)
        return
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([tuple(table), *zip(*table.values(), strict=True)])
    _write(out, text.getvalue())


def _ids_of(graph: Any, nodes: int) -> np.ndarray | None:
    from graphveil.graph import Graph
    from graphveil.graph.folder import ids_of
    from graphveil.graph.ids import read_ids

    return ids_of(graph) if isinstance(graph, Graph) else read_ids(graph.get("ids"), nodes)


def _forget_ids(graph: Any) -> None:
    from graphveil.graph import Graph

    if graph is not None and not isinstance(graph, Graph):  # a folder is read in its order anyway
        graph.ids = None


def _unlabelled(graph: Any, nodes: int) -> np.ndarray:
    from graphveil.graph.graph import UNLABELLED, Graph

    if isinstance(graph, Graph):
        return np.asarray(graph.labels == UNLABELLED)
    return np.ones(nodes, dtype=bool) if graph.get("y") is None else np.asarray(graph.y) == UNLABELLED


def _write(out: Path | None, text: str) -> None:
    from graphveil.files import write_text

    if out is None:
        opt.show(text.rstrip("\n"))
    else:
        write_text(out, text)


def _write_parquet(out: Path, table: dict[str, list[Any]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from graphveil.files import draft

    with draft(out) as beside:
        pq.write_table(pa.table(table), beside)
