"""What nsys records of device memory (`--cuda-memory-usage=true`), as memory events.

These are calls of cudaMalloc and its like: PyTorch's segments, not its tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.allocations.trace_events import MemoryEvents
from pyprof.arrays import MISSING, first_index, ints
from pyprof.errors import CaptureError
from pyprof.readers import nsys
from pyprof.readers.nsys import graphs
from pyprof.readers.sqlite.tables import Database

if TYPE_CHECKING:
    from pathlib import Path

    from pyprof.arrays import Int64Array
    from pyprof.schema import Capture

TABLE = "CUDA_GPU_MEMORY_USAGE_EVENTS"
KINDS = {0: "pageable", 1: "pinned", 2: "cuda", 3: "cuda arrays", 4: "managed", 5: "cuda static",
         6: "managed static"}  # fmt: skip
"""Names of CUDA's kinds of memory; `cuda` for a device's own."""
_DEVICE = 2
"""The kind of a device's own memory."""
_ALLOCATES, _FREES = 0, 1
"""Values of `memoryOperationType`."""
_MAX_BYTES = 1 << 48
"""More than any device or host has."""
_CORR_BITS = 32
"""CUPTI numbers calls in 32 bits."""
_COLUMNS = ("start", "globalPid", "deviceId", "address", "bytes", "memKind", "memoryOperationType",
            "correlationId")  # fmt: skip


def read(path: Path) -> tuple[Capture, MemoryEvents]:
    """Read an nsys export and its memory events; CaptureError where it has no such events."""
    db = Database(path)
    if TABLE not in db.tables():
        raise CaptureError(
            f"{path}: no memory was recorded; capture with nsys profile --cuda-memory-usage=true, "
            "or with pyprof capture --memory"
        )
    db.require(TABLE, "start", "address", "bytes", "memoryOperationType")
    table = db.read(TABLE, dict.fromkeys(_COLUMNS, int))
    if "memKind" not in db.columns(TABLE):  # of a device, as in the first versions
        kinds = np.full(table.num_rows, _DEVICE)
    else:
        kinds = ints(table.column("memKind"), _DEVICE)
    start, address, size, does = (
        ints(table.column(name)) for name in ("start", "address", "bytes", "memoryOperationType")
    )
    plausible = (
        (start >= 0) & (size > 0) & (size < _MAX_BYTES) & np.isin(does, (_ALLOCATES, _FREES))
    )
    plausible &= (address > 0) & (address < 1 << 62)
    rows = np.flatnonzero(plausible)
    rows = rows[np.argsort(start[rows], kind="stable")]
    capture = nsys.read(path)
    pid = graphs.pids(ints(table.column("globalPid"), 0))[rows]
    corr = ints(table.column("correlationId"))[rows]
    unknown = np.full(len(rows), MISSING)
    events = MemoryEvents(
        start[rows],
        pid,
        _callers(capture, pid, corr),
        address[rows],
        np.where(does == _FREES, -size, size)[rows],
        kinds[rows],
        ints(table.column("deviceId"))[rows],
        unknown,
        unknown,
    )
    return capture, events


def _callers(capture: Capture, pid: Int64Array, corr: Int64Array) -> Int64Array:
    """Thread of the call that made each event; MISSING if none was recorded."""
    threads = capture.threads
    own_pid, own_tid = (np.append(ints(threads.column(n)), MISSING) for n in ("pid", "tid"))
    thread = ints(capture.calls.column("thread"))
    calls = (own_pid[thread] << _CORR_BITS) + ints(capture.calls.column("corr"))
    call = first_index(calls, (pid << _CORR_BITS) + corr)
    caller = own_tid[np.append(thread, MISSING)[call]]
    return np.where(corr == MISSING, MISSING, caller)
