"""The ranges that stay open while other code runs: layers and annotations, a stack per thread.

Ops close their own ranges before they return. What stays open is written down here, so that a
range which is closed takes along whatever was left open inside it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from pyprof.instrument.emit import EMITTER


@dataclass(slots=True, eq=False)
class Open:
    """An open range and those that go with it."""

    owner: object
    pushed: int
    prefix: str = ""
    """What the names of layers inside this one begin with."""


class _Ranges(threading.local):
    def __init__(self) -> None:
        self.stack: list[Open] = []


_RANGES = _Ranges()


def stack() -> list[Open]:
    """Give this thread's open ranges, outermost first."""
    return _RANGES.stack


def open_range(text: str, owner: object, *more: str, prefix: str = "") -> Open:
    """Open a range, and more inside it that close along with it."""
    opened = Open(owner, 0, prefix)
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


def depth() -> int:
    """Count this thread's open ranges."""
    return len(_RANGES.stack)
