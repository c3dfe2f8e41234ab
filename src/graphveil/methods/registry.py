"""Every method by name and mode; classes are imported when asked for, so that listing and planning stay quick.

Outsiders add theirs with ``gv.register(MyMethod)``, or by an entry point of the group ``graphveil.methods`` that names the class;
then planning, saving, loading, audits and the command line know it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from importlib import import_module, metadata
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeVar

from graphveil.errors import InputError

if TYPE_CHECKING:
    from graphveil.methods.base import PrivateMethod

    M = TypeVar("M", bound=PrivateMethod)

GROUP = "graphveil.methods"
AUTO = "auto"  # not a method: it chooses one (auto.py)
SOUND, PUBLISHED = "sound", "published"
MODES = (SOUND, PUBLISHED)
VERBS = {SOUND: "proves", PUBLISHED: "claims"}

ENTRIES: dict[str, dict[str, Any]] = tomllib.loads((files("graphveil.methods") / "cards.toml").read_text("utf-8"))
BUILT_IN = {name: {mode: entry[mode] for mode in MODES if mode in entry} for name, entry in ENTRIES.items()}
_REGISTERED: dict[str, dict[str, type[PrivateMethod]]] = {}


def register(cls: type[M]) -> type[M]:
    """Make a method known by the name on its card, in the mode it is for; also usable as a decorator."""
    if not hasattr(cls, "card"):
        raise InputError(f"{cls.__name__} has no card: give it one (gv.Card), with the name it shall be known by")
    name, mode = cls.card.name, cls.mode
    known = _REGISTERED.get(name, {}).get(mode)
    if name in BUILT_IN or (known is not None and known.__qualname__ != cls.__qualname__):
        raise InputError(f"there is already a method {name!r}: give yours another name on its card")
    _REGISTERED.setdefault(name, {})[mode] = cls
    return cls


@cache
def _entry_points() -> dict[str, metadata.EntryPoint]:
    return {point.name: point for point in metadata.entry_points(group=GROUP)}


def _installed(name: str) -> None:
    """Load the entry points of this name; ``name-published`` is the published mode of ``name``."""
    for mode, key in ((SOUND, name), (PUBLISHED, f"{name}-{PUBLISHED}")):
        point = _entry_points().get(key)
        if point is None or mode in _REGISTERED.get(name, {}):
            continue
        try:
            cls = point.load()
        except Exception as error:  # somebody else's package: whatever it raises becomes one line
            raise InputError(f"method {name!r} ({point.value}) cannot be loaded: {error}") from error
        register(cls)
        if mode not in _REGISTERED.get(name, {}):
            raise InputError(f"entry point {key!r}: {point.value} is {cls.card.name!r} ({cls.mode}) on its card")


def method_names() -> Iterator[str]:
    """Every name: built in, registered, and installed by entry point."""
    yield from BUILT_IN
    yield from _REGISTERED
    known = {*BUILT_IN, *_REGISTERED}
    yield from (name for name in _entry_points() if name not in known and not name.endswith(f"-{PUBLISHED}"))


def modes_of(name: str) -> tuple[str, ...]:
    """The modes in which there is a method of this name."""
    if name in BUILT_IN:
        return tuple(BUILT_IN[name])
    _installed(name)
    if name not in _REGISTERED:
        known = list(method_names())
        close = get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "one of your own needs gv.register or an entry point"
        raise InputError(f"unknown method {name!r}; {hint} (known: {', '.join(known)})")
    return tuple(_REGISTERED[name])


def method_class(name: str, mode: str = SOUND) -> type[PrivateMethod]:
    """The class of a method, by its registered name and mode."""
    modes = modes_of(name)
    if mode not in modes:
        raise InputError(f"{name} has no mode {mode!r}; it has: {', '.join(modes)}")
    if name in _REGISTERED:
        return _REGISTERED[name][mode]
    module, _, attribute = BUILT_IN[name][mode].partition(":")
    cls: type[PrivateMethod] = getattr(import_module(f"graphveil.methods.{module}"), attribute)
    return cls


def build(name: str, parameters: dict[str, Any]) -> PrivateMethod:
    """The method of this name with these options; ``mode`` among them chooses the class."""
    return method_class(name, parameters.get("mode", SOUND))(**parameters)


def presets(name: str) -> dict[str, dict[str, Any]]:
    """By data set, the options that a method's paper has for it; a baseline has those of the paper it stands in."""
    found: Any = ENTRIES.get(name, {}).get("presets", {})
    return presets(found) if isinstance(found, str) else found


def preset(name: str, data: str) -> dict[str, Any]:
    """The options that the paper of this method has for this data set: ``gv.Lpgnn(**gv.preset("lpgnn", "pubmed"))``."""
    modes_of(name)  # a name that is not known is refused
    known = presets(name)
    if data not in known:
        raise InputError(f"{name} has no preset {data!r}; it has: {', '.join(known) or 'none'}")
    return dict(known[data])


def methods() -> list[dict[str, Any]]:
    """All methods: name, paper, whom to trust, what is protected, modes and the guarantees per mode."""
    return [describe(name) for name in method_names()]


def describe(name: str) -> dict[str, Any]:
    """One method's card, with the guarantees of each of its modes, its default parameters and its presets."""
    classes = {mode: method_class(name, mode) for mode in modes_of(name)}
    guarantees = {}
    for mode, cls in classes.items():
        triples = sorted((g.level, g.adjacency, g.relation) for g in cls(mode=mode).supports)
        guarantees[mode] = [dict(zip(("level", "adjacency", "relation"), map(str, t), strict=True)) for t in triples]
    first = next(iter(classes.values()))
    return {
        **first.card.to_json(),
        "modes": list(classes),
        "levels": sorted({g["level"] for mode in guarantees.values() for g in mode}),
        "supports": guarantees,
        "gaps": [{"code": gap.code, "text": gap.text} for gap in classes.get(PUBLISHED, first).gaps],
        "defaults": first.parameter_defaults(),
        "published_defaults": classes[PUBLISHED].parameter_defaults() if PUBLISHED in classes else None,
        "presets": presets(name),
    }
