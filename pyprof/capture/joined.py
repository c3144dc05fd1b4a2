"""Traces of torch.profiler, one for each window of a capture, joined to a single one.

All come from one process, and so count time from the same instant. Between two windows stand the
calls that end the one and begin the other, as Nsight Systems and nvprof record them.
"""

from __future__ import annotations

import mmap
import os
import re
import threading
from contextlib import closing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from io import BufferedIOBase
    from pathlib import Path
    from typing import BinaryIO

_BLOCK = 1 << 20
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_AFTER = b'"traceName"'
_MARKS = 4096
"""The bounds of a window are among its last events, within so many bytes."""
_BEGIN = re.compile(rb'"Iteration Start: PyTorch Profiler".*?"ts": ([\d.]+)', re.DOTALL)
_END = re.compile(rb'"Record Window End".*?"ts": ([\d.]+)', re.DOTALL)


def join(windows: Iterable[Path], target: BufferedIOBase) -> None:
    """Write the traces as one: what the first says of the process, and the events of all.

    Raises OSError where one is not whole.
    """
    before, rest = b"", b""
    for path in windows:
        if not path.stat().st_size:
            raise OSError(_CUT)
        with path.open("rb") as file, closing(_mapped(file)) as text:
            opening, after = _EVENTS.search(text), text.rfind(_AFTER)
            if opening is None or after < 0:
                raise OSError(_CUT)
            first, last = opening.end(), text.rfind(b"]", 0, after)
            marks = text[max(last - _MARKS, first) : last]
            target.write(_pause(before, marks) if before else text[:first])
            blocks = range(first, last, _BLOCK)
            target.writelines(text[start : min(start + _BLOCK, last)] for start in blocks)
            before, rest = marks, rest or text[last:]
    target.write(rest)


_CUT = "torch.profiler could not write all of its trace, as when a disk is full"
"""It says nothing itself."""


def _mapped(file: BinaryIO) -> mmap.mmap:
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _pause(before: bytes, after: bytes) -> bytes:
    """Write the calls between two windows, as further events."""
    calls = ("cudaProfilerStop", _at(_END, before)), ("cudaProfilerStart", _at(_BEGIN, after))
    thread = f'"pid": {os.getpid()}, "tid": {threading.get_native_id()}, "dur": 0'
    return (
        "".join(
            f',\n  {{"ph": "X", "cat": "cuda_runtime", "name": "{name}", "ts": {ts}, {thread}}}'
            for name, ts in calls
        ).encode()
        + b",\n"
    )


def _at(mark: re.Pattern[bytes], events: bytes) -> str:
    """Give the time of an event, in us as it is written: a float would round it."""
    *_, found = mark.finditer(events)
    return str(found[1], "ascii")
