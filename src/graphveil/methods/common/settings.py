"""Options handed on as values, so that an algorithm and its bounds never see the method."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

from graphveil.methods.options import Options


@dataclass(frozen=True)
class Settings:
    """Subclasses are frozen dataclasses whose fields are options of the same names."""

    @classmethod
    def of(cls, options: Options) -> Self:
        return cls(**{field.name: getattr(options, field.name) for field in fields(cls)})
