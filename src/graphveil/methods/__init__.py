"""One room per system, small baselines as single files; calling the package lists the methods: ``gv.methods()``."""

import sys
from types import ModuleType
from typing import Any


class _Methods(ModuleType):
    """The package itself answers ``gv.methods()``: the name is both, and importing any method must not hide the function."""

    def __call__(self) -> list[dict[str, Any]]:
        from graphveil.methods.registry import methods

        return methods()


sys.modules[__name__].__class__ = _Methods
