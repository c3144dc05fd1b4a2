"""What the host did in the CUDA API, process by process, as sets of time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pyprof import schema
from pyprof.analysis.time.intervals import EMPTY, union_of
from pyprof.arrays import ints
from pyprof.parse.launches import launch_bounds
from pyprof.parse.ranges.nesting import by_value
from pyprof.records.records import distinct, encode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.analysis.time.intervals import Intervals
    from pyprof.arrays import Int64Array, IntArray, Mask
    from pyprof.records.records import DictionaryColumn, Records
    from pyprof.schema import Capture


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


Host: TypeAlias = "Mapping[str, Intervals]"
"""When a process was inside API calls of each kind; union over its threads."""


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
        host_of_process: dict[int, dict[str, Intervals]] = {}
        for pid, rows in by_value(self.pid):
            host = host_of_process[pid] = {}
            for index, name in enumerate(CALL_KINDS):
                ours = rows[self.kind_of_call[rows] == index]
                host[name] = union_of(self.start[ours], self.end[ours])
        return host_of_process


SILENT: Host = dict.fromkeys(CALL_KINDS, EMPTY)
"""A process without known calls."""


def call_kind(name: str) -> str | None:
    """Return what an API call of this name does to the host; None for irrelevant calls."""
    return next((kind for kind, pattern in _NAMES if pattern.search(name)), None)


def calls(records: Records, capture: Capture | None) -> Calls:
    """Return the API calls of a capture; without them, the launches that the records hold."""
    if capture is not None:
        name = encode(capture.calls.column("name").combine_chunks())
        # if most have a name, it is known which calls wait
        if 2 * name.matches(lambda text: not _NO_NAME.match(text)).sum() > len(name):
            return _captured_calls(capture, name)
    begin, end = launch_bounds(records)
    kind_of_call = launch_kinds(records)
    kind_of_call[(begin < 0) | ~called_itself(records)] = -1
    return _ordered(records.numpy("pid"), begin, end, kind_of_call, complete=False)


_NO_NAME = re.compile(r"$|(?:unknown|RUNTIME|DRIVER) call\b")
"""Names that readers use for calls without a name, or with an unknown number."""


def _captured_calls(capture: Capture, name: DictionaryColumn) -> Calls:
    thread, start, end = (ints(capture.calls.column(each)) for each in ("thread", "start", "end"))
    number: dict[str | None, int] = {None: -1}
    number |= {kind: index for index, kind in enumerate(CALL_KINDS)}
    kind_of_call = name.numpy(lambda text: number[call_kind(text)], -1).astype(np.int8)
    may_load = kind_of_call == number[LAUNCH]
    may_load &= name.matches(lambda text: not _LOADS_NOTHING.search(text))
    kind_of_call[may_load & (end - start > LOAD_NS)] = number[LOAD]
    pid = ints(capture.threads.column("pid"))[thread]
    return _ordered(pid, start, end, kind_of_call, complete=True)


def launch_kinds(records: Records) -> IntArray:
    """Return the kind of the call that launched each row, as an index into CALL_KINDS."""
    begin, end = launch_bounds(records)
    own = records.numpy("replay") < 0  # not part of a replay's one call
    kind_of_call = np.full(records.rows, CALL_KINDS.index(LAUNCH), np.int8)
    kind_of_call[own & records.of_kind(schema.MEMCPY)] = CALL_KINDS.index(COPY)
    # A launch that waits for its kernel (CUDA_LAUNCH_BLOCKING=1) takes as long, and loads nothing.
    until = np.minimum(end, records.numpy("start"))
    kind_of_call[own & records.of_kind(schema.KERNEL) & (until - begin > LOAD_NS)] = (
        CALL_KINDS.index(LOAD)
    )
    return kind_of_call


def _ordered(
    pid: Int64Array, start: Int64Array, end: Int64Array, kind_of_call: IntArray, *, complete: bool
) -> Calls:
    rows = np.flatnonzero(kind_of_call >= 0)
    rows = rows[np.argsort(start[rows], kind="stable")]
    return Calls(pid[rows], start[rows], end[rows], kind_of_call[rows], complete)


def called_itself(records: Records) -> Mask:
    """Mask of the rows with a launching call of their own, and of the first of each replay."""
    replay = records.numpy("replay")
    once = replay < 0
    rows = np.flatnonzero(~once)
    once[rows[distinct(replay[rows])[0]]] = True
    return np.asarray(once)
