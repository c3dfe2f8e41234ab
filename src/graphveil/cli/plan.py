"""``graphveil plan``: how much noise a promise costs, before any data are touched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphveil.cli import options as opt
from graphveil.cli.flags import PromiseFlags
from graphveil.errors import InputError

if TYPE_CHECKING:
    from graphveil.privacy.facts import PublicFacts
    from graphveil.privacy.local import Local

AT_MOST = "nothing has been asked yet; the numbers of vertices are the most that can report"


def plan(
    method: opt.MethodName,
    flags: PromiseFlags,
    data: Annotated[str | None, typer.Option("--data", help="Take the public sizes from this data set.")] = None,
    nodes: Annotated[int | None, typer.Option("--nodes", help="Number of nodes.")] = None,
    features: Annotated[int | None, typer.Option("--features", help="Feature columns.")] = None,
    classes: Annotated[int | None, typer.Option("--classes", help="Classes.")] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Show the noisy releases METHOD would make; no data needed, only sizes."""
    from graphveil.privacy.facts import PublicFacts
    from graphveil.privacy.local import Local

    chosen: Any = flags.method(method)
    promise = flags.promise(chosen)
    if data is not None:
        facts = PublicFacts.of(opt.load_data(data, 0))
    elif nodes is None or features is None or classes is None:
        raise InputError("plan needs --nodes, --features and --classes, or --data")
    else:
        facts = PublicFacts(nodes, features, classes, flags.directed)
    if isinstance(promise, Local):
        _show_local(chosen, promise, facts, as_json)
        return
    body = chosen.plan(facts, promise).to_json()
    if as_json:
        opt.print_json({"method": chosen.name, "mode": chosen.mode, **body})
        return
    from rich.console import Console
    from rich.table import Table

    shown = "none that is finite" if body["epsilon"] is None else f"{body['epsilon']:.6g}"
    table = Table(title=f"{chosen.name} ({chosen.mode}), {promise.guarantee}: provable epsilon {shown}")
    for column in ("release", "mechanism", "noise", "numbers", "steps", "sensitivity"):
        table.add_column(column)
    for release in body["releases"]:
        mechanism = release.get("mechanism") or {
            **release,
            "kind": "adaptive Gaussian",
        }  # a slot: its share comes later
        bounds = ", ".join(f"{kind} {value:.4g}" for kind, value in release["sensitivity"].items())
        noise = mechanism.get("sigma") or mechanism.get("scale")
        table.add_row(
            release.get("name") or release["slot"],
            mechanism["kind"],
            "-" if noise is None else f"{noise:.5g}",
            str(mechanism.get("dimension", "-")),
            str(mechanism.get("steps", 1)),
            bounds,
        )
    Console().print(table)


def _show_local(method: Any, promise: Local, facts: PublicFacts, as_json: bool) -> None:
    """The rounds of a local method: what everybody will be asked, and what it will cost them."""
    from graphveil.exchange.certificate import LocalCertificate

    asked = [(round, facts.nodes) for round in method.plan(facts, promise)]
    certificate = LocalCertificate.of(
        promise, facts, asked, method=method.name, mode=method.mode, parameters=method.get_params(),
        gaps=method.known_gaps(promise), public=method.public_statements(promise), assumptions=(AT_MOST,),
        claim=method.claimed(promise) if method.mode == "published" else None,
    )  # fmt: skip
    if as_json:
        opt.print_json({key: value for key, value in certificate.to_json().items() if key not in ("digest", "seed")})
    else:
        typer.echo(str(certificate).replace("PRIVACY CERTIFICATE", "PLAN", 1))
