"""The replays of a capture and the launches of its recordings, with keys to compare them by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pyprof import schema
from pyprof.arrays import MISSING, ints
from pyprof.gpu.kernel_names import demangle, split
from pyprof.marker import serving_step
from pyprof.parse import launch_sites
from pyprof.parse.graphs.matching import Kernels
from pyprof.parse.ranges.nesting import innermost, nest
from pyprof.records.records import number_combinations

if TYPE_CHECKING:
    from pyprof.arrays import Int64Array, Mask
    from pyprof.schema import Capture

AXES = tuple(f"{name}_{axis}" for name in ("grid", "block") for axis in "xyz")
_LOW_BITS = (1 << 32) - 1
"""Of a node's id: its number in its graph, by creation; the higher bits are the graph's."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Kernels of one graph: of all its replays if the tool numbers nodes, else of one replay."""

    rows: Int64Array
    """Rows of activities, one per node, in the order of nodes, else of their start."""
    replays: tuple[int, ...]
    ordered: bool
    """Whether the order is that in which nodes were made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replays:
    """The replays of graphs, with the keys of their kernels and of captured launches."""

    replay: Int64Array
    """The replay of each activity; MISSING outside graphs."""
    start: Int64Array
    """When each replay was launched, ns; else when its first kernel began."""
    step: Int64Array
    """The step of each replay; MISSING without a range."""
    batch_size: Int64Array
    """Batch size of each replay's step; MISSING if not stated."""
    subjects: tuple[Subject, ...]
    replayed: Mask
    """Whether each activity is a node's work, not the launch of a whole graph."""
    of_activities: Kernels
    of_launches: Kernels
    """Kernels of the recordings; empty if there are none."""


def find(capture: Capture, activities: pa.Table, launch: Int64Array, replay: Int64Array) -> Replays:
    """Gather the replays of a capture.

    `launch` is the call that launched each activity, `replay` the result of `launch_sites.replays`.
    """
    replayed = launch_sites.replayed(activities, replay)
    of_activities, of_launches = _kernels(capture, activities)
    rows = np.flatnonzero(replay != MISSING)
    count = int(replay.max(initial=MISSING)) + 1
    first = np.full(count, len(replay))
    np.minimum.at(first, replay[rows], rows)
    call = launch[first]
    begun = ints(activities.column("start"))[first]
    start = np.where(
        call == MISSING, begun, np.append(ints(capture.calls.column("start")), 0)[call]
    )
    thread = np.append(ints(capture.calls.column("thread")), MISSING)[call]
    step, size = _steps(capture, thread, start)
    return Replays(
        replay=replay,
        start=start,
        step=step,
        batch_size=size,
        subjects=tuple(_subjects(activities, np.where(replayed, replay, MISSING))),
        replayed=replayed,
        of_activities=of_activities,
        of_launches=of_launches,
    )


def _subjects(activities: pa.Table, replay: Int64Array) -> list[Subject]:
    """Group kernels by graph, or by replay if nodes have no numbers."""
    node = ints(activities.column("node_id"))
    rows = np.flatnonzero(replay != MISSING)
    without = np.zeros(int(replay.max(initial=MISSING)) + 1, bool)
    without[replay[rows[node[rows] == MISSING]]] = True
    ordered = ~without[replay[rows]]
    graph = np.where(ordered, node[rows] >> 32, 0)
    several = graph > 0
    pid = ints(activities.column("pid"))[rows]
    number = number_combinations(
        np.where(several, graph, MISSING),
        np.where(several, pid, MISSING),
        np.where(several, MISSING, replay[rows]),
    )
    index = np.where(ordered, node[rows] & _LOW_BITS, np.arange(len(rows)))
    order = np.lexsort((np.arange(len(rows)), index, number))
    subjects = []
    for part in np.split(order, np.flatnonzero(np.diff(number[order])) + 1):
        if len(part):
            same = several[part[0]] & (np.diff(index[part], prepend=MISSING) == 0)
            subjects.append(
                Subject(
                    rows[part[~same]],
                    tuple(np.unique(replay[rows[part]]).tolist()),
                    ordered=bool(ordered[part[0]]),
                )
            )
    return subjects


def _steps(capture: Capture, thread: Int64Array, time: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Find the step around each launch, and its batch size."""
    ranges = capture.ranges
    text = ranges.column("text").combine_chunks()
    steps = [serving_step(entry) for entry in text.dictionary.to_pylist()]
    known = [step.batch or MISSING if step else MISSING for step in steps]
    size = np.array([*known, MISSING], np.int64)[ints(text.indices)]
    rows = np.flatnonzero(size != MISSING)
    on, start, end = (ints(ranges.column(name))[rows] for name in ("thread", "start", "end"))
    end = np.where(end == MISSING, np.iinfo(np.int64).max, end)
    nested = nest(on, start, end, lambda: np.arange(len(rows)))
    step_of_launch = innermost(nested, thread, time, time)
    known_size = np.append(size[rows][nested.order], MISSING)[step_of_launch]
    return step_of_launch, np.where(step_of_launch == MISSING, MISSING, known_size)


def _kernels(capture: Capture, activities: pa.Table) -> tuple[Kernels, Kernels]:
    """Keys of activities and of the launches of recordings."""
    launches = schema.CAPTURED_LAUNCHES.empty_table()
    if capture.graph_captures is not None:
        launches = capture.graph_captures.launches
    both_tables = [table.select(["name", "kind", *AXES]) for table in (activities, launches)]
    table = pa.concat_tables(both_tables).unify_dictionaries()
    split_at = len(activities)
    full_name, function = _names(table)
    sizes = [ints(table.column(axis)) for axis in AXES]
    unknown = np.logical_or.reduce([column == MISSING for column in (full_name, *sizes)])
    level = np.where(unknown, MISSING, number_combinations(full_name, *sizes))
    streams = np.append(ints(activities.column("stream")), np.zeros(len(launches), np.int64))
    all_ = Kernels((level, full_name, function), streams)
    rows = np.arange(len(full_name))
    return all_.take(rows[:split_at]), all_.take(rows[split_at:])


def _names(table: pa.Table) -> tuple[Int64Array, Int64Array]:
    """Number the names and functions of kernels; all copies share a name, and so do all fills."""
    column, kind = table.column("name").combine_chunks(), ints(table.column("kind"))
    names = [_plain(name) for name in column.dictionary.to_pylist()]
    index = ints(column.indices)
    codes = []
    for texts in ([name for name, _ in names], [function for _, function in names]):
        known: dict[str, int] = {}
        numbers = [known.setdefault(text, len(known)) for text in texts]
        code = np.array([*numbers, MISSING], np.int64)[index]
        for moves, text in ((schema.MEMCPY, _COPY), (schema.MEMSET, _FILL)):
            code[kind == moves] = known.setdefault(text, len(known))
        codes.append(code)
    return codes[0], codes[1]


_COPY, _FILL = "[copy]", "[fill]"
"""Keys of all copies and of all fills, whatever the tool calls them."""


def _plain(name: str) -> tuple[str, str]:
    """A kernel's name as every tool writes it, and its bare function name."""
    if name.startswith("__amd_rocclr_copy"):
        return _COPY, _COPY
    if name.startswith("__amd_rocclr_fill"):
        return _FILL, _FILL
    full_name = demangle(name.removesuffix(".kd"))
    return "".join(full_name.split()), split(full_name).path
