"""``graphveil plan``: how much noise a promise costs, before any data are touched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphveil.cli import options as opt
from graphveil.cli.flags import PromiseFlags
from graphveil.cli.options import flag
from graphveil.errors import InputError

if TYPE_CHECKING:
    from graphveil.privacy.plan import Plan

AT_MOST = "nothing has been asked yet; the numbers of vertices are the most that can report"


def plan(
    method: opt.MethodName,
    flags: PromiseFlags,
    data: Annotated[str | None, flag("--data", "Take the public sizes from this data set.")] = None,
    nodes: Annotated[int | None, flag("--nodes", "Number of nodes.")] = None,
    features: Annotated[int | None, flag("--features", "Feature columns.")] = None,
    classes: Annotated[int | None, flag("--classes", "Classes.")] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Show the noisy releases METHOD would make; no data needed, only sizes."""
    from graphveil.privacy.facts import PublicFacts
    from graphveil.privacy.local import Local

    chosen, promise = flags.settled(method)
    if data is not None:
        facts = chosen.facts(opt.load_data(data, 0))
    elif nodes is None or features is None or classes is None:
        raise InputError("plan needs --nodes, --features and --classes, or --data")
    else:
        facts = PublicFacts(nodes, features, classes, flags.directed)
    planned = chosen.plan(facts, promise)
    if isinstance(promise, Local) and not as_json:
        typer.echo(_in_words(chosen, planned))
        return
    body = planned.to_json()
    if as_json:
        opt.show({"method": chosen.name, "mode": chosen.mode, **body})
        return
    from rich.console import Console
    from rich.table import Table

    from graphveil.privacy.certificate_text import covered_only
    from graphveil.privacy.plan import noise_words

    shown = "none that is finite" if body["epsilon"] is None else f"{body['epsilon']:.6g}"
    table = Table(title=f"{chosen.name} ({chosen.mode}), {promise.guarantee}: provable epsilon {shown}")
    for column in ("release", "mechanism", "noise", "numbers", "steps", "sensitivity"):
        table.add_column(column)
    for release in body["releases"]:
        slot = release | {"kind": "adaptive Gaussian"}  # its share comes later
        mechanism = release.get("mechanism") or slot
        bounds = ", ".join(f"{kind} {value:.4g}" for kind, value in release["sensitivity"].items())
        table.add_row(
            release.get("name") or release["slot"],
            mechanism["kind"],
            noise_words(*(mechanism.get("noise") or [mechanism.get("sigma") or mechanism.get("scale")] * 2)),
            str(mechanism.get("dimension", "-")),
            str(mechanism.get("steps", 1)),
            bounds,
        )
    Console().print(table)
    for line in covered_only(planned.weaker):
        typer.echo(f"BUT ONLY {line}")


def _in_words(method: Any, planned: Plan) -> str:
    """What everybody will be asked, and what it will cost them: the certificate as it would be."""
    from graphveil.privacy.certificate import Certificate

    certificate = Certificate.of(
        planned,
        tuple(planned.release(step.name) for step in planned.steps),
        method=method.name,
        mode=method.mode,
        parameters=method.get_params(),
        public=method.public_statements(planned.promise),
        assumptions=(AT_MOST,),
    )
    return str(certificate).replace("PRIVACY CERTIFICATE", "PLAN", 1)
