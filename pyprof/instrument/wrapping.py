"""The user's own ops: `pyprof.wrap`."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pyprof.instrument.op import isinstance_op, make_op

if TYPE_CHECKING:
    from pyprof.instrument.patch import Patches

WRAPPED: list[tuple[object, str]] = []
"""What the user wants wrapped, whether or not anything is wrapped now."""


def wrap_asked(patches: Patches) -> None:
    """Wrap all that was asked for."""
    for home, name in WRAPPED:
        wrap_one(home, name, patches)


def wrap_one(home: object, name: str, patches: Patches) -> None:
    """Put an Op in the place of a function, method, static or class method."""
    found: Any = inspect.getattr_static(home, name)
    inner = (
        found.__func__ if isinstance(found, (staticmethod, classmethod)) else getattr(home, name)
    )
    if isinstance_op(inner):
        return
    mod = home.__name__ if isinstance(home, (type, ModuleType)) else type(home).__name__
    op: Any = make_op(inner, home, name, mod)
    if isinstance(found, (staticmethod, classmethod)):
        op = type(found)(op)
    patches.replace(home, name, op)
