"""The ranges that stay open while other code runs: layers and annotations, a stack per thread.

Ops close their own ranges before they return. A layer's range may be left behind, where a
`KeyboardInterrupt` went past the hook that closes it: then whoever closes next closes it as well.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyprof.instrument.emit import EMITTER

if TYPE_CHECKING:
    from types import FrameType


@dataclass(slots=True, eq=False)
class Open:
    """An open range and those that go with it."""

    owner: object
    pushed: int
    frame_id: int = 0
    """The id of the frame that it was opened from, which lives as long as it may stay open."""
    prefix: str = ""
    """What the names of layers inside this one begin with."""


class _Ranges(threading.local):
    def __init__(self) -> None:
        self.stack: list[Open] = []


_RANGES = _Ranges()


def stack() -> list[Open]:
    """Give this thread's open ranges, outermost first."""
    return _RANGES.stack


def open_range(text: str, owner: object, *more: str, frame_id: int = 0, prefix: str = "") -> Open:
    """Open a range, and more inside it that close along with it."""
    opened = Open(owner, 0, frame_id, prefix)
    _RANGES.stack.append(opened)
    push = EMITTER.push
    if push is not None:
        for each in (text, *more):
            push(each)
            opened.pushed += 1
    return opened


def close_range(opened: Open) -> None:
    """Close a range with everything that was left open inside it; nothing if it is closed."""
    open_here = _RANGES.stack
    if opened not in open_here:
        return
    while True:
        last = open_here.pop()
        for _ in range(last.pushed):
            EMITTER.pop()
        if last is opened:
            return


def close_abandoned(frame: FrameType) -> None:
    """Close the ranges whose opener is gone: a `KeyboardInterrupt` passes by the closing hooks.

    `frame` is where a new range is about to open: those left open belong to frames below it.
    """
    open_here = _RANGES.stack
    if not open_here or not open_here[-1].frame_id:
        return
    last = open_here[-1].frame_id
    here = frame.f_back
    while here is not None:
        if id(here) == last:
            return
        here = here.f_back
    close_range(open_here[-1])
    close_abandoned(frame)


def depth() -> int:
    """Count this thread's open ranges."""
    return len(_RANGES.stack)
