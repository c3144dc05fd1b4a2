"""Traces of torch.profiler (Kineto): Chrome trace JSON, plain or gzip, of torch 1.8 and later."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from pyprof.readers.encodings import utf8

if TYPE_CHECKING:
    from pathlib import Path

    from pyprof.schema import Capture, Identity

FORMAT = "a torch.profiler trace (.json, .json.gz)"

_HEAD_BYTES = 1 << 16
_GZIP = b"\x1f\x8b"
_SIGNS = (
    b'"traceEvents"',
    b'"schemaVersion"',
    b'"deviceProperties"',
    b'"ph"',
    b'"displayTimeUnit"',
)
"""One of these keys is near the beginning of every trace."""


def sniff(path: Path, head: bytes) -> bool:
    """Whether a file that begins with `head` is a Chrome trace, by its first 64 KiB."""
    if head[:2] != _GZIP and utf8(head).lstrip()[:1] not in {b"{", b"["}:
        return False
    start = opening(path)
    return start.lstrip()[:1] in {b"{", b"["} and any(sign in start for sign in _SIGNS)


def opening(path: Path) -> bytes:
    """Read the first 64 KiB of a file, unpacked, as UTF-8; nothing if they are damaged."""
    with path.open("rb") as file:
        start = file.read(_HEAD_BYTES)
    if start.startswith(_GZIP):
        try:
            start = zlib.decompressobj(wbits=31).decompress(start, _HEAD_BYTES)
        except zlib.error:
            return b""
    return utf8(start)


def read(path: Path) -> Capture:
    """Read a trace. Raises CaptureError if it has neither GPU work nor ops of torch.profiler."""
    from pyprof.readers.kineto import reading  # noqa: PLC0415 - other captures need not load it

    return reading.read(path)


def identity(path: Path) -> Identity:
    """Read the rank, which precedes the events."""
    from pyprof.readers.kineto import reading  # noqa: PLC0415 - as above

    return reading.identity(path)
