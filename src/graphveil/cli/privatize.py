"""``graphveil privatize``: people's own records in, randomised reports out; runs where the records are."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphveil.cli import options as opt
from graphveil.errors import InputError

if TYPE_CHECKING:
    from graphveil.exchange.records import Records
    from graphveil.exchange.round import Round
    from graphveil.exchange.upload import Service
    from graphveil.privacy.local import Local
    from graphveil.privacy.noise import Noise

BUDGET = "E|raw|withheld"
Budget = Annotated[str, typer.Option(metavar=BUDGET)]


def privatize(
    records: Annotated[
        Path,
        typer.Argument(metavar="RECORDS", help="Table of records (.csv, .tsv, .parquet), or a graph (.npz or folder)."),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The reports to write: .parquet or .csv.")
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="URL", help="Send them to a collection instead: https://host/v1/collections/NAME."
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option("--token", metavar="TOKEN", envvar="GRAPHVEIL_TOKEN", help="Of this holder, with --to."),
    ] = None,
    stage: Annotated[str, typer.Option("--round", help="With --to: a round that hears a broadcast.")] = "first",
    features_epsilon: Budget = "withheld",
    labels_epsilon: Budget = "withheld",
    edges_epsilon: Annotated[str, typer.Option(metavar=BUDGET, help="Of one entry of a contact list.")] = "withheld",
    relation: Annotated[
        str | None, typer.Option(help="Of that entry: replace (exchanged, default), or zero-out (it is there or not).")
    ] = None,
    delta: Annotated[float, typer.Option(help="Allowed where a round asks for it.")] = 0.0,
    identifier: Annotated[str | None, typer.Option("--id", help="Column: identifier. Default: the first.")] = None,
    features: Annotated[list[str] | None, typer.Option(help="Columns: names or patterns (word_*); repeatable.")] = None,
    label: Annotated[str | None, typer.Option(help="Column: class from 0; empty means none.")] = None,
    classes: Annotated[int | None, typer.Option(help="The public number of classes.")] = None,
    contacts: Annotated[str | None, typer.Option(help="Column: ids of contacts, separated by spaces.")] = None,
    edge_mechanism: Annotated[str, typer.Option(help="histogram, bucket or list (with an epsilon).")] = "histogram",
    broadcast: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="Who takes part and their released labels, from 'collect'.")
    ] = None,
    span: Annotated[str, typer.Option("--range", metavar="LOW..HIGH", help="Public range of attributes.")] = "0..1",
    mechanism: Annotated[str, typer.Option(help="multi-bit, piecewise, direction or laplace.")] = "multi-bit",
    on_outside: Annotated[str, typer.Option(metavar="clip|raise", help="Attributes outside the range.")] = "clip",
    plan: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What a method asks: 'graphveil plan METHOD --level local --json'."),
    ] = None,
    newcomers: Annotated[
        bool, typer.Option("--newcomers", help="These people came after the broadcast and ask a model for their score.")
    ] = False,
    holder: Annotated[str, typer.Option(help="Who keeps these records.")] = "all",
    memory: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Remembers who was randomised. Default: graphveil-memory beside RECORDS."),
    ] = None,
    public: Annotated[
        list[str] | None,
        typer.Option(metavar="PART", help="With --to: all who take part may be told this part in the clear."),
    ] = None,
    seed: opt.Seed = None,
    as_json: opt.AsJson = False,
) -> None:
    """Randomise every record of a table once; the reports may leave, the records stay."""
    from graphveil.exchange.broadcast import Broadcast
    from graphveil.exchange.privatizer import Privatizer, edge_round, feature_randomizer
    from graphveil.exchange.records import Records
    from graphveil.exchange.round import vertex_rounds
    from graphveil.exchange.upload import Service
    from graphveil.graph.formats.tables import TableFile
    from graphveil.privacy.certificate_text import SEEDED
    from graphveil.privacy.local import DEGREES, Local, Openness, Part
    from graphveil.privacy.noise import Noise

    promise = Local(features_epsilon, labels_epsilon, edges_epsilon, delta, relation)
    if on_outside not in ("clip", "raise"):
        raise InputError(f"--on-outside is {on_outside!r}: give clip or raise")
    lower, upper = _range(span)
    if records.suffix == ".npz" or records.is_dir():
        source = Records.of_graph(records, classes)
    else:
        source = Records(TableFile(records), identifier, tuple(features or ["*"]), label, contacts, classes)
    if (out is None) == (to is None):
        raise InputError("give --out FILE for a file of reports, or --to URL to send them to a service")
    if to is not None:
        allowed = Allowed(promise, holder, on_outside == "raise", newcomers, memory, frozenset(public or ()))
        _send(source, allowed, Service(to, _token(token)), stage, Noise(seed), as_json)
        return
    assert out is not None
    if Part.LABELS not in promise.withheld and (source.label is None or (plan is None and source.classes is None)):
        raise InputError("labels need --label COLUMN and --classes K (the public number of classes)")
    heard: Broadcast | None = None
    edges: tuple[Round, ...] = ()
    if isinstance(promise.edges, Openness):
        if broadcast is not None:
            raise InputError("--broadcast belongs to an --edges-epsilon that is a number")
    elif broadcast is None:
        raise InputError(
            "edges with an epsilon need --broadcast FILE: who takes part and their released labels; 'graphveil train "
            "--reports' and 'graphveil collect --broadcast' write it after a round of labels"
        )
    else:
        asked, heard = edge_round(edge_mechanism, promise.edges, Broadcast.read(broadcast), promise.relation)
        edges = (asked,)
    if plan is None:
        width = len(source.columns(promise))
        rounds = vertex_rounds(
            promise, source.classes or 0, partial(feature_randomizer, mechanism, width, lower, upper)
        )
    else:
        rounds = _planned(plan, promise)
    job = Privatizer(source, promise, (*rounds, *edges), heard, holder, on_outside == "raise", newcomers)
    start = time.perf_counter()
    with opt.progress_bar() as bar:
        done = job.run(out, Noise(seed), lambda rows: bar("records", rows, rows), memory)
    names = {asked.part: asked.randomizer.kind for asked in job.rounds}
    body = done | {
        "promise": promise.to_json(),
        "mechanism": names.get(Part.FEATURES),
        "edge_mechanism": names.get(Part.EDGES),
        "holder": holder,
        "raw": [part.value for part in promise.raw],
        "in_the_clear": [part.value for part in promise.raw] + [DEGREES] * done["lengths_in_the_clear"],
        "seeded": seed is not None,
        "seconds": round(time.perf_counter() - start, 3),
        "out": str(out),
    }
    if as_json:
        opt.show(body)
        return
    shares = (
        ", ".join(f"{part} epsilon {cost:.6g}" for part, cost in done["epsilons"].items()) or "nothing is randomised"
    )
    total = "NO FINITE EPSILON" if done["epsilon"] is None else f"epsilon {done['epsilon']:.6g} each"
    notes = [f"{total} ({shares})"]
    notes += [f"IN THE CLEAR: {', '.join(body['in_the_clear']).upper()}"] if body["in_the_clear"] else []
    notes += [f"withheld: {', '.join(promise.withheld)}"] if promise.withheld else []
    typer.echo(f"{done['vertices']} records -> {out} in {body['seconds']} s; {'; '.join(notes)}")
    if seed is not None:
        typer.echo(f"WARNING: {SEEDED}")
    if done["outside"]:
        what = f"{done['outside']} attributes lay outside the public range and were clipped"
        typer.echo(f"{what} (for the operator: keep this number)")


@dataclass(frozen=True)
class Allowed:
    """What the owner of the records allows, and how they are to be treated."""

    promise: Local
    holder: str
    refuse_outside: bool
    newcomers: bool
    memory: Path | None
    public: frozenset[str]


def _send(source: Records, allowed: Allowed, service: Service, name: str, noise: Noise, as_json: bool) -> None:
    """Randomise by the protocol of a collection, as far as the owner allows that, and send it."""
    from graphveil.exchange.privatizer import Privatizer
    from graphveil.exchange.upload import Upload, scores_of
    from graphveil.exchange.wire import FIRST
    from graphveil.privacy.local import Part

    protocol = service.protocol()
    heard = None if name == FIRST else service.broadcast(protocol, name)
    stage = protocol.asking(name, heard) if allowed.newcomers else protocol.stage(name, heard)
    source = replace(source, classes=protocol.facts.classes)
    job = Privatizer(
        source, stage.promise, stage.rounds, heard, allowed.holder, allowed.refuse_outside, allowed.newcomers
    )
    upload = Upload(job, stage, allowed.promise, allowed.memory)
    if name == FIRST and not allowed.newcomers:  # broadcasts tell what was sent here, and nothing of newcomers
        protocol.check_told([part for part in Part if part.value in allowed.public])
    if allowed.newcomers:
        opt.show(scores_of(upload, service, noise))
        return
    with opt.progress_bar() as bar:
        done = upload.run(service, noise, lambda rows: bar("records", rows, rows))
    if as_json:
        opt.show(asdict(done) | {"collection": protocol.name, "stage": name, "epsilon": job.epsilon})
        return
    typer.echo(
        f"{done.records} records ({done.drawn} randomised now): {done.stored} reports stored, {done.repeated} were there already"
    )
    for reason, count in sorted(done.refused.items()):
        typer.echo(f"  {count} refused: {reason}")
    if done.outside:
        typer.echo(f"{done.outside} attributes were clipped to the public range (for the operator: keep this number)")


def _token(given: str | None) -> str:
    if not given:
        raise InputError("--to needs --token TOKEN (or the environment variable GRAPHVEIL_TOKEN)")
    return given


def _planned(path: Path, promise: Local) -> tuple[Round, ...]:
    """The rounds on features and labels that a server's plan ('graphveil plan --json') asks for."""
    from graphveil.exchange.round import Round
    from graphveil.files import read_json
    from graphveil.privacy.plan import Release

    try:
        found = [Round.of(Release.from_json(entry)) for entry in read_json(path)["releases"]]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path} is no plan of a local method ('graphveil plan METHOD --level local --json'): {error}"
        ) from None
    return tuple(one for one in found if not one.hears and one.part not in (*promise.withheld, *promise.raw))


def _range(text: str) -> tuple[float, float]:
    try:
        lower, upper = map(float, text.split(".."))
    except ValueError:
        lower = upper = 0.0
    if not 0 < upper - lower < float("inf"):
        raise InputError(f"--range is {text!r}: give two finite numbers such as 0..1")
    return lower, upper
