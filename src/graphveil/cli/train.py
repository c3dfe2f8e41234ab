"""``graphveil train``: fit a method under a promise, print what it reached and what it cost."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from graphveil.cli import options as opt
from graphveil.cli.flags import PromiseFlags
from graphveil.errors import InputError

NOT_COVERED = (
    "accuracies are exact figures on private labels; the promise does not cover them (--no-evaluate leaves them out)"
)


def train(
    method: opt.MethodName,
    data: opt.DataName,
    flags: PromiseFlags,
    prepare: opt.Prepare = None,
    split: opt.Split = "random",
    holders: Annotated[
        int | None,
        typer.Option("--holders", metavar="N", help="Level local: so many parties hold the vertices (default: one)."),
    ] = None,
    seed: opt.Seed = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder for model, ledger and certificate.")
    ] = None,
    no_evaluate: Annotated[
        bool, typer.Option("--no-evaluate", help="Do not compute accuracies on private labels.")
    ] = False,
    release_accuracy: Annotated[
        bool,
        typer.Option("--release-accuracy", help="Release a noisy test accuracy, paid by the query nodes (ballot)."),
    ] = False,
    on_bad_rows: opt.BadRows = "raise",
    as_json: opt.AsJson = False,
) -> None:
    """Train METHOD on a graph under a privacy promise."""
    chosen: Any = flags.method(method)
    if release_accuracy:
        chosen.set_params(release_accuracy=True)
    promise = flags.promise(chosen)
    if holders is not None and promise.level != "local":
        raise InputError("--holders belongs to --level local: elsewhere one curator holds the graph")

    from graphveil.exchange.holders import partition
    from graphveil.graph.validate import validate
    from graphveil.methods.model import open_run_folder
    from graphveil.privacy.facts import PublicFacts
    from graphveil.privacy.ledger import Ledger

    graph_data = opt.load_data(data, seed, prepare, split)
    bad_rows: Any = on_bad_rows  # a word so far: validate refuses all but its own
    graph = validate(graph_data, on_bad_rows=bad_rows)
    chosen.plan(PublicFacts.of(graph), promise)
    parties = {} if holders is None else {"holders": partition(graph.nodes, holders)}
    ledger = None
    if out is not None:
        open_run_folder(out)
        ledger = Ledger(out / "ledger.jsonl")
    started = time.perf_counter()
    with opt.progress_bar() as progress:
        model = chosen.fit(graph, promise, seed=seed, ledger=ledger, progress=progress, **parties)
    seconds = time.perf_counter() - started
    if out is not None:
        model.save(out)
    result = describe(model, data, seconds, seed, out, None if no_evaluate else graph)
    if as_json:
        opt.print_json(result)
    else:
        _show(result, str(model.certificate))


def describe(
    model: Any, dataset: str, seconds: float, seed: int | None, out: Path | None, graph: Any
) -> dict[str, Any]:
    """The contract's fields; accuracies only if a graph is given to evaluate on."""
    certificate = model.certificate
    promise = certificate.promise
    scores: dict[str, float | None] = {"val_accuracy": None, "test_accuracy": None, "test_f1": None}
    if graph is not None:
        test = _scores(model, graph, "query")
        scores = {
            "val_accuracy": _scores(model, graph, "calibration").get("accuracy"),
            "test_accuracy": test.get("accuracy"),
            "test_f1": test.get("f1"),
        }
    return {
        "method": certificate.method,
        "dataset": dataset,
        "level": promise.level,
        "adjacency": promise.adjacency,
        "relation": promise.relation,
        "mode": certificate.mode,
        "k": promise.k,
        "max_degree": promise.max_degree,
        "epsilon_target": promise.epsilon if promise.private else None,
        "epsilon": certificate.epsilon,
        "epsilon_claimed": certificate.epsilon_claimed,
        "delta": certificate.delta,
        "holds": certificate.holds,
        "gaps": [gap.code for gap in certificate.gaps],
        "gap_texts": {gap.code: gap.text for gap in certificate.gaps},
        "assumptions": list(certificate.assumptions),
        **{cost: getattr(certificate, cost, None) for cost in ("per_vertex", "per_edge", "per_holder")},  # level local
        **scores,
        "released_accuracy": getattr(model.predictor, "accuracy", None),
        "accuracy_note": NOT_COVERED if graph is not None else None,
        "seconds": round(seconds, 4),
        "seed": seed,
        "seeded": certificate.seeded,
        "out": None if out is None else str(out),
    }


def _scores(model: Any, graph: Any, kind: str) -> dict[str, float]:
    try:
        return dict(model.scores(graph, kind))
    except InputError:  # nobody of this kind has a label
        return {}


def _show(result: dict[str, Any], certificate: str) -> None:
    typer.echo(certificate)
    typer.echo("")
    if result["test_accuracy"] is not None:
        validation, test, f1 = (_percent(result[key]) for key in ("val_accuracy", "test_accuracy", "test_f1"))
        typer.echo(f"accuracy: validation {validation}, test {test} (macro F1 {f1}), {result['seconds']:.1f} s")
        typer.echo(f"note: {NOT_COVERED}")
    if result["released_accuracy"] is not None:
        typer.echo(f"released accuracy: {100 * result['released_accuracy']:.1f} % (noisy, covered by the promise)")
    if result["out"] is None:
        typer.echo("note: nothing was saved; give --out DIR to keep model, ledger and certificate", err=True)
    else:
        typer.echo(f"saved to {result['out']}")


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"
