"""torch's memory snapshots (`torch.cuda.memory._dump_snapshot`) as columns.

The pickle is read by `unpickle`, in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyprof.allocations import unpickle
from pyprof.arrays import MISSING
from pyprof.errors import CaptureError, PyprofError
from pyprof.process import child_programs

if TYPE_CHECKING:
    from pathlib import Path

    from pyprof.arrays import Int64Array, Mask

_MAX_BYTES = 1 << 48
"""No device has as much."""
_MAX_ADDRESS = 1 << 62
"""Greater than every address, and every sum of sizes."""
_MAX_REQUEST = (1 << 63) - 1
"""A program can ask for anything, which ends as out of memory."""
_OOM = unpickle.ACTIONS.index("oom")
ADDS = [unpickle.ACTIONS.index(name) for name in ("segment_alloc", "segment_map")]
TAKES = [unpickle.ACTIONS.index(name) for name in ("segment_free", "segment_unmap")]
"""Actions that add to the segments of a device, and that take from them."""
_MAX_US = 1 << 53
"""In ns, such a time still fits 64 bits."""
_NS_PER_US = 1000


class Frame(NamedTuple):
    """A place in a stack."""

    name: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Events:
    """What the allocator of one device did, in order; one entry per event."""

    action: Int64Array
    """Index into `unpickle.ACTIONS`; their number for an unknown action."""
    address: Int64Array
    bytes: Int64Array
    """As requested: the allocator rounds it up."""
    stream: Int64Array
    time_ns: Int64Array
    """MISSING if the version of torch recorded none."""
    stack: Int64Array
    """Number of a stack, for `Snapshot.stack`; MISSING for none."""
    metadata: Int64Array
    """Row of `Snapshot.texts`; MISSING for none."""
    free_bytes: Int64Array
    """Free memory of the device, at an OOM."""

    def __len__(self) -> int:
        return len(self.action)


@dataclass(frozen=True, slots=True, kw_only=True)
class Segments:
    """What the allocator holds at the end, one entry per segment."""

    device: Int64Array
    address: Int64Array
    bytes: Int64Array
    stream: Int64Array
    allocated_bytes: Int64Array
    active_bytes: Int64Array
    small: Mask
    expandable: Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class EndBlocks:
    """What the segments are divided into at the end, one entry per block."""

    segment: Int64Array
    address: Int64Array
    bytes: Int64Array
    requested_bytes: Int64Array
    state: Int64Array
    """Index into `unpickle.STATES`."""
    stack: Int64Array


@dataclass(frozen=True, slots=True)
class Annotations:
    """Where ranges (`record_function`) begin and end, one entry per end."""

    time_ns: Int64Array
    device: Int64Array
    begins: Mask
    name: Int64Array
    """Row of `Snapshot.texts`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A file, in columns."""

    events: tuple[Events, ...]
    """One per device, by its number."""
    segments: Segments
    blocks: EndBlocks
    annotations: Annotations
    frames: tuple[Frame, ...]
    stack_starts: Int64Array
    """The frames of stack `n` are `stack_frames[stack_starts[n] : stack_starts[n + 1]]`."""
    stack_frames: Int64Array
    texts: tuple[str, ...]

    def of_device(self, number: int) -> Events:
        """Return the events of a device; none if it has only segments."""
        if 0 <= number < len(self.events):
            return self.events[number]
        return Events(*[np.zeros(0, np.int64)] * len(Events.__slots__))

    def stack(self, number: int) -> list[Frame]:
        """Return the frames of a stack, innermost first; none for MISSING."""
        if number < 0:
            return []
        start, end = self.stack_starts[number : number + 2]
        return [self.frames[frame] for frame in self.stack_frames[start:end].tolist()]


def read(path: Path) -> Snapshot:
    """Read a snapshot; raise CaptureError, with what to do, if the file is something else."""
    content = _unpickle(path)
    size = int.from_bytes(content[:8], "little")
    try:
        head = json.loads(bytes(content[8 : 8 + size]))
    except ValueError:
        head = {"error": "ended"}
    if "error" in head:
        other = f"not a torch memory snapshot: the pickle {head['error']}; {_AGAIN}"
        raise CaptureError(f"{path}: {_ERRORS.get(head['error'], other)}")
    try:
        snapshot = _snapshot(head, content[8 + size :])
        _check(snapshot)
    except ValueError:
        raise CaptureError(f"{path}: contains impossible values; {_AGAIN}") from None
    return snapshot


_AGAIN = "record it again with torch.cuda.memory._dump_snapshot()"
_ERRORS = {
    "cut": f"the snapshot is cut short; {_AGAIN}",
    "bad": f"not a torch memory snapshot, or a damaged one; {_AGAIN}",
    "memory": "the snapshot is damaged, or takes more memory to read than there is; record it "
    "again, if it is large with fewer events: _record_memory_history(max_entries=...)",
    "ended": f"reading the snapshot takes impossibly long or deep; it is damaged: {_AGAIN}",
}


def _unpickle(path: Path) -> memoryview:
    if not sys.executable:
        raise PyprofError("snapshots are read by a process of Python, which is not to be found")
    program = [sys.executable, "-I", "-S", unpickle.__file__, str(path.absolute())]
    try:
        done = subprocess.run(  # noqa: S603 - our own program
            child_programs.bind(program),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    except OSError as error:
        raise PyprofError(f"no process can be started to read {path}: {error.strerror}") from None
    return memoryview(done.stdout)


def _snapshot(head: dict[str, Any], content: memoryview) -> Snapshot:
    columns: dict[str, Int64Array] = {}
    index = 0
    for name, kind, length in head["columns"]:
        column = np.frombuffer(content, np.dtype(kind), length, index)
        index += column.nbytes
        columns[name] = column.astype(np.int64, copy=False)

    def part(prefix: str) -> dict[str, Any]:
        start = len(prefix) + 1
        named = {n[start:]: c for n, c in columns.items() if n.startswith(f"{prefix}.")}
        if "time_us" in named:
            time_us = named.pop("time_us")
            if not _is_within(time_us, -1, _MAX_US):
                raise ValueError
            named["time_ns"] = np.where(time_us < 0, MISSING, time_us * _NS_PER_US)
        return named | {n: named[n] != 0 for n in _MASKS & set(named)}

    starts = np.concatenate([[0], np.cumsum(columns["stacks.length"])])
    return Snapshot(
        events=tuple(Events(**part(f"events.{device}")) for device in range(head["devices"])),
        segments=Segments(**part("segments")),
        blocks=EndBlocks(**part("blocks")),
        annotations=Annotations(**part("annotations")),
        frames=tuple(
            Frame(_replace_surrogates(name), _replace_surrogates(file), line)
            for name, file, line in head["frames"]
        ),
        stack_starts=starts,
        stack_frames=columns["stacks.frame"],
        texts=tuple(map(_replace_surrogates, head["texts"])),
    )


def _replace_surrogates(text: str) -> str:
    """Replace surrogates, which pickles may hold but UTF-8 cannot."""
    return text.encode(errors="replace").decode()


_MASKS = {"small", "expandable", "begins"}


def _check(snapshot: Snapshot) -> None:
    """Raise ValueError for numbers that no allocator has."""
    segments, blocks = snapshot.segments, snapshot.blocks
    sizes = [segments.bytes, blocks.bytes, blocks.requested_bytes]
    addresses = [segments.address, blocks.address]
    sizes += [events.bytes[events.action != _OOM] for events in snapshot.events]
    stated = [segments.allocated_bytes, segments.active_bytes]
    stated += [events.free_bytes for events in snapshot.events]
    addresses += [events.address[events.address != MISSING] for events in snapshot.events]
    bounded = (
        all(_is_within(values, 0, _MAX_BYTES) for values in sizes)
        and all(_is_within(values, MISSING, _MAX_BYTES) for values in stated)
        and all(_is_within(events.bytes, 0, _MAX_REQUEST) for events in snapshot.events)
        and all(_is_within(values, 0, _MAX_ADDRESS) for values in addresses)
        and _is_within(segments.device, 0, unpickle.MAX_DEVICES - 1)
        and sum(float(values.sum(dtype=np.float64)) for values in sizes) < _MAX_ADDRESS
    )
    begin, size = segments.address[blocks.segment], segments.bytes[blocks.segment]
    inside = (blocks.address >= begin) & (blocks.address + blocks.bytes <= begin + size)
    used = np.maximum(segments.allocated_bytes, segments.active_bytes)
    if not (bounded and inside.all() and (used <= segments.bytes).all()):
        raise ValueError


def _is_within(values: Int64Array, least: int, most: int) -> bool:
    return not len(values) or bool(least <= values.min() and values.max() <= most)
