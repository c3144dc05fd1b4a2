"""What the host did in the CUDA API, process by process, as sets of time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof import schema
from pyprof.analysis.time.intervals import EMPTY, Intervals, union, union_of
from pyprof.arrays import ints
from pyprof.parse.launches import launch_bounds
from pyprof.parse.ranges.nesting import by_value
from pyprof.records.records import distinct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.arrays import Int64Array, IntArray, Mask
    from pyprof.records.records import Records
    from pyprof.schema import Capture


launches = launch_bounds

SYNC, COPY, ALLOC, LOAD, LAUNCH = "sync", "copy", "alloc", "load", "launch"
CALL_KINDS = (SYNC, COPY, ALLOC, LOAD, LAUNCH)
"""Kinds of calls; of calls that overlap on several threads, the first kind explains the wait."""

_NAMES = (
    (SYNC, re.compile(r"Synchronize")),
    (COPY, re.compile(r"^(?:cuda|cu|hip)Memcpy")),
    (ALLOC, re.compile(r"Malloc|Free|HostAlloc|MemAlloc|HostRegister|MemMap|MemCreate")),
    (LOAD, re.compile(r"^cu(?:Module|Library)(?:Load|Unload|GetKernel)|^cuInit")),
    (LAUNCH, re.compile(r"Launch|Memset")),
)
_LOADS_NOTHING = re.compile(r"GraphLaunch|LaunchHostFunc|Memset")
"""A graph's kernels were loaded when it was made; host functions and fills need no loading."""

LOAD_NS = 1_000_000
"""A kernel's launch that takes longer loads its code: CUDA loads lazily since 11.7."""


@dataclass(frozen=True, slots=True)
class Host:
    """When a process was inside API calls of each kind; union over its threads."""

    inside: Mapping[str, Intervals]

    @property
    def inside_any(self) -> Intervals:
        """Return when it was inside any of these calls."""
        return union(self.inside.values())


@dataclass(frozen=True, slots=True)
class Calls:
    """API calls of the kinds above, in order of their start."""

    pid: Int64Array
    start: Int64Array
    end: Int64Array
    kind_of_call: IntArray
    """Index into CALL_KINDS."""
    complete: bool
    """False if only launches are known, not synchronisation."""

    def hosts(self) -> Mapping[int, Host]:
        """Return, for each process with calls, when it was inside them."""
        host_of_process = {}
        for pid, rows in by_value(self.pid):
            sets = {}
            for index, name in enumerate(CALL_KINDS):
                ours = rows[self.kind_of_call[rows] == index]
                sets[name] = union_of(self.start[ours], self.end[ours]) if len(ours) else EMPTY
            host_of_process[pid] = Host(sets)
        return host_of_process


SILENT = Host(dict.fromkeys(CALL_KINDS, EMPTY))
"""A process without known calls."""


def call_kind(name: str) -> str | None:
    """Return what an API call of this name does to the host; None for irrelevant calls."""
    return next((kind for kind, pattern in _NAMES if pattern.search(name)), None)


def calls(records: Records, capture: Capture | None) -> Calls:
    """Return the API calls of a capture; without one, the launches that the records hold."""
    if capture is not None and capture.calls.num_rows:
        return _captured(capture)
    begin, end = launches(records)
    kind_of_call = launch_kinds(records)
    kind_of_call[(begin < 0) | ~called_itself(records)] = -1
    return _ordered(records.numpy("pid"), begin, end, kind_of_call, complete=False)


def _captured(capture: Capture) -> Calls:
    table = capture.calls
    names = table.column("name").combine_chunks()
    texts = names.dictionary.to_pylist()
    code = [
        CALL_KINDS.index(kind_of_call) if (kind_of_call := call_kind(text)) else -1
        for text in texts
    ]
    loads = [call_kind(text) == LAUNCH and not _LOADS_NOTHING.search(text) for text in texts]
    index = ints(names.indices)
    sorted_as = np.array([*code, -1], np.int8)[index]
    pid = ints(capture.threads.column("pid"))[ints(table.column("thread"))]
    start, end = ints(table.column("start")), ints(table.column("end"))
    long = np.array([*loads, False])[index] & (end - start > LOAD_NS)
    sorted_as[long] = _LOAD
    return _ordered(pid, start, end, sorted_as, complete=True)


def launch_kinds(records: Records) -> IntArray:
    """Return the kind of the call that launched each row, as an index into CALL_KINDS."""
    begin, end = launches(records)
    kind, replayed = records.dictionary("kind"), records.numpy("replay") >= 0
    copy = kind.matches(lambda name: name == schema.KINDS[schema.MEMCPY])
    kernel = kind.matches(lambda name: name == schema.KINDS[schema.KERNEL])
    kind_of_call = np.where(
        copy & ~replayed, np.int8(CALL_KINDS.index(COPY)), np.int8(CALL_KINDS.index(LAUNCH))
    )
    # A launch that waits for its kernel (CUDA_LAUNCH_BLOCKING=1) takes as long, and loads nothing.
    until = np.minimum(end, records.numpy("start"))
    kind_of_call[kernel & ~replayed & (until - begin > LOAD_NS)] = _LOAD
    return kind_of_call


_LOAD = np.int8(CALL_KINDS.index(LOAD))


def _ordered(
    pid: Int64Array, start: Int64Array, end: Int64Array, kind_of_call: IntArray, *, complete: bool
) -> Calls:
    rows = np.flatnonzero(kind_of_call >= 0)
    began = start[rows]
    if (began[1:] < began[:-1]).any():
        rows = rows[np.argsort(began, kind="stable")]
    elif len(rows) == len(start):
        return Calls(pid, start, end, kind_of_call, complete)
    return Calls(pid[rows], start[rows], end[rows], kind_of_call[rows], complete)


def called_itself(records: Records) -> Mask:
    """Mask of the rows with a launching call of their own, and of the first of each replay."""
    replay = records.numpy("replay")
    once = replay < 0
    rows = np.flatnonzero(~once)
    once[rows[distinct(replay[rows])[0]]] = True
    return np.asarray(once)
