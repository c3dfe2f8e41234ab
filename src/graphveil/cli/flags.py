"""Groups of flags: a command takes one dataclass, the command line shows one option per field."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from graphveil.cli.options import flag
from graphveil.errors import InputError

if TYPE_CHECKING:
    from graphveil.privacy.promise import Promise


def given_options(settings: list[str] | None) -> dict[str, Any]:
    """What ``--set`` says."""
    values: dict[str, Any] = {}
    for setting in settings or []:
        key, equals, text = setting.partition("=")
        if not equals:
            raise InputError(f"--set takes key=value, got {setting!r}")
        try:
            values[key] = json.loads(text)  # a number, true, false or null; the method checks the type
        except json.JSONDecodeError:
            values[key] = text
    return values


OF_THE_METHOD = ("mode", "preset", "settings", "cover_edges")  # flags that are not about the promise


@dataclass(frozen=True)
class PromiseFlags:
    """Which mode and options of a method, under which promise: the same for every command that plans or trains."""

    level: Annotated[str | None, flag("--level", "edge, k-neighbor, node, local, or none.")] = "node"
    epsilon: Annotated[float | None, flag("--epsilon E", "The privacy budget.")] = None
    delta: Annotated[float | None, flag("--delta D", "Default: 10^-ceil(log10 n), a tenth at edge level.")] = None
    k: Annotated[int | None, flag("--k K", "Edges per person protected at k-neighbor level.")] = None
    adjacency: Annotated[str | None, flag("--adjacency A", "record, bounded-degree or node (node level).")] = None
    relation: Annotated[
        str | None,
        flag("--relation R", "zero-out (default) or replace; level local: replace, or zero-out of a list entry alone."),
    ] = None
    mode: Annotated[str | None, flag("--mode M", "sound (default) or published.")] = None
    max_degree: Annotated[int | None, flag("--max-degree D", "The degree promise of bounded-degree.")] = None
    directed: Annotated[bool, flag("--directed", "Edge level: protect one directed link.")] = False
    features_epsilon: Annotated[
        str | None, flag("--features-epsilon E|raw|withheld", "Level local: of all features.")
    ] = None
    labels_epsilon: Annotated[str | None, flag("--labels-epsilon E|raw|withheld", "Level local: of the label.")] = None
    edges_epsilon: Annotated[str | None, flag("--edges-epsilon E|raw|withheld", "Level local: of one contact.")] = None
    cover_edges: Annotated[
        str | None, flag("--cover-edges W", "Method auto: released, or all (predictions of an edge's two ends, too).")
    ] = None
    preset: Annotated[
        str | None, flag("--preset DATA", "The paper's hyper-parameters for this data set; --set goes above them.")
    ] = None
    settings: Annotated[list[str] | None, flag("--set KEY=VALUE", "A hyper-parameter; repeatable.")] = None

    def given(self, *allowed: str) -> list[str]:
        """The flags that are not at their default, as the user wrote them; ``allowed`` fields are left out."""
        named = get_type_hints(type(self), include_extras=True)
        changed = [f.name for f in fields(self) if f.name not in allowed and getattr(self, f.name) != f.default]
        return [named[name].__metadata__[0].default for name in changed]  # typer keeps an option's first name there

    def settled(self, name: str) -> tuple[Any, Promise]:
        """The method with its options and the promise; ``auto`` has chosen."""
        method = self.method(name)
        promise = self.promise(method)
        return settled(method, promise), promise

    def method(self, name: str) -> Any:
        """The method with its ``--mode``, ``--preset`` and ``--set`` options."""
        from graphveil.methods.registry import AUTO, build, preset

        values = {"mode": self.mode or "sound"} | given_options(self.settings)
        if self.preset is not None:
            values = preset(name, self.preset) | values
        if name == AUTO:
            from graphveil.methods.auto import Auto

            return Auto(cover_edges=self.cover_edges or "released", **values)
        if self.cover_edges is not None:
            raise InputError(f"--cover-edges helps auto to choose a method; {name} is one")
        return build(name, values)

    def promise(self, method: Any) -> Promise:
        """The promise the flags describe, where they leave it open as the method supports it."""
        from graphveil.privacy.promise import Promise

        stated = [field.name for field in fields(self) if field.name not in OF_THE_METHOD]
        values = {name.removesuffix("_epsilon"): getattr(self, name) for name in stated}
        if not method.supports and self.level == "node" and self.epsilon is None:
            values["level"] = "none"  # there is nothing else it could be trained under
        return Promise.parse(**values, supported=method.supports)


def settled(method: Any, promise: Promise) -> Any:
    """The method itself, or the one that ``auto`` chooses for the promise, which is said in one line."""
    from graphveil.methods.auto import Auto

    if not isinstance(method, Auto):
        return method
    choice = method.choose(promise)
    typer.echo(str(choice), err=True)
    return choice.method


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """The command with one parameter per field of every dataclass among its parameters, for typer to read."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            shown = get_type_hints(groups[name], include_extras=True)
            for field in fields(groups[name]):
                required = field.default is MISSING
                options = {"default": inspect.Parameter.empty if required else field.default}
                options["annotation"] = shown[field.name]
                parameters.append(inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, **options))
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def spread_out(**values: Any) -> None:
        grouped = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**grouped, **values)

    spread_out.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    spread_out.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return spread_out
