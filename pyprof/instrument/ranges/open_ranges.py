"""What is open on each thread: ranges that stay open while other code runs, and calls of ours.

Ops close their own ranges before they return. Those of layers and annotations are written down
here, so that one which is closed takes along whatever was left open inside it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from pyprof.instrument.ranges.emit import EMITTER
from pyprof.instrument.ranges.stack import NOWHERE

if TYPE_CHECKING:
    from types import FrameType

    from pyprof.instrument.layers import ModuleName


class Here:
    """What one thread is in. The call of an op or module changes it, and back when it is over."""

    __slots__ = ("frame", "name", "open", "trace", "within")

    def __init__(self) -> None:
        self.open: list[object] = []
        """What opened the ranges that are open, outermost first."""
        self.name: ModuleName | None = None
        """That of the module whose forward runs."""
        self.trace = ""
        """The innermost trace marker that is open."""
        self.frame: FrameType | None = None
        """The innermost call of ours. Let go of before it returns: else it would live on, and with
        it all that was passed to it."""
        self.within = NOWHERE
        """The stack that led to that call."""


class _Thread(threading.local):
    def __init__(self) -> None:
        self.here = Here()


THREAD = _Thread()


def open_range(text: str) -> object:
    """Open a range; give what closes it."""
    opened = object()
    push = EMITTER.push
    if push is not None:
        THREAD.here.open.append(opened)
        push(text)
    return opened


def close_range(opened: object) -> None:
    """Close a range with everything that was left open inside it; nothing if it is closed."""
    ranges = THREAD.here.open
    for height in reversed(range(len(ranges))):
        if ranges[height] is opened:
            close_down_to(height, ranges)


def close_down_to(height: int, ranges: list[object]) -> None:
    """Close ranges until there are no more open than this."""
    while len(ranges) > height:
        ranges.pop()
        EMITTER.pop()
