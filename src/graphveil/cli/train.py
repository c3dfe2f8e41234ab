"""``graphveil train``: fit a method under a promise; what it reached and cost is told by ``trained.py``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from graphveil.cli import options as opt
from graphveil.cli.flags import OF_THE_METHOD, PromiseFlags, settled
from graphveil.cli.options import flag
from graphveil.cli.trained import describe, show
from graphveil.cli.where import LOCAL, WhereFlags
from graphveil.errors import InputError
from graphveil.methods.registry import AUTO

if TYPE_CHECKING:
    from graphveil.graph import Graph
    from graphveil.methods.model import Model
    from graphveil.privacy.budget import BudgetBook
    from graphveil.privacy.promise import Promise

WAITING = 3  # exit code: a round has to be answered first


def train(
    method: opt.MethodName,
    flags: PromiseFlags,
    where: WhereFlags,
    further: Annotated[
        list[Path] | None, typer.Argument(metavar="[REPORTS]...", help="With --reports: further files of reports.")
    ] = None,
    data: Annotated[str | None, flag("--data NAME|PATH", "A data set by name, or an .npz file.")] = None,
    reports: Annotated[
        list[Path] | None,
        flag(
            "--reports FILE...",
            "Learn from files of 'privatize' (local methods); --data is then only evaluated on, by id.",
        ),
    ] = None,
    broadcast: Annotated[
        Path | None, flag("--broadcast FILE.csv", "With --reports: where to write what the next round hears.")
    ] = None,
    mean_degree: Annotated[
        float | None,
        flag("--mean-degree D", "With --reports: contacts per person on average, if public; some methods plan by it."),
    ] = None,
    prepare: opt.Prepare = None,
    split: opt.Split = "auto",
    holders: Annotated[
        int | None, flag("--holders N", "Level local: so many parties hold the vertices (default: one).")
    ] = None,
    alignment: Annotated[
        str, flag("--alignment A", "With --holders: shared (all edges are known) or none (those within a holder).")
    ] = "shared",
    seed: opt.Seed = None,
    out: Annotated[Path | None, flag("--out DIR", "Folder for model, ledger and certificate.")] = None,
    sign: Annotated[
        Path | None, flag("--sign KEY", "With --out: sign the run with this Ed25519 key (PEM); 'verify' checks it.")
    ] = None,
    budget: Annotated[
        Path | None,
        flag("--budget BOOK", "Charge the run to this budget book, which may refuse it ('graphveil budget')."),
    ] = None,
    previous: Annotated[
        Path | None,
        flag(
            "--previous RUN",
            "A run on an earlier export: average in what it released, and say what both cost people who are in both. Its "
            "promise is asked for again unless --epsilon gives another.",
        ),
    ] = None,
    class_weights: Annotated[
        str | None,
        flag("--class-weights NAME=W,...", "How much worse it is to miss a class; moves decisions, not the promise."),
    ] = None,
    no_evaluate: Annotated[bool, flag("--no-evaluate", "Do not compute accuracies on private labels.")] = False,
    release_accuracy: Annotated[
        bool, flag("--release-accuracy", "Release a noisy test accuracy, paid by the query nodes (ballot).")
    ] = False,
    on_bad_rows: opt.BadRows = "raise",
    as_json: opt.AsJson = False,
) -> None:
    """Train METHOD on a graph, or on collected reports, under a privacy promise."""
    chosen: Any = flags.method(method if reports is None or method != AUTO else "local")
    if release_accuracy:
        chosen.set_params(release_accuracy=True)
    if reports is None:
        if further:
            raise InputError(f"unexpected argument {str(further[0])!r}; files of reports follow --reports")
        if mean_degree is not None:
            raise InputError("--mean-degree belongs to --reports: of a graph it is known")
        if data is None:
            raise InputError("train needs --data NAME|PATH, or --reports FILE... for a local method")
    if mean_degree is not None and not 0 <= mean_degree < float("inf"):
        raise InputError(f"--mean-degree is {mean_degree:g}: give a number that is not negative")
    if budget is not None and reports is not None:
        raise InputError("--budget counts what a curator spends; reports are paid for by those who sent them")
    if previous is not None and reports is not None:
        raise InputError("--previous follows a curator's run on a graph; reports are sent anew (drop --previous)")
    where.check()
    if where.engine != LOCAL and reports is not None:
        raise InputError(f"--engine {where.engine} reads a graph in blocks; reports are learnt from here")
    if sign is not None and out is None:
        raise InputError("--sign signs a saved run: give --out DIR")
    from graphveil.methods.model import check_weights

    signer = None if sign is None else _signer(sign)  # a bad key is refused before anything is trained
    weights = {} if class_weights is None else _weights(class_weights)
    before = None if previous is None else _before(previous)
    started = time.perf_counter()
    counts: dict[str, Any] = {}
    with ExitStack() as running:
        with opt.progress_bar() as progress:
            coins: dict[str, Any] = {"seed": seed, "progress": progress}
            if reports is None:
                promise = flags.promise(chosen) if before is None else _promise_after(flags, chosen, before)
                chosen = settled(chosen, promise)
                if holders is not None and promise.level != "local":
                    raise InputError("--holders belongs to --level local: elsewhere one curator holds the graph")
                loaded = opt.load_data(str(data), seed, prepare, split)
                graph = chosen.validated(_known_edges(loaded, holders, alignment), on_bad_rows)
                check_weights(weights, graph.class_names, graph.classes)
                running.enter_context(where.running(chosen, promise))
                with _charged(budget, promise, out) as book:
                    promise = promise if book is None else book.completed(promise)
                    model = _on_graph(chosen, promise, graph, holders, out, book, before, **coins)
            else:
                known = None if data is None else opt.load_data(data, seed, prepare, split)
                paths = [*reports, *(further or [])]
                coins |= {"mean_degree": mean_degree}
                model, graph, counts = _on_reports(chosen, flags, paths, known, out, broadcast, as_json, **coins)
        seconds = time.perf_counter() - started
        if weights:
            model = model.weighing(weights)
        if out is not None:
            model.save(out)
            if budget is not None:
                _keep_receipt(budget, model, out)
            if signer is not None:
                signer(out)
        named = ", ".join(path.name for path in (*(reports or ()), *(further or ()))) if reports else str(data)
        result = describe(model, named, seconds, seed, out, None if no_evaluate else graph) | counts
    result["previous"] = None if before is None else _followed(str(previous), before, model, graph)
    if as_json:
        opt.show(result)
    else:
        show(result, str(model.certificate))


def _weights(text: str) -> dict[str, float]:
    """``fine=1,fraud=20`` as numbers."""
    parts = [part.rpartition("=") for part in opt.several(text)]
    if not parts or not all(equals for _, equals, _ in parts):
        raise InputError(f"--class-weights takes name=weight with commas, as in fine=1,fraud=20, got {text!r}")
    return {name: opt.number(weight, "--class-weights") for name, _, weight in parts}


def _keep_receipt(path: Path, model: Model, out: Path) -> None:
    """Note in the folder of the run which entry of the book paid for it."""
    from graphveil.files import write_json
    from graphveil.privacy.budget import RECEIPT, BudgetBook

    with BudgetBook(path) as book:
        write_json(out / RECEIPT, book.receipt(model.certificate.to_json()["digest"]))


def _before(run: Path) -> Model:
    """The model of an earlier run, whose files must be what its method writes."""
    from graphveil.runs.load import load_model
    from graphveil.runs.verify import check_run

    found = check_run(run).disagreements
    if found:
        raise InputError(f"--previous {run} does not verify: {found[0]}; see 'graphveil verify {run}'")
    return load_model(run)


def _promise_after(flags: PromiseFlags, chosen: Any, before: Model) -> Promise:
    """The promise the flags describe; without an epsilon, that of the run before."""
    asked = before.certificate.promise
    if flags.level in ("local", "none"):
        raise InputError(f"--previous follows what a curator spends under a promise; level {flags.level} has none")
    if flags.epsilon is not None or not asked.private:
        return flags.promise(chosen)
    if not flags.given(*OF_THE_METHOD):
        return asked
    return replace(flags, epsilon=asked.epsilon, delta=flags.delta or asked.delta).promise(chosen)


def _followed(run: str, before: Model, model: Model, graph: Any) -> dict[str, Any]:
    """What this run has of the one before, and what both cost together."""
    from graphveil.methods.previous import met_again

    last = model.certificate.earlier[-1]
    return {
        "run": run,
        "certificate": last.certificate,
        "runs_before": len(model.certificate.earlier),
        "epsilon_before": before.certificate.epsilon,
        "epsilon_together": model.certificate.together,
        "taken_over": last.taken,
        "people": met_again(before, None if graph is None else graph.ids),
    }


def _signer(path: Path) -> Callable[[Path], str]:
    """What signs a saved run with the key in this file."""
    from graphveil.runs.signing import sign_run, signing_key

    return partial(sign_run, key=signing_key(path))


def _known_edges(data: Any, holders: int | None, alignment: str) -> Any:
    """The data with the edges that the cloud gets from so many holders."""
    if alignment not in ("shared", "none"):
        raise InputError(f"--alignment takes shared or none, got {alignment!r}")
    if alignment == "shared":
        return data
    if holders is None:
        raise InputError("--alignment none is about several holders: give --holders N")
    from graphveil.graph.data.preparation import prepare

    return prepare(data, [f"holders:{holders}"])


def _on_graph(
    chosen: Any,
    promise: Promise,
    graph: Graph,
    holders: int | None,
    out: Path | None,
    book: BudgetBook | None,
    before: Model | None,
    **coins: Any,
) -> Model:
    from graphveil.methods.local_method import partition
    from graphveil.methods.run_folder import open_run_folder
    from graphveil.privacy.ledger import Ledger

    if before is not None:
        coins["previous"] = before
    plan = chosen.plan(chosen.facts_for(graph, promise), promise)
    parties = {} if holders is None else {"holders": partition(graph.nodes, holders)}
    ledger = None
    if out is not None:
        open_run_folder(out)
        ledger = Ledger(out / "ledger.jsonl")
    charged = {} if book is None else {"budget": book}
    model: Model = chosen.fit(graph, promise, ledger=ledger, plan=plan, **parties, **charged, **coins)
    return model


@contextmanager
def _charged(path: Path | None, promise: Promise, out: Path | None) -> Iterator[BudgetBook | None]:
    """The budget book that pays, if one is given; whoever stops the run is told what it has cost."""
    from graphveil.privacy.budget import BudgetBook

    if path is not None and promise.level in ("local", "none"):
        raise InputError(
            f"--budget counts what a curator spends under a promise; level {promise.level} has none to count"
        )
    try:
        if path is None:
            yield None
            return
        with BudgetBook(path) as book:
            yield book
    except KeyboardInterrupt:
        if path is not None:
            typer.echo(
                f"stopped: what the run reserved stays spent; see it with 'graphveil budget show {path}'", err=True
            )
        elif out is not None:
            typer.echo(f"stopped: what was released by now is in {out / 'ledger.jsonl'}, and is spent", err=True)
        else:
            typer.echo("stopped: noisy values may have been computed, but nothing was written or shown", err=True)
        raise


def _on_reports(
    chosen: Any,
    flags: PromiseFlags,
    paths: list[Path],
    data: Any,
    out: Path | None,
    broadcast: Path | None,
    as_json: bool,
    **coins: Any,
) -> tuple[Model, Graph | None, dict[str, Any]]:
    """Learn from files; a round that they lack is asked for by a broadcast, and the command ends there.

    Returns the model, what it is evaluated on, and how many reports were taken.
    """
    from graphveil.exchange.files import Files, RoundNotAnswered
    from graphveil.privacy.promise import Relation

    if not hasattr(chosen, "fit_reports"):
        raise InputError(f"{chosen.name} trusts a curator: it learns from a graph (--data), not from reports")
    files = Files(paths)
    budgets = (flags.features_epsilon, flags.labels_epsilon, flags.edges_epsilon)
    clear = {f"{part}_epsilon" for part in files.promise.raw}  # need not be said again
    sent: dict[str, Any] = {name: "raw" for name in clear if getattr(flags, name) is None}
    asked = replace(flags, level="local", directed=False, **sent)
    promise = asked.promise(chosen) if any(budgets) or flags.delta else None
    if out is not None and (out / "certificate.json").exists():
        raise InputError(f"{out} already holds a run; choose another folder")
    graph = None if data is None else _by_id(chosen.validated(data, "zero"), files.ids, files.attributes)
    try:
        masks = None if graph is None else graph.masks
        model: Model = chosen.fit_reports(files, promise, masks=masks, directed=flags.directed, **coins)
        return model, graph, opt.counted(files.accepted, files.refused)
    except RoundNotAnswered as stop:
        path = broadcast or Path(f"broadcast-{stop.round.name}.csv")
        if stop.broadcast is None:
            raise InputError(f"{stop}: 'graphveil privatize' makes the reports that {chosen.name} asks for") from None
        stop.broadcast.write(path)
        price = f"{stop.round.randomizer.cost:g}"
        price += f" --delta {stop.round.randomizer.delta:g}" if stop.round.randomizer.delta else ""
        covered = stop.round.randomizer.entry_relation
        price += f" --relation {covered}" if stop.broadcast and covered is Relation.ZERO_OUT else ""
        answer = f"graphveil privatize RECORDS --edges-epsilon {price} --broadcast {path} --out ..."
        if as_json:
            counts = opt.counted(files.accepted, files.refused)
            opt.show({"waiting_for": stop.round.name, "broadcast": str(path), "answer_with": answer, **counts})
        else:
            opt.show_counted(opt.counted(files.accepted, files.refused))
            typer.echo(f"{stop}; who takes part and what they need to hear is in {path}. Every holder now runs:")
            typer.echo(f"  {answer}")
            typer.echo("then train again with all files of reports.")
        raise typer.Exit(WAITING) from None


def _by_id(graph: Graph, ids: tuple[str, ...], attributes: int) -> Graph:
    """Labels and masks of the nodes in the order of the ids; for evaluation, nothing else is read.

    Data without ids of their own have node numbers.
    """
    if graph.ids is not None:
        number = {name: node for node, name in enumerate(graph.ids.tolist())}
        unknown = next((name for name in ids if name not in number), None)
        if unknown is not None:
            raise InputError(f"id {unknown} is not a node of --data")
        nodes = np.array([number[name] for name in ids])
    else:
        if not all(
            name.isdecimal() and str(int(name)) == name for name in ids
        ):  # "007" and "7" would be two people, one node
            raise InputError("--data evaluates reports whose ids are node numbers; these are not")
        nodes = np.array([int(name) for name in ids])
        if nodes.max() >= graph.nodes:
            raise InputError(f"id {nodes.max()} is not a node of --data, which has {graph.nodes}")
    import scipy.sparse as sp

    from graphveil.graph import Lists, SparseRows

    masks = {kind: mask[nodes] for kind, mask in graph.masks.items()}
    rows = SparseRows(sp.csr_matrix((len(nodes), attributes)))
    nobody = Lists.from_edge_index(np.zeros((2, 0), dtype=np.int64), len(nodes))
    return replace(graph, rows=rows, labels=graph.labels[nodes], lists=nobody, masks=masks, ids=np.array(ids))
