"""What rocprofv3 records of memory (`--memory-allocation-trace`), as memory events.

These are allocations of HSA, on the devices and the host: PyTorch's segments, not its tensors.
A free has neither agent nor bytes in the file: they are those of the allocation at its address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.allocations.trace_events import MemoryEvents
from pyprof.arrays import MISSING, ints
from pyprof.errors import CaptureError
from pyprof.readers import rocpd
from pyprof.readers.rocpd import agents, host
from pyprof.readers.rocpd.recording import Processes, recordings
from pyprof.readers.sqlite.tables import Database

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyprof.arrays import Int64Array
    from pyprof.readers.rocpd.recording import Recording
    from pyprof.schema import Capture


_DEVICE, _HOST = 1, 0
KINDS = {_DEVICE: "cuda", _HOST: "host"}
"""Names of kinds of memory; torch calls AMD's devices cuda, too."""


def read(path: Path) -> tuple[Capture, MemoryEvents]:
    """Read a rocpd file and its memory events; CaptureError where it has no allocations."""
    events = memory_events(path)
    if not len(events.time_ns):
        raise CaptureError(
            f"{path}: no memory was recorded; capture with rocprofv3 --memory-allocation-trace, or "
            "with pyprof capture --memory"
        )
    return rocpd.read(path), events


_TABLE = "memory_allocate"
_ALLOCATES, _FREES = "ALLOC", "FREE"
"""Values of `type`; other rows are for scratch memory, which the driver takes for kernels."""
_SCRATCH = "SCRATCH"
_MAX_BYTES = 1 << 48
"""More than any device or host has."""
_FREED = MISSING
"""In place of the bytes of a free, until they are known."""


def memory_events(path: Path) -> MemoryEvents:
    """Read the allocations of all recordings; none if they were not traced."""
    processes = Processes()
    parts = [
        _read_recording(recording, processes.by_id(number, recording))
        for number, recording in enumerate(recordings(Database(path)))
    ]
    events = MemoryEvents(*map(np.concatenate, zip(*parts, strict=True)))
    order = np.argsort(events.time_ns, kind="stable")
    return _complete_frees(MemoryEvents(*(column[order] for column in events)))


def _read_recording(recording: Recording, pid: Callable[[Int64Array], Int64Array]) -> MemoryEvents:
    """Return the plausible rows of a recording; frees as they are in the file."""
    rows = recording.spans(_TABLE, "size", "address", texts=("type", "level"))
    does = rows.column("type")
    rows = rows.filter(
        pc.and_kleene(
            pc.is_in(does, pa.array([_ALLOCATES, _FREES])),
            pc.not_equal(pc.coalesce(rows.column("level"), ""), _SCRATCH),
        )
    )
    frees = np.asarray(pc.equal(rows.column("type"), _FREES))
    start, size, address = (ints(rows.column(name)) for name in ("start", "size", "address"))
    device = agents.Agents(recording).devices(ints(rows.column("agent_id")))
    unknown = np.full(len(start), MISSING)
    events = MemoryEvents(
        start,
        pid(ints(rows.column("pid"))),
        host.thread_numbers(recording, ints(rows.column("tid"))),
        address,
        np.where(frees, _FREED, size),
        unknown,
        device,
        unknown,
        unknown,
    )
    plausible = (start >= 0) & (address > 0) & (frees | ((size > 0) & (size < _MAX_BYTES)))
    return MemoryEvents(*(column[plausible] for column in events))


def _complete_frees(events: MemoryEvents) -> MemoryEvents:
    """Fill in what frees lack, and kinds of memory; leave out frees without an allocation."""
    order = np.lexsort((events.time_ns, events.address, events.pid))
    before = np.roll(order, 1)
    frees = events.bytes == _FREED
    of_last = ~frees[before]
    for column in (events.pid, events.address):
        of_last &= column[before] == column[order]
    of_last[:1] = False
    origin = np.full(len(order), MISSING)
    origin[order[of_last]] = before[of_last]
    size = np.where(frees, -events.bytes[origin], events.bytes)
    device = np.where(frees, events.device[origin], events.device)
    known = ~frees | (origin != MISSING)
    device_type = np.where(device == MISSING, _HOST, _DEVICE)
    filled = events._replace(bytes=size, device_type=device_type, device=device)
    return MemoryEvents(*(column[known] for column in filled))
