"""A separate program that turns a torch memory snapshot into columns: `unpickle.py FILE`.

A pickle is a program for a machine that can be made to run anything and to fill any memory. Here it
gets no class and no function, and a process with little memory and time, which holds nothing else.
Only the standard library is used: the program starts in no time.

It writes to stdout the length of a JSON text in 8 bytes, the text, and the columns, which the text
lists: their names, types and lengths. If the file cannot be used, the text has `error`.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import sys
from array import array
from contextlib import suppress
from itertools import chain, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterable

try:
    import resource
except ImportError:  # Windows, which has no limits to set
    resource = None  # type: ignore[assignment]

ACTIONS = (
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "oom",
    "snapshot",
)
"""Actions of events; the column `action` has the index here, or their number for any other."""

STATES = ("active_allocated", "active_pending_free", "inactive")
"""States of a block; older torch calls the second `active_awaiting_free`."""

_ACTION_CODES = {name: code for code, name in enumerate(ACTIONS)}
_STATE_CODES = {name: code for code, name in enumerate(STATES)} | {"active_awaiting_free": 1}
_MAX_FRAMES = 256
"""Maximum number of frames of a stack; the innermost are kept."""
_MAX_CHARACTERS = 1000
"""Maximum length of a name; those of C++ templates are longer than anybody reads."""
MAX_DEVICES = 1 << 8
"""torch numbers them in one byte."""
_BYTES, _BYTES_PER_BYTE = 1 << 30, 16
"""Memory of the process, bytes: the first, plus the second for each byte of the file."""
_SECONDS, _BYTES_PER_SECOND = 60, 4_000_000
"""Its time, s: the first, plus 1 for each such number of bytes of the file."""


class _RefusedError(Exception):
    """The file is not plain data of this kind; the message is the reason."""


class _PlainUnpickler(pickle.Unpickler):
    """Dicts, lists, texts and numbers; no classes or functions."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - pickle's
        raise _RefusedError(f"names {module}.{name}, which is not run")

    def persistent_load(self, _: object) -> Any:  # noqa: ANN401 - pickle's
        raise _RefusedError("refers to objects outside of it")


_CODE = object()
"""The key of a frame's number in its dict: an object of our own."""
_code_of = itemgetter(_CODE)


class _Stacks:
    """Distinct stacks and the distinct frames in them, numbered."""

    def __init__(self) -> None:
        self.frames: dict[tuple[str, str, int], int] = {}
        self.stacks: dict[tuple[int, ...], int] = {}
        self._by_list: dict[int, int] = {id(None): -1}
        self._like: dict[tuple[int, ...], tuple[list[Any], int]] = {}

    def numbers(self, lists: list[Any]) -> list[int]:
        """Number lists of frames, -1 for none; each by its id, only once, as all stay alive."""
        keys = list(map(id, lists))
        by_list = self._by_list
        for key, frames in zip(keys, lists):  # noqa: B905 - of one length
            if key not in by_list:
                by_list[key] = self._number(frames)
        return list(map(by_list.__getitem__, keys))

    def _number(self, frames: Any) -> int:  # noqa: ANN401 - of the file
        if type(frames) is not list:
            raise _RefusedError("has frames that are not a list")
        if not frames:
            return -1
        if len(frames) > _MAX_FRAMES:
            frames = frames[:_MAX_FRAMES]
        some = (len(frames), id(frames[0]), id(frames[len(frames) >> 1]), id(frames[-1]))
        like = self._like.get(some)  # usually equal: comparing is faster than numbering
        if like is not None and like[0] == frames:
            return like[1]
        try:
            codes = tuple(map(_code_of, frames))
        except KeyError:
            codes = tuple(map(self._frame, frames))
        number = self.stacks.setdefault(codes, len(self.stacks))
        self._like[some] = frames[:], number  # a copy: the list itself is emptied
        return number

    def _frame(self, frame: Any) -> int:  # noqa: ANN401 - of the file
        code: int | None = frame.get(_CODE)
        if code is None:
            name, file, line = frame["name"], frame["filename"], frame["line"]
            if type(name) is not str or type(file) is not str or type(line) is not int:
                raise _RefusedError("has frames of unknown form")
            key = (name[:_MAX_CHARACTERS], file[:_MAX_CHARACTERS], min(max(line, 0), 1 << 31))
            code = frame[_CODE] = self.frames.setdefault(key, len(self.frames))
        return code


class _Columns:
    """What is written: columns by name, and texts."""

    def __init__(self) -> None:
        self.arrays: list[tuple[str, array[int]]] = []
        self.stacks = _Stacks()
        self.texts: dict[str, int] = {}

    def add(self, name: str, kind: str, values: Any) -> None:  # noqa: ANN401 - any iterable
        self.arrays.append((name, array(kind, values)))

    def text(self, value: Any) -> int:  # noqa: ANN401 - of the file
        """Number a text, -1 for none."""
        if not value or type(value) is not str:
            return -1
        return self.texts.setdefault(value[:_MAX_CHARACTERS], len(self.texts))


class _Events:
    """The events of one list, in pieces."""

    def __init__(self, trace: list[dict[str, Any]]) -> None:
        self.trace = trace
        self.columns = {"action": array("b"), "stack": array("i"), "metadata": array("i")}
        self.columns |= {name: array("q") for _, name, _ in _EVENT_KEYS}

    def take(self, out: _Columns) -> None:
        """Move the events of the list to the columns; once emptied, it takes little memory.

        Lists of frames and events stay the same objects: the pickle may refer to them again.
        """
        trace, columns = self.trace[:], self.columns
        self.trace.clear()
        actions = map(_ACTION_CODES.get, _values(trace, "action", None), repeat(len(ACTIONS)))
        columns["action"].extend(actions)
        for key, name, absent in _EVENT_KEYS:
            columns[name].extend(_values(trace, key, absent))
        frames = _values(trace, "frames", None)
        columns["stack"].extend(out.stacks.numbers(frames))
        metadata = _values(trace, "user_metadata", None)
        columns["metadata"].extend(map(out.text, metadata) if any(metadata) else (-1,) * len(trace))
        for event, stack in zip(trace, frames):  # noqa: B905 - of one length
            event.clear()
            if stack is not None:
                stack.clear()


class _Source:
    """A pickle in frames, whose events are taken out as they come: they need most memory.

    Between two frames, which is when the unpickler asks for more, no event is incomplete.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.readline = file.readline
        self.unpickler = _PlainUnpickler(self)
        self.out = _Columns()
        self.taken: dict[int, _Events] = {}
        self._growing: _Events | None = None
        self._read, self._next, self._patience = 0, _AT_ONCE, _AT_ONCE

    def read(self, size: int) -> bytes:
        """Read for the unpickler."""
        self._read += size
        if self._read >= self._next:
            grows = self._growing is not None and len(self._growing.trace) >= _MIN_EVENTS
            if not grows:
                # find the longest list of events among all that was read
                memo: Any = self.unpickler.memo  # all that the pickle may refer to again
                lists = [each for each in memo.copy().values() if type(each) is list]
                long = [each for each in lists if len(each) >= _MIN_EVENTS]
                traces = [each for each in long if type(each[0]) is dict and "action" in each[0]]
                longest = max(traces, key=len, default=None)
                self._growing = None if longest is None else self.events_of(longest)
                self._patience *= 2  # searching takes longer each time
            if self._growing is not None:
                self._growing.take(self.out)
            self._next = self._read + (_AT_ONCE if grows else self._patience)
        return self._file.read(size)

    def events_of(self, trace: list[dict[str, Any]]) -> _Events:
        """Return the events that were taken out of a list."""
        return self.taken.setdefault(id(trace), _Events(trace))


_AT_ONCE, _MIN_EVENTS = 4 << 20, 1000
"""Bytes that are read before events are taken out, and how many events make that worthwhile."""


def _load(file: BinaryIO) -> tuple[Any, _Source]:
    """Read a pickle; all at once if it has no frames."""
    source = _Source(file)
    head = file.read(3)
    file.seek(0)
    if head[:1] == b"\x80" and head[1:2] >= b"\x04" and head[2:] == b"\x95":
        return source.unpickler.load(), source
    return _PlainUnpickler(file).load(), source


_EVENT_KEYS = (
    ("addr", "address", -1),
    ("size", "bytes", 0),
    ("stream", "stream", 0),
    ("time_us", "time_us", -1),
    ("device_free", "free_bytes", -1),
)
"""Keys of an event: the column of each, and its value without the key."""


def _values(rows: list[dict[str, Any]], key: str, absent: object) -> list[Any]:
    """The value of each row under a key, which usually all rows have, or almost none."""
    if not rows or key in rows[0]:
        try:
            return list(map(itemgetter(key), rows))
        except KeyError:
            pass
    return [row.get(key, absent) for row in rows]


def _refuse_repeats(rows: Iterable[Any]) -> None:
    """Refuse to read the same object twice: a few bytes can stand for millions of blocks."""
    seen: set[int] = set()
    for row in rows:
        if id(row) in seen:
            raise _RefusedError("names the same segment, block or events many times")
        seen.add(id(row))


_SEGMENT_KEYS = (("address", "address"), ("total_size", "bytes"), ("stream", "stream"))


def _segments(segments: list[dict[str, Any]], out: _Columns) -> None:
    _refuse_repeats(block for segment in segments for block in segment["blocks"])
    for key, name in _SEGMENT_KEYS:
        out.add(f"segments.{name}", "q", [segment[key] for segment in segments])
    out.add("segments.allocated_bytes", "q", [s.get("allocated_size", -1) for s in segments])
    out.add("segments.active_bytes", "q", [s.get("active_size", -1) for s in segments])
    out.add("segments.device", "i", [segment.get("device", 0) for segment in segments])
    out.add("segments.small", "b", [s.get("segment_type") == "small" for s in segments])
    out.add("segments.expandable", "b", [bool(s.get("is_expandable")) for s in segments])
    rows = [row for index, segment in enumerate(segments) for row in _blocks(index, segment, out)]
    names = ("segment", "address", "bytes", "requested_bytes", "state", "stack")
    for name, column in zip(names, zip(*rows) if rows else [()] * len(names)):  # noqa: B905 - as many
        out.add(f"blocks.{name}", "q", column)


def _blocks(place: int, segment: dict[str, Any], out: _Columns) -> list[tuple[int, ...]]:
    """List a segment's blocks; older torch records neither addresses nor requested sizes."""
    rows: list[tuple[int, ...]] = []
    address = segment["address"]
    for block in segment["blocks"]:
        size = block["size"]
        address = block.get("address", address)
        state = _STATE_CODES.get(block["state"], 2)
        past: Any = block.get("history") or ({},)
        requested = block.get("requested_size", past[0].get("real_size", size))
        frames = block.get("frames")  # already emptied if an event has the same list
        (stack,) = out.stacks.numbers([past[0].get("frames") if frames is None else frames])
        rows.append((place, address, size, requested, state, stack))
        address += size
    return rows


def _columns(snapshot: Any, source: _Source) -> tuple[dict[str, Any], _Columns]:  # noqa: ANN401 - of the file
    if type(snapshot) is list:  # what torch.cuda.memory_snapshot() returns
        snapshot = {"segments": snapshot}
    if type(snapshot) is not dict or type(snapshot.get("segments")) is not list:
        raise _RefusedError("holds other data")
    traces = snapshot.get("device_traces") or []
    if len(traces) > MAX_DEVICES:
        raise _RefusedError("has more devices than any machine")
    out = source.out
    _refuse_repeats(trace for trace in traces if trace or id(trace) in source.taken)
    for device, trace in enumerate(traces):
        if type(trace) is not list:
            raise _RefusedError("has events that are not a list")
        events = source.events_of(trace)
        events.take(out)
        out.arrays += [(f"events.{device}.{n}", column) for n, column in events.columns.items()]
    _segments(snapshot["segments"], out)
    annotations = snapshot.get("external_annotations") or []
    out.add("annotations.time_us", "q", [a["time_us"] for a in annotations])
    out.add("annotations.device", "i", [a.get("device", 0) for a in annotations])
    out.add("annotations.begins", "b", [a["stage"] == "START" for a in annotations])
    out.add("annotations.name", "i", [out.text(a["name"]) for a in annotations])
    stacks = [*out.stacks.stacks]
    out.add("stacks.length", "i", map(len, stacks))
    out.add("stacks.frame", "i", chain.from_iterable(stacks))
    head = {"devices": len(traces), "frames": [*out.stacks.frames], "texts": [*out.texts]}
    return head, out


def _write(head: dict[str, Any], columns: list[tuple[str, array[int]]], file: BinaryIO) -> None:
    listed = [[name, column.typecode, len(column)] for name, column in columns]
    text = json.dumps(head | {"columns": listed}).encode()
    file.write(len(text).to_bytes(8, "little"))
    file.write(text)
    file.writelines(column for _, column in columns)
    file.flush()


def _limit(size: int) -> None:
    """Limit memory and time of the process by the size of the file, if the system can."""
    if resource is None:
        return
    memory, seconds = _BYTES + _BYTES_PER_BYTE * size, _SECONDS + size // _BYTES_PER_SECOND
    limits = {"RLIMIT_AS": memory, "RLIMIT_CPU": seconds, "RLIMIT_CORE": 0}
    for name, value in limits.items():
        with suppress(ValueError, OSError):  # there is a lower limit
            resource.setrlimit(getattr(resource, name), (value, value))


def main(path: str) -> int:
    """Read the file and write its columns; return the exit code."""
    columns: list[tuple[str, array[int]]] = []
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib takes time to load
            _limit(os.fstat(file.fileno()).st_size)
            head, out = _columns(*_load(file))
            columns = out.arrays
    except _RefusedError as error:
        head = {"error": str(error)}
    except MemoryError:
        head = {"error": "memory"}
    except (EOFError, pickle.UnpicklingError) as error:
        head = {"error": "cut" if "trunc" in str(error) or "out of input" in str(error) else "bad"}
    except Exception:  # noqa: BLE001 - a damaged file can end in any
        head = {"error": "bad"}
    _write(head, columns, sys.stdout.buffer)
    return 0


if __name__ == "__main__":
    gc.disable()  # there are millions of objects, and all of them stay
    code = main(sys.argv[1])
    os._exit(code)  # freeing what was read takes time, and recursion
