"""From a file to the memory of its devices, whatever wrote the file."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from pyprof.allocations import trace_events, trace_history
from pyprof.allocations.history import Labels
from pyprof.arrays import MISSING
from pyprof.errors import CaptureError
from pyprof.readers import kineto, read_head, sensible
from pyprof.readers.refusals import describe

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyprof.allocations.free_space import FreeSpace
    from pyprof.allocations.history import History
    from pyprof.allocations.trace_history import TraceDevice
    from pyprof.arrays import Int64Array
    from pyprof.schema import Capture

EXPECTED = (
    "expected a torch memory snapshot (.pickle), a torch.profiler trace with profile_memory=True, "
    "or a capture of nsys with --cuda-memory-usage=true, or of rocprofv3 with "
    "--memory-allocation-trace"
)


@dataclass(frozen=True)
class RecordedDevice:
    """The memory of one device, and what else its file holds about it."""

    history: History
    steps: tuple[str, tuple[int, ...]] = ("", ())
    """What marks the steps, and the states at which steps end."""
    ooms: tuple[int, ...] = ()
    """The events at which memory ran out."""
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
        """Find unused memory that the allocator holds; None if the file has no segments."""
        del state
        return None

    def request(self, event: int) -> tuple[int, int | None, str | None]:
        """Return the bytes that an OOM requested, those free, and the line of the request."""
        raise NotImplementedError


@dataclass(frozen=True)
class Recorded:
    """What a file holds."""

    path: Path
    devices: tuple[RecordedDevice, ...]
    rank: int | None = None


def read(path: Path, capture: Capture | None = None) -> Recorded:
    """Read a file; raise CaptureError, with what to do, if it records no memory.

    A capture of the same run adds context to the events of a snapshot.
    """
    recorded = _read(path, capture)
    if not recorded.devices:
        raise CaptureError(f"{path}: no device holds or allocates memory in it; {EXPECTED}")
    return recorded


def _read(path: Path, capture: Capture | None) -> Recorded:
    head = read_head(path)
    if head[:1] == _PICKLE and len(head) > 1 and head[1] in _PROTOCOLS:
        return Recorded(path, _module("snapshot_device").devices(path, capture), _rank(path))
    if kineto.sniff(path, head):
        return sensible(path, _trace)
    for name, tool in (("nsys", "nsys"), ("rocpd", "rocprofv3")):
        if import_module(f"pyprof.readers.{name}").sniff(path, head):
            return sensible(path, partial(_segments, tool=tool, usage=_module(f"{name}_events")))
    raise CaptureError(f"{path}: no memory was recorded ({describe(path, head)}); {EXPECTED}")


_PICKLE = b"\x80"
_PROTOCOLS = range(2, 6)
"""Pickle protocols with a header."""


def _module(name: str) -> Any:  # noqa: ANN401 - a module, which other files need not load
    return import_module(f"{__package__}.{name}")


_RANK = re.compile(r"rank[_.-]?(\d{1,9})(?!\d)", re.IGNORECASE)


def _rank(path: Path) -> int | None:
    """The rank in a file's name: the file itself records none."""
    match = _RANK.search(path.name)
    return int(match[1]) if match else None


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


def _segments(path: Path, tool: str, usage: Any) -> Recorded:  # noqa: ANN401 - as above
    note = (
        f"{tool} records what PyTorch takes from the device, not its tensors; a snapshot has those"
    )
    capture, events = usage.read(path)
    histories = trace_history.histories(capture, events, usage.kind_name)
    devices = (replace(each, of_tensors=False) for each in _devices(histories, note))
    return Recorded(path, tuple(devices), _rank(path))


def _devices(histories: Iterable[TraceDevice], *notes: str) -> tuple[RecordedDevice, ...]:
    return tuple(
        RecordedDevice(each.history, each.steps, notes=(*each.notes, *notes), stacks=each.stacks)
        for each in histories
    )
