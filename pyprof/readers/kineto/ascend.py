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
from pyprof.readers.kineto.columns import Timed, concat, timed, whole_number
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
    activities: pa.Table, work: Timed, arrows: Sequence[Timed], calls: pa.Table, threads: Threads
) -> tuple[pa.Table, pa.Table]:
    """Tie work to the op that its arrow comes from, unless a call of that thread launched it.

    `activities` are in the order of `work`, `arrows` are both ends of all. Returns the activities
    and all calls.
    """
    tail_of_id: dict[str, tuple[Event, int]] = {}
    place_of_id: dict[str, tuple[str, int]] = {}  # stream and start of the work at the other end
    for ends in arrows:
        for event, start_ns in zip(ends.events, ends.start.tolist(), strict=True):
            if event.ph == "s":
                tail_of_id[str(event.id)] = (event, start_ns)
            else:
                place_of_id[str(event.id)] = (str(event.tid), start_ns)
    tail_of_place = {place: tail_of_id.get(key) for key, place in place_of_id.items()}
    places = zip((str(event.tid) for event in work.events), work.starts().to_pylist(), strict=True)
    tails = [(row, tail) for row, place in enumerate(places) if (tail := tail_of_place.get(place))]

    rows = np.array([row for row, _ in tails], np.int64)
    thread = threads.rows([event for _, (event, _) in tails])
    start = np.array([start_ns for _, (_, start_ns) in tails], np.int64)
    corr = ints(activities.column("corr")).copy()
    call = first_index(ints(calls.column("corr"), _NO_CALL), corr[rows])
    apart = np.append(ints(calls.column("thread")), MISSING)[call] != thread
    if not apart.any():
        return activities, calls
    rows, thread, start = rows[apart], thread[apart], start[apart]
    first = 1 + max(int(corr.max(initial=0)), int(ints(calls.column("corr")).max(initial=0)))
    own = first + np.arange(len(rows))
    corr[rows] = own
    columns = {"start": start, "end": start, "thread": thread.astype(np.int32), "corr": own}
    named = schema.table(schema.CALLS, {**columns, "name": [_ARROW_CALL] * len(rows)})
    linked = set_column(activities, "corr", or_null(corr))
    return linked, concat(schema.CALLS, [calls, named])


_NO_CALL = -2
"""The id of calls without one, which no work has."""
