"""From a file to the memory of its devices, whatever wrote the file."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from pyprof.allocations import (
    nsys_events,
    snapshot,
    snapshot_history,
    snapshot_ranges,
    stacks,
    trace_events,
    trace_history,
)
from pyprof.allocations.free_space import free_space
from pyprof.allocations.growth import ends_by_direction
from pyprof.allocations.history import Labels, label
from pyprof.allocations.stacks import is_python
from pyprof.allocations.unpickle import ACTIONS
from pyprof.arrays import MISSING
from pyprof.errors import CaptureError
from pyprof.readers import kineto, nsys, read_head, sensible
from pyprof.readers.refusals import describe

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pyprof.allocations.free_space import FreeSpace
    from pyprof.allocations.history import History
    from pyprof.allocations.snapshot import Frame, Snapshot
    from pyprof.allocations.stacks import Described
    from pyprof.allocations.trace_history import TraceDevice
    from pyprof.arrays import Int64Array
    from pyprof.schema import Capture

_OOM = ACTIONS.index("oom")
EXPECTED = (
    "expected a torch memory snapshot (.pickle), a torch.profiler trace with profile_memory=True, "
    "or an nsys capture with --cuda-memory-usage=true"
)


@dataclass(frozen=True)
class RecordedDevice:
    """The memory of one device, and what else its file tells of it."""

    history: History
    steps: tuple[str, tuple[int, ...]] = ("", ())
    """What marks the steps, and the states in which one ends."""
    ooms: tuple[int, ...] = ()
    """Events."""
    end_allocated_bytes: int | None = None
    notes: tuple[str, ...] = ()
    stacks: Labels | None = None
    """The call stack of each block, its frames in lines; None for a snapshot, or if unknown."""
    of_tensors: bool = True
    """Whether blocks are what the program asks for, not what its allocator takes of the device."""

    def call_stacks(self, rows: Int64Array) -> Labels:
        """Label some blocks with their call stacks, the outermost frame in the first line."""
        if self.stacks is None:
            return Labels(np.full(len(rows), MISSING), ())
        return Labels(self.stacks.codes[rows], self.stacks.names)

    def free_space(self, state: int) -> FreeSpace | None:
        """Find what the allocator holds unused; None where the file tells of no segments."""
        del state
        return None

    def request(self, event: int) -> tuple[int, int | None, str | None]:
        """Return the bytes that an OOM asked for, those free, and the line that asked."""
        raise NotImplementedError


@dataclass(frozen=True)
class SnapshotDevice(RecordedDevice):
    """A device of a snapshot."""

    snapshot: Snapshot = field(kw_only=True)
    described: Described = field(kw_only=True)
    number: int = field(kw_only=True)
    block_stack: Int64Array = field(kw_only=True)
    """Of each block the row of the snapshot's stacks."""

    def call_stacks(self, rows: Int64Array) -> Labels:
        """Label some blocks with their call stacks; of C++ the op alone is told."""
        numbers, codes = np.unique(self.block_stack[rows], return_inverse=True)
        texts = [_call_stack(self.snapshot.stack(number)) for number in numbers.tolist()]
        labels = label(texts)
        return Labels(labels.codes[codes.reshape(-1)] if len(rows) else labels.codes, labels.names)

    def free_space(self, state: int) -> FreeSpace | None:
        """Find what the allocator holds unused."""
        return free_space(self.snapshot, self.number, self.history.blocks, state)

    def request(self, event: int) -> tuple[int, int | None, str | None]:
        """Return the bytes that an OOM asked for, those free, and the line that asked."""
        events = self.snapshot.of_device(self.number)
        free = int(events.free_bytes[event])
        line = self.described.line.at(events.stack[[event]])[0]
        return int(events.bytes[event]), None if free == MISSING else free, line


def _call_stack(frames: Sequence[Frame]) -> str | None:
    """Write the frames of Python, the outermost first; None where there are none."""
    lines = [f"{f.name} ({f.file}:{f.line})" for f in reversed(frames) if is_python(f)]
    return "\n".join(" ".join(line.split()) for line in lines) or None


@dataclass(frozen=True)
class Recorded:
    """What a file holds."""

    path: Path
    devices: tuple[RecordedDevice, ...]
    rank: int | None = None


def read(path: Path, capture: Capture | None = None) -> Recorded:
    """Read a file; raise CaptureError, with what to do, where it tells of no memory.

    A capture of the same run tells more of the events of a snapshot.
    """
    recorded = _read(path, capture)
    if not recorded.devices:
        raise CaptureError(f"{path}: no device holds or allocates memory in it; {EXPECTED}")
    return recorded


def _read(path: Path, capture: Capture | None) -> Recorded:
    head = read_head(path)
    if snapshot.sniff(head):
        return Recorded(path, tuple(_snapshot_devices(snapshot.read(path), capture)), _rank(path))
    if kineto.sniff(path, head):
        return sensible(path, _trace)
    if nsys.sniff(path, head):
        return sensible(path, _nsys)
    raise CaptureError(f"{path}: no memory was recorded ({describe(path, head)}); {EXPECTED}")


_RANK = re.compile(r"rank[_.-]?(\d{1,9})(?!\d)", re.IGNORECASE)


def _rank(path: Path) -> int | None:
    """The rank in a file's name: the file itself records none."""
    match = _RANK.search(path.name)
    return int(match[1]) if match else None


def _snapshot_devices(read: Snapshot, capture: Capture | None) -> list[SnapshotDevice]:
    described = stacks.describe(read)
    numbers = snapshot_history.devices(read)
    return [_snapshot_device(read, described, number, capture) for number in numbers]


def _snapshot_device(
    read: Snapshot, described: Described, number: int, capture: Capture | None
) -> SnapshotDevice:
    replayed = snapshot_history.history(read, number, described, capture)
    history, events = replayed.history, read.of_device(number)
    return SnapshotDevice(
        history,
        _steps(read, number, history, capture),
        tuple(np.flatnonzero(events.action == _OOM).tolist()),
        int(read.segments.allocated_bytes[read.segments.device == number].sum()),
        replayed.notes,
        snapshot=read,
        described=described,
        number=number,
        block_stack=replayed.stack,
    )


def _trace(path: Path) -> Recorded:
    events = trace_events.read(path)
    if not len(events.time_ns):
        raise CaptureError(
            f"{path}: no memory was recorded; record it with "
            "torch.profiler.profile(profile_memory=True), or pyprof capture --memory"
        )
    capture = kineto.read(path)
    rank = kineto.identity(path).rank
    incomplete = [text for text in capture.warnings if "truncated" in text]
    histories = trace_history.histories(capture, events)
    devices = _devices(histories, *incomplete)
    return Recorded(path, devices, _rank(path) if rank is None else rank)


def _nsys(path: Path) -> Recorded:
    capture, events = nsys_events.read(path)
    histories = trace_history.histories(capture, events, nsys_events.kind_name)
    devices = (replace(each, of_tensors=False) for each in _devices(histories, _SEGMENTS))
    return Recorded(path, tuple(devices), _rank(path))


_SEGMENTS = "nsys records what PyTorch takes from the device, not its tensors; a snapshot has those"


def _devices(histories: Iterable[TraceDevice], *notes: str) -> tuple[RecordedDevice, ...]:
    return tuple(
        RecordedDevice(each.history, each.steps, notes=(*each.notes, *notes), stacks=each.stacks)
        for each in histories
    )


def _steps(
    read: Snapshot, number: int, history: History, capture: Capture | None
) -> tuple[str, tuple[int, ...]]:
    marked_by, moments = snapshot_ranges.step_bounds(read, number)
    if not len(moments) and capture is not None:
        marked_by, moments = trace_history.step_bounds(capture)
    if len(moments):
        # the state at each moment
        states: Int64Array = (
            np.searchsorted(np.maximum.accumulate(history.time_ns), moments, "right") - 1
        )
        return marked_by, tuple(states[states >= 0].tolist())
    return "the optimizer's stacks", tuple(ends_by_direction(history).tolist())
