"""Traces of torch.profiler (Kineto): Chrome trace JSON, plain or gzip, of torch 1.8 and later."""

from __future__ import annotations

import gc
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyprof.errors import CaptureError
from pyprof.readers.kineto import gather, graph_captures
from pyprof.readers.kineto.gather import Gathered
from pyprof.readers.kineto.stream import Trace
from pyprof.schema import Identity

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyprof.readers.kineto.gather import Recording
    from pyprof.schema import Capture

_HEAD_BYTES = 1 << 16
_GZIP = b"\x1f\x8b"
_SIGNS = (
    b'"traceEvents"',
    b'"schemaVersion"',
    b'"deviceProperties"',
    b'"ph"',
    b'"displayTimeUnit"',
)


def sniff(path: Path, head: bytes) -> bool:
    """Tell whether a file that begins with `head` is a Chrome trace, by its first 64 KiB."""
    if head[:2] != _GZIP and head.lstrip()[:1] not in {b"{", b"["}:
        return False
    with path.open("rb") as file:
        start = file.read(_HEAD_BYTES)
    if start[:2] == _GZIP:
        try:
            start = zlib.decompressobj(wbits=31).decompress(start, _HEAD_BYTES)
        except zlib.error:
            return False
    return start.lstrip()[:1] in {b"{", b"["} and any(sign in start for sign in _SIGNS)


def read(path: Path) -> Capture:
    """Read a trace; CaptureError where it holds neither GPU work nor ops of torch.profiler."""
    gathered, trace = _gathered(path)
    if gathered.empty:
        raise CaptureError(
            f"{path}: no GPU work and no ops of torch.profiler in this trace; "
            "record the part of the script that uses tensors"
        )
    capture = gathered.capture(trace)
    return graph_captures.attached(capture, path, gathered.captured(trace), _recording)


def _gathered(path: Path) -> tuple[Gathered, Trace]:
    trace = Trace(path)
    gathered = Gathered()
    with _no_collection():
        for groups in trace.events():
            gathered.add(groups)
    return gathered, trace


def _recording(path: Path) -> tuple[Recording, Trace]:
    """Read how graphs were captured in a trace."""
    gathered, trace = _gathered(path)
    return gathered.recording(trace), trace


def identity(path: Path) -> Identity:
    """Give the rank that stands before the events."""
    trace = Trace(path)
    trace.open()
    return Identity(rank=gather.rank(trace.header))


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the garbage collector from walking millions of parsed values that have no cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
