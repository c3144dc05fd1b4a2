"""Splits the bytes of a trace into lists of events: plain or gzip, truncated, slightly broken.

Handles JSON and the outer shape of a Chrome trace, independent of what events mean. The file is
never in memory as a whole: a block is cut where one event ends and the next begins, and parsed on
its own.
"""

from __future__ import annotations

import re
import zlib
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyprof.errors import CaptureError
from pyprof.process.threads import thread_pool
from pyprof.readers.encodings import utf8_blocks
from pyprof.readers.kineto.file import events as decoding
from pyprof.readers.kineto.file.events import by_kind, loads_if_valid, repaired

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from pyprof.readers.kineto.file.events import Event, Groups

BLOCK_BYTES = 4 << 20
"""Bytes read at a time. Their parsed events take about six times as much memory."""

_HEADER_BYTES = 64 << 20  # no trace has more than this before its events
_EVENT_BYTES = 16 << 20  # nor this between where one event ends and the next begins
_RATIO, _ANY_BYTES = 250, 256 << 20
"""The largest ratio of gzip for a trace; only checked from this many bytes on."""
_PATIENCE = 4  # blocks to put together before giving up on a clean cut

_NESTED_BYTES = 16 << 20
"""Bytes read in search of the outermost events, once others have been seen."""
_ARRAY = re.compile(rb'"traceEvents"\s*:\s*\[')
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
"""Strings and brackets: brackets inside a string do not nest."""
# Its two unescaped quotes keep the pattern from matching inside a string. It
# looks no further than writers indent: it is tried behind every brace.
_BOUNDARY = re.compile(rb'\}\s{0,99},\s{0,99}(?=\{\s{0,99}"\w{1,99}"\s{0,99}:)')

_END = re.compile(rb"\}\s*\].*", re.DOTALL)


@dataclass(slots=True)
class Trace:
    """A trace file being read. Its attributes are complete once `events` is exhausted."""

    path: Path
    header: dict[str, Any] = field(default_factory=dict)
    """Top-level keys other than the events; those that follow the events are added last."""
    cut: bool = False
    """The file ends before its events do."""
    lost: int = 0
    """Events that could not be parsed."""

    def events(self) -> Iterator[Groups]:
        """Yield the events, some thousands at a time. Raises CaptureError if there are none."""
        blocks = self.blocks()
        rest = self._open(blocks)
        failures = 0
        for block in blocks:
            index = _last_boundary(block)
            if index is None:  # it may begin in what was read before
                rest, text = b"", rest + block
                index = _last_boundary(text)
            else:
                text = block
            if index is None:
                rest = text
                if len(rest) > _EVENT_BYTES:
                    self.cut = True
                    break
                continue
            piece = rest + text[: index.start() + 1]
            events = _read(piece)
            if events is None and failures < _PATIENCE:
                failures += 1
                rest += text
                continue
            yield by_kind(self._salvage(piece) if events is None else events)
            rest, failures = text[index.end() :], 0
        yield by_kind(self._close(rest.rstrip()))

    def open(self) -> None:
        """Read only the header. Raises CaptureError if no events follow it."""
        with closing(self.blocks()) as blocks:
            self._open(blocks)

    def blocks(self) -> Generator[bytes, None, None]:
        """Yield the file's text, unpacked, some megabytes at a time."""
        with closing(self._unpack()) as blocks:
            yield from utf8_blocks(blocks)

    def _unpack(self) -> Generator[bytes, None, None]:
        with self.path.open("rb") as file:
            if file.peek(2)[:2] != b"\x1f\x8b":
                while block := file.read(BLOCK_BYTES):
                    yield block
                return
            packed = iter(lambda: file.read(BLOCK_BYTES // 8), b"")
            with closing(_read_ahead(self._unzip(packed))) as blocks:
                yield from blocks

    def _unzip(self, blocks: Iterator[bytes]) -> Generator[bytes, None, None]:
        unzip = zlib.decompressobj(wbits=31)
        most = max(_ANY_BYTES, _RATIO * self.path.stat().st_size)
        for block in blocks:
            rest = block
            while rest:
                try:
                    unzipped = unzip.decompress(rest, BLOCK_BYTES)
                except zlib.error:
                    self.cut = True  # what came before is good
                    return
                if (most := most - len(unzipped)) < 0:
                    raise CaptureError(
                        f"{self.path}: not a torch.profiler trace: "
                        f"it unzips to more than {_RATIO} times its size"
                    )
                yield unzipped
                rest = unzip.unused_data if unzip.eof else unzip.unconsumed_tail
                if unzip.eof and rest:
                    if not rest.startswith(b"\x1f"):  # no member: ignored, as gzip(1) does
                        return
                    unzip = zlib.decompressobj(wbits=31)
        self.cut = self.cut or not unzip.eof

    def _open(self, blocks: Iterator[bytes]) -> bytes:
        """Read up to the first event and keep the header; return what was read beyond it."""
        buffer = b""
        first: re.Match[bytes] | None = None
        for block in blocks:
            buffer += block
            if buffer.lstrip()[:1] == b"[":
                return buffer.lstrip()[1:]
            first = first or _ARRAY.search(buffer)
            if first is not None:
                opened = self._open_list(buffer, first)
                if opened is not None:
                    return opened
            if len(buffer) > (_HEADER_BYTES if first is None else _NESTED_BYTES):
                break
        if first is not None:  # what precedes it is not JSON, so its depth is unknown
            return buffer[first.end() :]
        if self.cut:
            raise CaptureError(
                f"{self.path}: the gzip file is damaged or truncated before its events; "
                "copy it or capture it again"
            )
        raise CaptureError(f"{self.path}: not a torch.profiler trace: no list of traceEvents")

    def _open_list(self, buffer: bytes, first: re.Match[bytes]) -> bytes | None:
        """Keep the header and return what follows the list's bracket; None if it is further on.

        Only a key of the outermost object counts: metadata may have `traceEvents` of its own.
        """
        end: int | None = first.end()
        header = _object(buffer[:end] + b"]}")
        if header is None:
            end = _outermost_list(buffer)
            header = None if end is None else _object(buffer[:end] + b"]}")
        if end is None:
            return None
        self.header = header or {}
        self.header.pop("traceEvents", None)
        return buffer[end:]

    def _close(self, rest: bytes) -> list[Event]:
        """Read the last events, and the part of the header that follows them."""
        texts = (b'{"traceEvents":[' + rest, b'{"traceEvents":[' + rest + b"}")
        for text in texts:
            fields = decoding.fields(text)
            events = decoding.decode(fields.pop("traceEvents")) if fields else None
            if fields is not None and events is not None:
                self.header |= {name: decoding.loads(value) for name, value in fields.items()}
                return events
        trace = _object(texts[0]) or _object(texts[1])
        if trace is None:
            self.cut = True
            return self._salvage(rest)
        listed = trace.pop("traceEvents")
        self.header |= trace
        return decoding.from_values(listed) if isinstance(listed, list) else []

    def _salvage(self, piece: bytes) -> list[Event]:
        """Return the events that can be parsed one by one; count the others."""
        *parts, last = _BOUNDARY.split(repaired(piece).rstrip(b", \t\r\n"))
        events = [loads_if_valid(part + b"}") for part in parts]
        pairs = zip(parts, events, strict=True)
        damaged = [part for part, event in pairs if not isinstance(event, dict)]
        if any(map(_ARRAY.search, damaged)):
            raise CaptureError(
                f"{self.path}: several traces follow one another in this file; name each as a file "
                "of its own"
            )
        self.lost += len(damaged)
        ending = _END.sub(b"}", last)  # it may carry the end of the list, or be cut in the middle
        endings = (loads_if_valid(text) for text in (last, last + b"}", ending))
        events.append(next((event for event in endings if isinstance(event, dict)), None))
        return decoding.from_values(events)


def _outermost_list(text: bytes) -> int | None:
    """Find where the events begin in an object that may contain other objects with events."""
    depth = 0
    for token in _TOKEN.finditer(text):
        match token[0]:
            case b"{" | b"[":
                depth += 1
            case b"}" | b"]":
                depth -= 1
            case b'"traceEvents"' if depth == 1:
                if match := _ARRAY.match(text, token.start()):
                    return match.end()
    return None


def _read_ahead(blocks: Generator[bytes, None, None]) -> Generator[bytes, None, None]:
    """Unzip the next block while one is parsed: zlib releases the GIL."""
    with closing(blocks), thread_pool(1) as pool:
        future = pool.submit(next, blocks, None)
        while (block := future.result()) is not None:  # one may be empty
            future = pool.submit(next, blocks, None)
            yield block


def _read(piece: bytes) -> list[Event] | None:
    """Read events between commas; None if they are not valid JSON."""
    listed = b"[%b]" % piece
    events = decoding.decode(listed)
    if events is None:
        values = decoding.loads(listed)
        events = decoding.from_values(values) if isinstance(values, list) else None
    return events


def _last_boundary(buffer: bytes) -> re.Match[bytes] | None:
    reach = 1 << 14
    while True:
        boundary = None
        for boundary in _BOUNDARY.finditer(buffer, max(0, len(buffer) - reach)):  # noqa: B007 - the last
            pass
        if boundary is not None or reach >= len(buffer):
            return boundary
        reach *= 16


def _object(piece: bytes) -> dict[str, Any] | None:
    parsed = decoding.loads(piece)
    return parsed if isinstance(parsed, dict) else None
