"""What ``graphveil train`` tells about a finished run: the contract's fields, and the same in lines to read."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import typer

from graphveil.cli import options as opt
from graphveil.errors import FOR_THE_OPERATOR, DataWarning, InputError, PrivacyError

FEW_CLASSES = 12  # whose recall fits on a line
NOT_COVERED = (
    "accuracies are exact figures on private labels; the promise does not cover them (--no-evaluate leaves them out)"
)


def describe(
    model: Any, dataset: str, seconds: float, seed: int | None, out: Path | None, graph: Any
) -> dict[str, Any]:
    """The contract's fields; accuracies only if a graph is given to evaluate on."""
    from graphveil.privacy.certificate_text import covered_only

    certificate = model.certificate
    promise = certificate.promise
    test, validation = (_figures(model.scores, graph, kind) for kind in ("query", "calibration"))
    return {
        "method": certificate.method,
        "dataset": dataset,
        **{key: getattr(promise, key) for key in ("level", "adjacency", "relation")},
        "mode": certificate.mode,
        "k": promise.k,
        "max_degree": promise.max_degree,
        "epsilon_target": promise.epsilon if promise.private else None,
        **{key: getattr(certificate, key) for key in ("epsilon", "epsilon_claimed", "delta", "holds")},
        "weaker": dict(certificate.weaker),  # kinds of records for whom it holds under another adjacency only
        "weaker_texts": covered_only(certificate.weaker),
        "gaps": list(dict.fromkeys(gap.code for gap in certificate.gaps)),
        "gap_texts": {gap.code: gap.text for gap in certificate.gaps},
        "assumptions": list(certificate.assumptions),
        "own_rows": list(certificate.own_rows),
        **{cost: getattr(certificate, cost, None) for cost in ("per_vertex", "per_edge", "per_holder")},  # level local
        "val_accuracy": validation.get("accuracy"),
        "test_accuracy": test.get("accuracy"),
        "test_f1": test.get("f1"),
        "public_graph_accuracy": _on_public_graph(model, graph),
        "test_recall": _figures(model.recalls, graph, "query") or None,
        "released_accuracy": getattr(model.predictor, "accuracy", None),
        "accuracy_note": NOT_COVERED if graph is not None else None,
        "note": getattr(model.predictor, "note", None) or None,
        "seconds": round(seconds, 4),
        "seed": seed,
        "seeded": certificate.seeded,
        "out": None if out is None else str(out),
    }


def _on_public_graph(model: Any, graph: Any) -> float | None:
    """Test accuracy where the graph is declared public, of models that then predict otherwise than from own rows."""
    if not hasattr(model.predictor, "graph_logits"):
        return None
    try:
        return _figures(partial(model.scores, access="public-graph"), graph, "query").get("accuracy")
    except PrivacyError:  # no promise covers that access
        return None


def _figures(measure: Callable[..., dict[str, float]], graph: Any, kind: str) -> dict[str, float]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # the graph it was trained on: its rows are in order
            return {} if graph is None else measure(graph, kind)
    except InputError:  # nobody of this kind has a label
        return {}


def show(result: dict[str, Any], certificate: str) -> None:
    typer.echo(f"{certificate}\n")
    if "refused" in result:
        opt.show_counted(result)
    if result["test_accuracy"] is not None:
        validation, test, f1 = (_percent(result[key]) for key in ("val_accuracy", "test_accuracy", "test_f1"))
        typer.echo(f"accuracy: validation {validation}, test {test} (macro F1 {f1}), {result['seconds']:.1f} s")
        if result["public_graph_accuracy"] is not None:
            on_graph = _percent(result["public_graph_accuracy"])
            typer.echo(f"accuracy on the graph, were it public (predict --access public-graph): test {on_graph}")
        found = ", ".join(f"{name} {_percent(share)}" for name, share in result["test_recall"].items())
        if len(result["test_recall"]) <= FEW_CLASSES:
            typer.echo(f"recall by class: {found}")
        typer.echo(f"note: {NOT_COVERED}")
    if result["note"] is not None:
        typer.echo(f"note: {result['note']}")
    if result["previous"] is not None:
        _show_followed(result["previous"], result["test_accuracy"] is not None)
    if result["released_accuracy"] is not None:
        typer.echo(f"released accuracy: {100 * result['released_accuracy']:.1f} % (noisy, covered by the promise)")
    if result["out"] is None:
        typer.echo("note: nothing was saved; give --out DIR to keep model, ledger and certificate", err=True)
    else:
        private = (Path(result["out"]) / "curator").exists()
        kept = " (its folder 'curator' stays with the curator, the rest may be published)" if private else ""
        typer.echo(f"saved to {result['out']}{kept}")


def _show_followed(told: dict[str, Any], scored: bool) -> None:
    people = told["people"]
    start = "what it released is averaged in" if told["taken_over"] else "started anew, only its cost is counted in"
    typer.echo(f"after {told['run']}: {start}")
    if people is not None:
        met = "{known} people known by id, {new} new, {left} have left".format(**people)
        typer.echo(f"after {told['run']}: {met} {FOR_THE_OPERATOR}")
    together = told["epsilon_together"]
    bound = "no finite epsilon" if together is None else f"epsilon {together:.6g}"
    typer.echo(f"people who were in all {told['runs_before'] + 1} runs: {bound} together")
    if scored and told["taken_over"]:
        typer.echo(
            "note: whoever is scored here may have taught the run before; accuracies flatter if the split has changed"
        )


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"
