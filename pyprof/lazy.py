"""Modules imported on first use, so that help texts stay quick."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any


class _LazyModule(ModuleType):
    """Stands for a module, and looks attributes up there."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a module attribute can be anything
        return getattr(import_module(self.__name__), name)


def lazy_module(name: str) -> ModuleType:
    """Return a module that is imported on first use; type checkers need its import."""
    return _LazyModule(name)
