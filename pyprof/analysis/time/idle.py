"""Why a GPU had nothing to do: what the host did while it should have launched.

Each instant of idle time has one cause, so that causes add up to the idle time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.time.host_api import ALLOC, CALL_KINDS, COPY, LAUNCH, LOAD, SYNC
from pyprof.analysis.time.intervals import complement, union, union_of

if TYPE_CHECKING:
    from pyprof.analysis.time.host_api import Host
    from pyprof.analysis.time.intervals import Intervals
    from pyprof.arrays import Int64Array, IntArray, Mask


HOST, QUEUE, PEER, GRAPH, UNKNOWN = "host", "queue", "peer", "graph", "unknown"

CAUSES = (LAUNCH, SYNC, COPY, ALLOC, LOAD, HOST, QUEUE, PEER, GRAPH, UNKNOWN)
"""Causes of idle time; `pyprof.render.idle_causes` explains each."""

LOADING, OPS, DISPATCH = "loading", "ops", "dispatch"

CPU_CAUSES = (LOADING, OPS, DISPATCH, HOST)
"""Causes of the time between ops that were timed on the CPU."""

DISPATCH_NS = 100_000
"""Up to this long between two API calls, the host is taken to be dispatching the next op; beyond,
to do something else. PyTorch's eager dispatch takes 5 to 50 us an op, more under a profiler."""


@dataclass(frozen=True, slots=True)
class Gaps:
    """When a device idled, and the row that ended each gap."""

    start: Int64Array
    end: Int64Array
    row: Int64Array
    """The row that began where the gap ended."""
    launch_start: Int64Array
    """Start of the API call that launched the row; -1 if unknown."""
    launch_end: Int64Array
    launch_kind: IntArray
    """Kind of that call: an index into CALL_KINDS."""
    in_replay: Mask
    """Whether the gap is inside one replay of a graph, in which the host has no part."""


def causes(gaps: Gaps, host: Host, others: Intervals) -> dict[str, Intervals]:
    """Split idle time by cause; the sets are disjoint and together are the gaps.

    Until the call that launched the row which ended a gap, the cause is what the host did: inside a
    call, that call; between calls, dispatching an op (short) or something else (long); after a
    synchronisation, the host catching up. Then it is the call itself, until it returns, and from
    then on the GPU's own delay, or `others`, the work of the process's other GPUs. Within a replay
    of a graph, the cause is the graph.
    """
    known, (begin, end) = gaps.launch_start >= 0, (gaps.launch_start, gaps.launch_end)
    inside = gaps.in_replay
    unknown, known = ~known & ~inside, known & ~inside
    queued = known & (end <= gaps.start)
    called, returned = (np.clip(time, gaps.start, gaps.end) for time in (begin, end))
    late = known & ~queued
    delayed = np.where(queued, gaps.start, returned)
    delay = union_of(delayed[known], gaps.end[known])
    idle_by_cause = {
        GRAPH: union_of(gaps.start[inside], gaps.end[inside]),
        UNKNOWN: union_of(gaps.start[unknown], gaps.end[unknown]),
        QUEUE: delay - others,
        PEER: delay & others,
    }
    idle_by_cause |= _host(union_of(gaps.start[late], called[late]), host)
    for cause in (COPY, LOAD, LAUNCH):
        rows = late & (gaps.launch_kind == CALL_KINDS.index(cause))
        idle_by_cause[cause] = idle_by_cause[cause] | union_of(called[rows], returned[rows])
    return {name: idle_by_cause[name] for name in CAUSES}


def _host(rest: Intervals, host: Host) -> dict[str, Intervals]:
    """Split the time before late launches by what the host did then."""
    idle_by_cause = {}
    for cause, inside in host.items():
        idle_by_cause[cause] = rest & inside
        rest = rest - inside
    if not len(rest):
        return {**idle_by_cause, HOST: rest}
    between = complement(union(host.values()), int(rest.start[0]), int(rest.end[-1]))
    short = between.end - between.start <= DISPATCH_NS
    after_sync = np.isin(between.start, host[SYNC].end)
    idle_by_cause[SYNC] = idle_by_cause[SYNC] | (rest & between[short & after_sync])
    idle_by_cause[LAUNCH] = idle_by_cause[LAUNCH] | (rest & between[short & ~after_sync])
    return {**idle_by_cause, HOST: rest & between[~short]}
