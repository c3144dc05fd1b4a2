"""From a file to the memory of its devices, whatever wrote the file."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyprof.allocations import trace_events, trace_history
from pyprof.errors import CaptureError
from pyprof.readers import kineto, read_checked, read_head, reader_of
from pyprof.readers.refusals import describe

if TYPE_CHECKING:
    from pathlib import Path

    from pyprof.allocations.history import RecordedDevice
    from pyprof.schema import Capture

EXPECTED = (
    "expected a torch memory snapshot (.pickle), a torch.profiler trace with profile_memory=True, "
    "or a capture of nsys with --cuda-memory-usage=true, or of rocprofv3 with "
    "--memory-allocation-trace"
)


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
    head = read_head(path)
    if head[:1] == _PICKLE and len(head) > 1 and head[1] in _PROTOCOLS:
        taken = _module("snapshot").read(path)
        devices = _module("snapshot_device").devices(taken, capture)
        recorded = Recorded(path, devices, _rank(path))
    elif kineto.sniff(path, head):
        recorded = read_checked(path, _trace)
    else:
        reader = reader_of(path, head)
        name = reader.__name__.rpartition(".")[2] if reader else ""
        if name == "nsys_report":
            with import_module(f"pyprof.readers.{name}").export(path) as exported:
                return replace(read(exported), path=path, rank=_rank(path))
        if name not in _TOOLS:
            what = describe(path, head)
            raise CaptureError(f"{path}: no memory was recorded ({what}); {EXPECTED}")
        usage = _module(f"{name}_events")
        recorded = read_checked(path, partial(_segments, tool=_TOOLS[name], usage=usage))
    if not recorded.devices:
        raise CaptureError(f"{path}: no device holds or allocates memory in it; {EXPECTED}")
    return recorded


_TOOLS = {"nsys": "nsys", "rocpd": "rocprofv3"}
"""The tools that record what is taken from a device, by the reader of their files."""
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
    devices = tuple(trace_history.devices(capture, events, notes=incomplete))
    return Recorded(path, devices, _rank(path) if rank is None else rank)


def _segments(path: Path, tool: str, usage: Any) -> Recorded:  # noqa: ANN401 - as above
    note = (
        f"{tool} records what PyTorch takes from the device, not its tensors; a snapshot has those"
    )
    capture, events = usage.read(path)
    devices = trace_history.devices(capture, events, usage.KINDS, [note], of_tensors=False)
    return Recorded(path, tuple(devices), _rank(path))
