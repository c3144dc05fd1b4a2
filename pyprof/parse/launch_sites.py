"""Where each piece of GPU work was called by its op: at its launch or, in a graph, its capture.

A graph's launch may be anywhere, so it does not show the ops in it. The graph's work was launched
on a stream once, while the graph was captured, by the ops that it belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import MISSING, ints
from pyprof.parse.ranges.nesting import innermost
from pyprof.readers.kernel_launches import GRAPH_LAUNCH, named
from pyprof.records.records import number_combinations

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

    from pyprof.arrays import Int64Array, IntArray, Mask
    from pyprof.parse.ranges.nesting import Nest
    from pyprof.schema import Capture

LAUNCH, FORWARD_OP, USER_RANGE = (
    schema.VIAS.index(via) for via in ("launch", "forward op", "user range")
)

_NS_PER_MS = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSites:
    """Sites on threads: intervals of API calls, and instants of captures; and which is each row's.

    `thread`, `start` and `end` have one entry per site, the others one per row.
    """

    thread: IntArray
    start: Int64Array
    end: Int64Array
    row: Int64Array
    """The site of each row; else MISSING."""
    via: IntArray
    """How the site was found, as an index into `schema.VIAS`; MISSING if it was not."""
    replay: Int64Array
    """Which launch of a graph the row is part of, by start, from 0; MISSING outside graphs."""
    instance: Int64Array
    """0 for launched work; for captured work, a number for each time that it ran."""

    @property
    def caller(self) -> IntArray:
        """Thread of each row's launch site; MISSING if unknown."""
        return np.append(self.thread, self.thread.dtype.type(MISSING)).take(self.row)

    def around(self, ranges: Nest) -> Int64Array:
        """Find the innermost range around each row's site; MISSING without a site or a range."""
        leaf = np.full(len(self.row), MISSING)
        placed = np.flatnonzero(self.row != MISSING)
        row = self.row[placed]
        leaf[placed] = innermost(ranges, self.thread[row], self.start[row], self.end[row])
        return leaf


def find(capture: Capture, activities: pa.Table, launch: Int64Array) -> LaunchSites:
    """Find where each activity was called; `launch` is the row of the call that launched it."""
    calls, nodes = capture.calls, capture.graph_nodes
    thread, start, end = (_numbers(calls, name) for name in ("thread", "start", "end"))
    replay = replays(capture, activities, launch)
    if not len(nodes) and (replay == MISSING).all():  # nearly always
        return LaunchSites(
            thread=thread,
            start=start,
            end=end,
            row=launch,
            via=np.where(launch == MISSING, np.int8(MISSING), np.int8(LAUNCH)),
            replay=replay,
            instance=np.broadcast_to(0, len(launch)),
        )
    captured = [_numbers(nodes, name) for name in ("thread", "time", "time")]
    node = _drop_unknown_threads(ints(activities.column("graph_node")), captured[0])
    in_graph = replay != MISSING
    is_graph = ints(activities.column("kind")) == schema.GRAPH
    row = np.where(in_graph & ~is_graph, MISSING, launch)
    row = np.where(node != MISSING, len(calls) + node, row)
    via = np.append(ints(nodes.column("via")), MISSING)[node]
    return LaunchSites(
        thread=np.concatenate([thread, captured[0]]),
        start=np.concatenate([start, captured[1]]),
        end=np.concatenate([end, captured[2]]),
        row=row,
        via=np.where(in_graph | (launch == MISSING), via, LAUNCH),
        replay=replay,
        instance=_instances(node, replay),
    )


def _numbers(table: pa.Table, name: str) -> NDArray[Any]:
    """An integer column in its own type, with MISSING for null."""
    return np.asarray(pc.fill_null(table.column(name), MISSING))


def flow(site: LaunchSites) -> IntArray:
    """Number the flows whose sequence numbers are counted separately: threads, and their replays.

    A replay goes through the numbers of its capture anew.
    """
    caller = site.caller
    return number_combinations(caller, site.replay) if (site.replay != MISSING).any() else caller


def replays(capture: Capture, activities: pa.Table, launch: Int64Array) -> Int64Array:
    """Number the launches of graphs that activities are part of; MISSING outside graphs.

    An unrecorded launch is identified by its correlation id.
    """
    nodes, node_id = capture.graph_nodes, activities.column("node_id")
    launching = launches_graph(capture.calls)
    if not len(nodes) and node_id.null_count == len(node_id) and not launching.any():
        return np.broadcast_to(MISSING, len(launch))
    node = _drop_unknown_threads(
        ints(activities.column("graph_node")), ints(nodes.column("thread"))
    )
    in_graph = (node != MISSING) | (ints(node_id) != MISSING)
    in_graph |= launching[launch]
    replay = np.full(len(launch), MISSING)
    pid, corr = (ints(activities.column(name)) for name in ("pid", "corr"))
    rows = np.flatnonzero(in_graph & ((launch != MISSING) | (corr != MISSING)))
    if len(rows):
        unrecorded = launch[rows] == MISSING
        keys = [np.where(unrecorded, column[rows], MISSING) for column in (pid, corr)]
        replay[rows] = number_combinations(launch[rows], *keys)
    return replay


def any_graph(capture: Capture) -> bool:
    """Whether a graph was launched: in most captures none was."""
    node = capture.activities.column("node_id")
    return node.null_count < len(node) or bool(launches_graph(capture.calls).any())


def replayed(activities: pa.Table, replay: Int64Array) -> Mask:
    """Mask of activities that are work of a graph's node; a row for a whole graph is not.

    `replay` is the result of `replays` for them.
    """
    of_node = ints(activities.column("kind")) != schema.GRAPH
    return np.asarray((replay != MISSING) & of_node, bool)


def doubts(activities: pa.Table, site: LaunchSites) -> Iterator[str]:
    """Warn about replayed work whose capture is unknown."""
    of_nodes = replayed(activities, site.replay)
    rows = np.flatnonzero(of_nodes & (site.row == MISSING))
    if len(rows):
        start, end = (ints(activities.column(name))[rows] for name in ("start", "end"))
        timed = (start != MISSING) & (end != MISSING)
        unseen_ms = (end - start)[timed].sum() / _NS_PER_MS
        yield (
            f"{len(rows):,} of {int(of_nodes.sum()):,} kernels and copies that CUDA graphs "
            f"replayed ({unseen_ms:,.2f} ms) have no op: the capture of their graphs was not "
            "recorded; start profiling before graphs are captured (nsys: with "
            "--cuda-graph-trace=node), or give traces of it (torch.profiler: --with)"
        )


def _drop_unknown_threads(node: Int64Array, thread: Int64Array) -> Int64Array:
    """Replace nodes whose thread is unknown by MISSING."""
    return np.where(np.append(thread, MISSING)[node] != MISSING, node, MISSING)


def launches_graph(calls: pa.Table) -> Mask:
    """Mask of calls that launch a graph; the last entry is for no call."""
    return np.append(named(calls, GRAPH_LAUNCH), [False])


def _instances(node: Int64Array, replay: Int64Array) -> Int64Array:
    """Number the runs of what was captured: by replay and, in loops and clones, by turn."""
    instance = np.zeros(len(node), np.int64)
    rows = np.flatnonzero(node != MISSING)
    if len(rows):
        key = number_combinations(replay[rows], node[rows])
        # count how often each key came before
        order = np.argsort(key, kind="stable")
        index = np.arange(len(key))
        first = np.diff(key[order], prepend=MISSING - 1) != 0
        turn = np.empty(len(key), np.int64)
        turn[order] = index - np.maximum.accumulate(np.where(first, index, 0))
        instance[rows] = 1 + number_combinations(replay[rows], turn)
    return instance
