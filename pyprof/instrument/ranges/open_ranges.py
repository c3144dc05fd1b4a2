"""Per thread: the ranges that stay open while other code runs, and the innermost wrapped call.

Ops close their own ranges before they return. Ranges of layers and annotations are recorded here,
so that closing one also closes whatever was left open inside it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyprof.instrument.ranges.emit import EMITTER
from pyprof.instrument.ranges.stack import NO_FRAMES, Stack

if TYPE_CHECKING:
    from types import FrameType

    from pyprof.instrument.layers import ModuleName


@dataclass(slots=True, eq=False)
class Here:
    """State of one thread. The call of an op or module changes it and restores it."""

    open: list[object] = field(default_factory=list)
    """What opened each open range, outermost first."""
    name: ModuleName | None = None
    """Name of the module whose forward runs."""
    trace: str = ""
    """The innermost trace marker that is open."""
    frame: FrameType | None = None
    """Frame of the innermost wrapped call. Cleared before that returns: it would keep all arguments
    alive."""
    within: Stack = NO_FRAMES
    """The stack that led to that call."""


class _Thread(threading.local):
    def __init__(self) -> None:
        self.here = Here()


THREAD = _Thread()


def open_range(text: str) -> object:
    """Open a range and return its handle for `close_range`."""
    opened = object()
    push = EMITTER.push
    if push is not None:
        THREAD.here.open.append(opened)
        push(text)
    return opened


def close_range(opened: object) -> None:
    """Close a range and everything left open inside it; nothing if already closed."""
    ranges = THREAD.here.open
    for height in reversed(range(len(ranges))):
        if ranges[height] is opened:
            while len(ranges) > height:
                ranges.pop()
                EMITTER.pop()
