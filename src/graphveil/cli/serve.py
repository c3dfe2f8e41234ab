"""``graphveil serve``: the local model as a running service; its tokens and collections are kept by the same command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphveil.cli import options as opt
from graphveil.cli.app import PLAIN, HelpfulGroup
from graphveil.cli.flags import given_options
from graphveil.errors import InputError

if TYPE_CHECKING:
    from graphveil.service.store import Store

Folder = Annotated[
    Path, typer.Option("--folder", metavar="DIR", envvar="GRAPHVEIL_FOLDER", help="Where the service keeps things.")
]
Url = Annotated[
    str | None,
    typer.Option("--store", metavar="URL", envvar="GRAPHVEIL_STORE", help="PostgreSQL; default: SQLite in the folder."),
]
HERE = Path("graphveil-service")

serve = typer.Typer(invoke_without_command=True, help="Run the service, or keep its tokens and collections.", **PLAIN)
token = typer.Typer(cls=HelpfulGroup, help="Create, list and revoke tokens.", **PLAIN)
collection = typer.Typer(cls=HelpfulGroup, help="Create, list and close collections; enrol records.", **PLAIN)
serve.add_typer(token, name="token")
serve.add_typer(collection, name="collection")


@serve.callback()
def run(
    context: typer.Context,
    folder: Folder = HERE,
    store: Url = None,
    host: Annotated[str, typer.Option(help="The address to listen on; put TLS in front of any other.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free one.")] = 8000,
    central: Annotated[
        Path | None, typer.Option("--run", metavar="DIR", help="Serve a saved central model to its own people.")
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", metavar="NAME|PATH", help="With --run: the graph it was trained on.")
    ] = None,
    rate: Annotated[float, typer.Option(min=0.01, help="Requests per second of one token.")] = 200.0,
    body_limit: Annotated[int, typer.Option(min=1024, help="Largest body of a request, in bytes.")] = 8 << 20,
    connections: Annotated[int, typer.Option(min=2, help="Connections at once; others hear 503 and try again.")] = 512,
    patience: Annotated[float, typer.Option(min=0.1, help="Seconds for the body of a request to arrive.")] = 30.0,
    proxy: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Of the TLS proxy, whose X-Forwarded-For is believed.")
    ] = None,
) -> None:
    """Run the service until it is told to stop (SIGTERM or Ctrl-C): what was acknowledged is on the disk."""
    if context.invoked_subcommand is not None:
        return
    _installed()
    from graphveil.service.running import run_service
    from graphveil.service.settings import Settings

    limits: dict[str, Any] = {"largest_body": body_limit, "most_connections": connections, "slowest_body": patience}
    settings = Settings(folder, store, central, data, **limits, rate=rate, burst=2 * rate, proxy=proxy)
    run_service(settings, host, port)


@serve.command()
def upgrade(folder: Folder = HERE, store: Url = None) -> None:
    """Bring the tables of a store to this version."""
    _store(folder, store)
    typer.echo("the store is of this version")


@token.command("create")
def create(
    role: Annotated[str, typer.Option(help="holder, person, analyst or operator.")],
    holder: Annotated[str | None, typer.Option(help="Whose records a holder's token is for.")] = None,
    record: Annotated[str | None, typer.Option(help="The one record a token is for: a device, or a person.")] = None,
    collection: Annotated[
        str | None, typer.Option(metavar="NAME", help="The collection it is for; of an operator, default: all.")
    ] = None,
    run: Annotated[Path | None, typer.Option(metavar="DIR", help="The central run it is for, instead.")] = None,
    folder: Folder = HERE,
    store: Url = None,
    as_json: opt.AsJson = False,
) -> None:
    """Create a token; it is printed once and can never be read again."""
    from graphveil.service.tokens import create_token

    found = create_token(_store(folder, store), role, holder, record, collection=collection, run=run)
    opt.show({"token": found, "key": found.split("_")[1], "role": role} if as_json else found)


@token.command("revoke")
def revoke(
    key: Annotated[str, typer.Argument(help="The key of a token, or all of it.")],
    folder: Folder = HERE,
    store: Url = None,
) -> None:
    """Nobody gets in with it from now on."""
    from graphveil.service.tokens import revoke_token

    revoke_token(_store(folder, store), key)
    typer.echo("revoked")


@token.command("list")
def list_tokens(folder: Folder = HERE, store: Url = None, as_json: opt.AsJson = False) -> None:
    """Keys, roles, what they are for, and holders; never a secret."""
    from graphveil.service.tokens import all_tokens

    found = all_tokens(_store(folder, store))
    if as_json:
        opt.show(found)
        return
    for one in found:
        whose = " ".join(filter(None, (one["scope"], one["holder"], one["record"])))
        typer.echo(f"{one['key']} {one['role']} {whose}{' (revoked)' if one['revoked'] else ''}".rstrip())


@collection.command("create")
def create_collection(
    name: Annotated[str, typer.Argument(help="Letters, digits and hyphens.")],
    method: Annotated[str, typer.Argument(help="A local method: lpgnn, local, ...")],
    classes: Annotated[int, typer.Option(help="The public number of classes.")],
    attributes: Annotated[int, typer.Option(help="The public number of attributes.")] = 0,
    features_epsilon: Annotated[str, typer.Option(metavar="E|raw|withheld")] = "withheld",
    labels_epsilon: Annotated[str, typer.Option(metavar="E|raw|withheld")] = "withheld",
    edges_epsilon: Annotated[str, typer.Option(metavar="E|raw|withheld")] = "withheld",
    relation: Annotated[str | None, typer.Option(help="replace or zero-out.")] = None,
    delta: Annotated[float, typer.Option(help="Allowed where a round asks for it.")] = 0.0,
    directed: Annotated[bool, typer.Option("--directed", help="Contacts need not list each other.")] = False,
    mean_degree: Annotated[float | None, typer.Option(help="Contacts per person, if that is public.")] = None,
    public: Annotated[
        list[str] | None,
        typer.Option(metavar="PART", help="features or labels, raw: declared public, all who take part are told them."),
    ] = None,
    open_to_all: Annotated[
        bool, typer.Option("--open", help="Records need not be enrolled: the holder who is first owns one.")
    ] = False,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Options of the method.")
    ] = None,
    folder: Folder = HERE,
    store: Url = None,
    as_json: opt.AsJson = False,
) -> None:
    """Start a collection and print its public protocol."""
    _installed()
    from graphveil.service.planning import Wanted, planned

    options: dict[str, Any] = given_options(settings)
    budgets = (features_epsilon, labels_epsilon, edges_epsilon)
    protocol = planned(
        Wanted(
            name, method, classes, attributes, *budgets, delta, relation, directed, mean_degree, options, public or ()
        )
    )
    _store(folder, store).create_collection(protocol, open_to_all=open_to_all)
    if as_json:
        opt.show(protocol.to_json())
        return
    typer.echo(f"collection {name}: {method} asks for")
    for round in protocol.rounds:
        hears = f", after hearing {round.hears}" if round.hears else ""
        typer.echo(f"  {round.name}: {round.randomizer.words()}{hears}")
    for part in protocol.promise.raw:
        typer.echo(f"  {part}: IN THE CLEAR{', AND TOLD TO ALL WHO TAKE PART' if part in protocol.tells else ''}")


@collection.command("enrol")
def enrol_records(
    name: Annotated[str, typer.Argument(help="The collection.")],
    ids: Annotated[Path, typer.Argument(metavar="FILE", help="Ids, one a line.")],
    holder: Annotated[str, typer.Option(help="Whose records they are.")],
    folder: Folder = HERE,
    store: Url = None,
) -> None:
    """Say whose records are: nobody else can report them, and in a collection that is not open nothing else is taken."""
    found = _store(folder, store)
    from graphveil.service.enrolment import enrol, read_names

    names = read_names(ids)
    new = enrol(found, found.number_of(name), holder, names)
    typer.echo(f"{len(names)} records of {holder}, {new} of them new")


@collection.command("list")
def list_collections(folder: Folder = HERE, store: Url = None, as_json: opt.AsJson = False) -> None:
    """All collections."""
    found = _store(folder, store).collections()
    if as_json:
        opt.show([protocol.to_json() | {"state": state} for _, protocol, state in found])
        return
    for _, protocol, state in found:
        typer.echo(f"{protocol.name} {protocol.method} {state}")


@collection.command("close")
def close_collection(name: str, folder: Folder = HERE, store: Url = None) -> None:
    """Take no further reports."""
    found = _store(folder, store)
    found.close_collection(found.number_of(name))
    typer.echo(f"{name} is closed")


def _store(folder: Path, url: str | None) -> Store:
    _installed()
    from graphveil.service.store import Store

    found = Store(folder, url)
    found.upgrade()
    return found


def _installed() -> None:
    from importlib.util import find_spec

    missing = [
        name for name in ("fastapi", "uvicorn", "sqlalchemy", "alembic", "prometheus_client") if not find_spec(name)
    ]
    if missing:
        raise InputError(f"'graphveil serve' needs {', '.join(missing)}: pip install 'graphveil[serve]'")
