"""From a capture of GPU work to the op, layer and source line that caused each kernel.

The public API. Names are imported when first used, so that `import pyprof` costs nothing
and loads neither torch nor pandas.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyprof.version import __version__ as __version__

if TYPE_CHECKING:  # what type checkers see of the names below
    from importlib.machinery import ModuleSpec

    from pyprof import nvtx as nvtx
    from pyprof.api import diff as diff
    from pyprof.api import memory as memory
    from pyprof.api import ranks as ranks
    from pyprof.api import summary as summary
    from pyprof.api import whatif as whatif
    from pyprof.capture.recorded_block import profile as profile
    from pyprof.errors import PyprofError as PyprofError
    from pyprof.frame import load as load
    from pyprof.instrument import annotate as annotate
    from pyprof.instrument import enabled as enabled
    from pyprof.instrument import init as init
    from pyprof.instrument import print_timings as print_timings
    from pyprof.instrument import step as step
    from pyprof.instrument import stop as stop
    from pyprof.instrument import timings as timings
    from pyprof.instrument import wrap as wrap

_EXPORTS: dict[str, str] = {
    "PyprofError": "pyprof.errors",
    "annotate": "pyprof.instrument",
    "diff": "pyprof.api",
    "enabled": "pyprof.instrument",
    "init": "pyprof.instrument",
    "load": "pyprof.frame",
    "memory": "pyprof.api",
    "nvtx": "pyprof.nvtx",
    "print_timings": "pyprof.instrument",
    "profile": "pyprof.capture.recorded_block",
    "ranks": "pyprof.api",
    "step": "pyprof.instrument",
    "stop": "pyprof.instrument",
    "summary": "pyprof.api",
    "timings": "pyprof.instrument",
    "whatif": "pyprof.api",
    "wrap": "pyprof.instrument",
}

__all__ = ["__version__", *_EXPORTS]  # noqa: PLE0604 - the keys are strings


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module attribute can be anything
    if name not in _EXPORTS:
        raise AttributeError(f"module 'pyprof' has no attribute {name!r}")
    try:
        home = import_module(_EXPORTS[name])
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        return _NeedsTorch(name)
    return getattr(home, name)


class _NeedsTorch:
    """Placeholder for a name that needs torch, which is not installed; raises when called."""

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self.__doc__ = f"pyprof.{name} needs PyTorch, which is not installed."

    def __call__(self, *_args: object, **_kwargs: object) -> Any:  # noqa: ANN401 - never returns
        raise ImportError(f"pyprof.{self.__name__} needs PyTorch: pip install torch", name="torch")

    def __getattr__(self, name: str) -> _NeedsTorch:
        if name.startswith("_"):
            raise AttributeError(name)
        return _NeedsTorch(f"{self.__name__}.{name}")


def __dir__() -> list[str]:
    return sorted(__all__)


class _Commands:
    """Finds `pyprof.NAME` for commands without a package, so that `python -m pyprof.NAME` works.

    Called only for names that are not in this folder.
    """

    @staticmethod
    def find_spec(name: str, target: object = None) -> ModuleSpec | None:
        del target
        spec: ModuleSpec | None = import_module("pyprof.__main__").module_spec(name)
        return spec


_PLACE = f"{__path__[0]}{os.sep}(commands)"
__path__.append(_PLACE)
sys.path_importer_cache[_PLACE] = _Commands()
