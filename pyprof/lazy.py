"""Modules that load when something of them is first used, where a help text needs none of it."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any


class _LazyModule(ModuleType):
    """Stands for a module; what is asked of it is that module's."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a module attribute can be anything
        return getattr(import_module(self.__name__), name)


def lazy_module(name: str) -> ModuleType:
    """Give a module that loads when something of it is used; type checkers want its import."""
    return _LazyModule(name)
