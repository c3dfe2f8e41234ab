"""Options of a method: keyword-only fields whose range or choices stand in their annotation.

    class Mine(PrivateMethod):
        steps: Count = 50
        network: Literal["own", "paper"] = "own"
        centring: Annotated[float, Range(0, 1, "[)")] = 0.03

Subclasses become dataclasses by themselves. A wrong value is refused when it is set; :meth:`Options.check` adds what options
must satisfy together. ``get_params``, ``set_params``, ``clone`` and ``repr`` are those of scikit-learn.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, fields
from functools import cache
from inspect import get_annotations
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Self, Union, dataclass_transform, get_args, get_origin

from graphveil.errors import InputError

MOST = 1e9
WORDS = {int: "a whole number", float: "a number", str: "a name", bool: "true or false", NoneType: "nothing"}


@dataclass(frozen=True)
class Range:
    """The numbers between two ends; ``ends`` says with brackets which of them belong to it."""

    low: float
    high: float = MOST
    ends: Literal["[]", "[)", "(]", "()"] = "[]"

    def __contains__(self, value: float) -> bool:
        above = value > self.low if self.ends[0] == "(" else value >= self.low
        return above and (value < self.high if self.ends[1] == ")" else value <= self.high)

    def __str__(self) -> str:
        if self.high == MOST:
            return f"above {self.low:g}" if self.ends[0] == "(" else f"of at least {self.low:g}"
        return f"in {self.ends[0]}{self.low:g}, {self.high:g}{self.ends[1]}"


Count = Annotated[int, Range(1)]
Natural = Annotated[int, Range(0)]
Positive = Annotated[float, Range(0, ends="(]")]
NonNegative = Annotated[float, Range(0)]
Share = Annotated[float, Range(0, 1, "()")]
Fraction = Annotated[float, Range(0, 1, "[)")]  # a share that may be nothing: a centring, a dropout


@dataclass(frozen=True)
class Alternative:
    """One thing an option may be: a value of this kind (in this range), or one of these values."""

    kind: type
    range: Range | None = None
    values: tuple[Any, ...] = ()

    def __contains__(self, value: Any) -> bool:
        if self.values:
            return any(type(value) is type(known) and value == known for known in self.values)
        if isinstance(value, bool):
            return self.kind is bool
        whole_for_float = isinstance(value, int) and self.kind is float
        if not (isinstance(value, self.kind) or whole_for_float):
            return False
        if isinstance(value, float) and not math.isfinite(value):
            return False
        return self.range is None or value in self.range

    def __str__(self) -> str:
        if self.values:
            return ", ".join(map(str, self.values))
        return WORDS.get(self.kind, self.kind.__name__) + ("" if self.range is None else f" {self.range}")


def alternatives(hint: Any) -> tuple[Alternative, ...]:
    """What an annotation allows."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return tuple(found for part in get_args(hint) for found in alternatives(part))
    if origin is Literal:
        return (Alternative(object, values=get_args(hint)),)
    if origin is Annotated:
        kind, *marks = get_args(hint)
        span = next((mark for mark in marks if isinstance(mark, Range)), None)
        return tuple(Alternative(found.kind, span, found.values) for found in alternatives(kind))
    return (Alternative(NoneType if hint is None else hint),)


@cache
def allowed(cls: Any) -> dict[str, tuple[Alternative, ...]]:
    """By option what it may be; annotations are looked up where the class that has them was written."""
    names = {field.name for field in fields(cls)}
    found: dict[str, tuple[Alternative, ...]] = {}
    for base in reversed(cls.__mro__):
        for name, hint in get_annotations(base).items():
            if name in names:
                where = vars(sys.modules[base.__module__])
                found[name] = alternatives(eval(hint, where) if isinstance(hint, str) else hint)
    return found


def accepts(cls: Any, name: str, value: Any) -> bool:
    """Whether there is an option of this name that may have this value."""
    return any(value in alternative for alternative in allowed(cls).get(name, ()))


def refuse_unknown(cls: Any, title: str, names: Iterable[str]) -> None:
    """An error that lists the options if one of these names is none of them."""
    known = allowed(cls)
    for name in names:
        if name not in known:
            raise InputError(f"{title} has no option {name!r}; it has: {', '.join(known)}")


@dataclass_transform(kw_only_default=True)
@dataclass(kw_only=True, eq=False, repr=False)
class Options:
    """Named, checked settings; subclasses list them as annotated class attributes."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(kw_only=True, eq=False, repr=False)(cls)

    def __post_init__(self) -> None:
        self.check()

    def __setattr__(self, name: str, value: Any) -> None:
        kind: Any = type(self)
        known = allowed(kind)
        if name in known and not any(value in alternative for alternative in known[name]):
            spoken = " or ".join(map(str, known[name]))
            raise InputError(f"{self._title}: option {name} takes {spoken}, got {value!r}")
        if not hasattr(kind, name):
            refuse_unknown(kind, self._title, [name])
        object.__setattr__(self, name, value)

    @property
    def _title(self) -> str:
        return type(self).__name__

    def check(self) -> None:
        """Refuse options that do not go together; each has been checked alone."""

    @classmethod
    def parameter_defaults(cls) -> dict[str, Any]:
        return {field.name: None if field.default is MISSING else field.default for field in fields(cls)}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **values: Any) -> Self:
        """All of them or, if one is refused, none."""
        draft = object.__new__(type(self))
        draft.__dict__.update(self.__dict__)
        refuse_unknown(type(self), self._title, values)
        for name, value in values.items():
            setattr(draft, name, value)
        draft.check()
        self.__dict__.update(draft.__dict__)
        return self

    def clone(self) -> Self:
        """Another one with the same options."""
        return type(self)(**self.get_params())

    def __repr__(self) -> str:
        defaults = self.parameter_defaults()
        changed = {name: value for name, value in self.get_params().items() if value != defaults[name]}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"
