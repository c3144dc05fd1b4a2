"""Op markers around collectives that torch coalesces and runs at the end of a `with`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from pyprof.instrument.ops.op import is_disabled
from pyprof.instrument.ops.process_groups import coalesced_text
from pyprof.instrument.ranges.emit import EMITTER
from pyprof.instrument.wrap import call_inside

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pyprof.instrument.ops.patch import Patches

_NAME = "_coalescing_manager"


def wrap_coalesced(patches: Patches) -> None:
    """Mark what `torch.distributed._coalescing_manager` launches on exit."""
    if not torch.distributed.is_available():
        return
    homes: tuple[Any, ...] = (torch.distributed.distributed_c10d, torch.distributed)
    original = getattr(homes[0], _NAME, None)
    if original is None:  # not public
        return

    @functools.wraps(original)
    def manager(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the original
        return _Coalesced(original(*args, **kwargs), args[0] if args else kwargs.get("group"))

    for home in homes:
        if hasattr(home, _NAME):
            patches.replace(home, _NAME, manager)


class _Coalesced:
    """torch's context manager, with a marker around its exit."""

    def __init__(self, inner: AbstractContextManager[object], group: object) -> None:
        self._inner = inner
        self._group = group

    def __enter__(self) -> object:
        return self._inner.__enter__()

    def __exit__(self, *error: Any) -> bool | None:  # noqa: ANN401, PYI036 - handed on
        text = "" if EMITTER.push is None or is_disabled() else coalesced_text(self._group)
        close = self._inner.__exit__
        return call_inside(text, close, *error) if text else close(*error)
