"""What ties NPU work to ops in traces of torch_npu: calls of CANN, and arrows from ops.

A call and its work share a `connection_id`. Calls lie in a process of their own, but their
threads have the system's ids; with torch_npu's task queue another thread than the op's makes them,
and only the arrow `async_npu` leads from the op to its work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof import schema
from pyprof.arrays import MISSING, first_index, ints, or_null, set_column
from pyprof.readers.kineto import gpu
from pyprof.readers.kineto.columns import (
    Timed,
    concat,
    timed,
    whole_number,
)
from pyprof.readers.kineto.file.events import all_args

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from pyprof.readers.kineto.columns import Threads
    from pyprof.readers.kineto.file.events import Event

CALLS = "CANN"
"""The name of the process with calls."""
ARROW = "async_npu"
"""The category of arrows from ops to their work."""
_ARROW_CALL = "torch_to_npu"
"""torch_npu's name for a launch that only the flow event shows."""


class Arrows:
    """The arrows from ops to work."""

    def __init__(self) -> None:
        self._tails: dict[object, Event] = {}
        self._heads: dict[object, tuple[str, int]] = {}
        """Where arrows end: the stream and the start of their work, ns."""

    def add(self, ends: Timed) -> None:
        """Gather the ends of arrows."""
        for event, start in zip(ends.events, ends.start.tolist(), strict=True):
            key = str(event.id)
            if event.ph == "s":
                self._tails[key] = event
            else:
                self._heads[key] = (str(event.tid), start)

    def tails(self, work: Timed) -> list[Event | None]:
        """Return the event at which the arrow to each piece of work starts; None without one."""
        of_place = {place: self._tails.get(key) for key, place in self._heads.items()}
        return [
            of_place.get((str(event.tid), start))
            for event, start in zip(work.events, work.starts().to_pylist(), strict=True)
        ]


def calls(events: Sequence[Event], threads: Threads) -> pa.Table:
    """Return the calls of CANN that launch work, on the threads of the process's ops."""
    launching = [event for event in events if "connection_id" in all_args(event)]
    owner: dict[int | None, int] = {tid: pid for pid, tid in threads.ids}
    for event in launching:
        event.pid = owner.get(whole_number(event.tid), event.pid)
    group = timed(launching)
    group = group.filter(np.isfinite(group.us))
    return gpu.calls(group, threads)[0]


def with_arrows(
    activities: pa.Table, tails: Sequence[Event | None], calls: pa.Table, threads: Threads
) -> tuple[pa.Table, pa.Table]:
    """Tie work to the op that its flow event comes from, unless a call of that thread launched it.

    `activities` are in the order of `tails`. Returns the activities and all calls.
    """
    rows = np.flatnonzero([tail is not None for tail in tails])
    starts = timed([tail for tail in tails if tail is not None])
    timely = np.isfinite(starts.us)
    rows, starts = rows[timely], starts.filter(timely)
    thread = threads.rows(starts.events)
    corr = ints(activities.column("corr")).copy()
    call = first_index(ints(calls.column("corr"), _NO_CALL), corr[rows])
    apart = np.append(ints(calls.column("thread")), MISSING)[call] != thread
    if not apart.any():
        return activities, calls
    rows, thread, start = rows[apart], thread[apart], starts.start[apart]
    first = 1 + max(int(corr.max(initial=0)), int(ints(calls.column("corr")).max(initial=0)))
    own = first + np.arange(len(rows))
    corr[rows] = own
    columns = {"start": start, "end": start, "thread": thread.astype(np.int32), "corr": own}
    named = schema.table(schema.CALLS, {**columns, "name": [_ARROW_CALL] * len(rows)})
    linked = set_column(activities, "corr", or_null(corr))
    return linked, concat(schema.CALLS, [calls, named])


_NO_CALL = -2
"""The id of calls without one, which no work has."""
