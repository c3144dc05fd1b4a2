"""Functions that are called as soon as the script has imported a module.

Torch is not imported earlier than by the script itself: it reads its environment then.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class AfterImport(MetaPathFinder):
    """A finder that leaves finding to the others, and calls back when a module has been loaded."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[Callable[[], object]]] = {}

    def call(self, name: str, function: Callable[[], object]) -> None:
        """Call a function once the module is imported; at once if it is already."""
        if name in sys.modules and name not in self._waiting:
            function()
        else:
            self._waiting.setdefault(name, []).append(function)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Let the other finders find a module that is waited for; None for any other."""
        if fullname not in self._waiting:
            return None
        for finder in sys.meta_path:
            find: Any = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(fullname, path, target) if finder is not self else None
            if spec is not None:
                self._call_after_execution(fullname, spec)
                return spec
        return None

    def _call_after_execution(self, name: str, spec: ModuleSpec) -> None:
        loader: Any = spec.loader
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module: ModuleType) -> None:
            execute(module)
            while functions := self._waiting.get(name):
                functions.pop(0)()
            self._waiting.pop(name, None)

        loader.exec_module = exec_module
