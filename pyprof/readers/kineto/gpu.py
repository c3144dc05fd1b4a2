"""GPU work and the API calls that launched it, as columns."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import chain, compress
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET

from pyprof import schema
from pyprof.arrays import first_index, or_null, set_column, texts_by_index
from pyprof.arrays import ints as integers
from pyprof.readers.kernel_launches import named as named_calls
from pyprof.readers.kineto import counters
from pyprof.readers.kineto.columns import Threads, Timed, ints, timed, times
from pyprof.readers.kineto.file.events import (
    CALLS,
    NO_JSON,
    NO_VALUE,
    WORK,
    all_args,
    joined,
    loads,
    number_distinct,
)
from pyprof.readers.kineto.op_texts import named

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyprof.arrays import Int64Array, Mask
    from pyprof.readers.kineto.file.events import CallArgs, Event, WorkArgs
    from pyprof.readers.kineto.op_texts import Names

ACTIVITIES = {
    "kernel": schema.KERNEL,
    "gpu_memcpy": schema.MEMCPY,
    "gpu_memset": schema.MEMSET,
    # until torch 1.12
    "Kernel": schema.KERNEL,
    "Memcpy": schema.MEMCPY,
    "Memset": schema.MEMSET,
}
"""Categories of GPU work."""

MEASURED = "cuda_profiler_range"
"""Category of kernels that CUPTI's range profiler measured, instead of all other GPU work.

It spreads them evenly over its window: names, order and counters are real, times are not.
"""
_WHOLE_WINDOW = "__profile__"
"""The range profiler's name for a window measured as a whole, not kernel by kernel."""
_DURATION = "gpu__time_duration.sum"
"""The counter that is a kernel's own time, ns."""
_LAUNCHES = r"^(?:cuda|cu|hip)\w*LaunchKernel"

_IN_THREADS = frozenset({"hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel"})
"""Calls that take their grid in threads (`globalWorkSizeX`, hip_ext.h), unlike all others."""

_SHORT = re.compile(r"\b([HDPA])to([HDPA])\b")  # NVIDIA; P is a peer, A an array
_LONG = re.compile(r"(Host|Device|Peer|Array)\w{0,40}?To(Host|Device|Peer|Array)")  # AMD
_INTEL = re.compile(r"\b([MHD])2([MHD])\b")
"""XPU: M is host memory that the driver did not allocate. S, shared memory, may be either."""

_METRICS = r"^metrics: "
"""Names of second events of kernels on an XPU, around the first: the scope profiler's counters."""


def is_call(category: str) -> bool:
    """Whether events of this category are calls of a GPU's runtime or driver."""
    return category in {"Runtime", "Driver"} or category.endswith(("_runtime", "_driver"))


@lru_cache(maxsize=1024)
def transfer_name(kind: int, name: str) -> str:
    """Name a copy or fill as the other profilers do."""
    if kind == schema.MEMSET:
        return "[CUDA memset]"
    if match := _SHORT.search(name):
        return f"[CUDA memcpy {match[0]}]"
    if match := _LONG.search(name):
        return f"[CUDA memcpy {match[1][0]}to{match[2][0]}]"
    if match := _INTEL.search(name):
        origin, target = (side.replace("M", "H") for side in match.groups())
        return f"[CUDA memcpy {origin}to{target}]"
    return "[CUDA memcpy]"


def activities(kinds: Sequence[int], groups: Sequence[list[Event]]) -> pa.Table:
    """Build the rows of events, in groups of one kind."""
    kind = np.repeat(kinds, [*map(len, groups)])
    work = rows(kind, [*chain.from_iterable(groups)])
    again = named_calls(work, _METRICS) & np.asarray(work["corr"].is_null())
    return work.filter(pa.array(~again)) if again.any() else work


def rows(kinds: Sequence[int] | Int64Array, listed: list[Event]) -> pa.Table:
    """Build the rows of events of these kinds, in order; `launching_process` adds the process."""
    work, kind = timed(listed), np.asarray(kinds, np.int64)
    events, text = work.events, joined(work.events)
    args, names = WORK.read(events, text), named(events)
    start = work.starts()
    columns = {
        "kind": pa.array(kind.astype(np.int8)),
        "start": start,
        "end": pa.compute.add(start, times([event.dur for event in events])),
        "device": ints(
            _fill_missing([a.device for a in args], (e.pid for e in events)), pa.int32()
        ),
        "stream": ints(_fill_missing([a.stream for a in args], (e.tid for e in events))),
        "corr": correlations(args),
        **_work_names(kind, names),
        "regs": ints([a.regs for a in args], pa.int32()),
        "smem": ints([a.smem for a in args]),
        "bytes": ints(_sizes(args)),
        "collective": pa.array(
            [
                None if a.collective is NO_VALUE else _collective(all_args(event))
                for event, a in zip(events, args, strict=True)
            ],
            pa.string(),
        ),
        "counters": counters.of_kernels(events, text),
        "node_id": node_ids(args),
        **_three_sizes(args),
    }
    return schema.table(schema.ACTIVITIES, columns)


def measured_kernels(events: Sequence[Event]) -> pa.Table:
    """Return the rows of kernels that CUPTI's range profiler measured, in their order.

    They end after their measured time, if all have one.
    """
    kernels = [event for event in events if event.name != _WHOLE_WINDOW]
    rows = activities([schema.KERNEL], [kernels])
    values = (all_args(event).get(_DURATION) for event in kernels)
    took = ints([round(t) if isinstance(t, float) and 0 <= t < _MAX_NS else None for t in values])
    if not took.null_count:
        rows = set_column(rows, "end", pc.add(rows["start"], took))
    return rows.sort_by("start")


def with_launches(kernels: pa.Table, calls: pa.Table) -> pa.Table:
    """Tie measured kernels to their launches, the n-th to the n-th, if there are as many.

    Each ran within its launch, as often as its counters took: it begins there.
    """
    launches = calls.filter(pa.array(named_calls(calls, _LAUNCHES))).sort_by("start")
    devices = pc.count_distinct(kernels["device"]).as_py()
    if launches.num_rows != kernels.num_rows or devices > 1:
        return kernels
    end = pc.add(launches["start"], pc.subtract(kernels["end"], kernels["start"]))
    kernels = set_column(kernels, "corr", launches["corr"])
    if pc.all(pc.less_equal(end[:-1], launches["start"][1:])).as_py() is not False:
        kernels = set_column(set_column(kernels, "start", launches["start"]), "end", end)
    return kernels


_MAX_NS = 10**15
"""Longer than any kernel."""


def _work_names(kind: Int64Array, names: Names) -> dict[str, pa.DictionaryArray]:
    """Return the names of GPU work; copies and fills are named as other profilers do."""
    pairs, number = np.unique(kind * len(names.values) + names.number, return_inverse=True)
    named = [divmod(pair, len(names.values)) for pair in pairs.tolist()]
    original = [None if kind == schema.KERNEL else names.values[name] for kind, name in named]
    spelt = [
        names.values[name] if said is None else transfer_name(kind, said)
        for (kind, name), said in zip(named, original, strict=True)
    ]
    return {
        column: pa.array(texts, pa.string()).dictionary_encode().take(pa.array(number))
        for column, texts in (("name", spelt), ("original_name", original))
    }


def node_ids(args: list[WorkArgs]) -> pa.Array:
    """Return node ids as `graph_id << 32 | node_id`.

    Some writers store the two halves as separate fields.
    """
    node_id = ints([a.node_id for a in args])
    if node_id.null_count == len(node_id):
        return node_id
    graph = ints([a.graph_id for a in args])
    packed = pa.compute.add(pa.compute.multiply(graph, 1 << 32), node_id)
    fits = pa.compute.and_(pa.compute.less(graph, 1 << 31), pa.compute.greater(graph, 0))
    alone = pa.compute.and_(fits, pa.compute.less(node_id, 1 << 32))
    node_id = pa.compute.if_else(pa.compute.fill_null(alone, fill_value=False), packed, node_id)
    return pa.compute.if_else(pa.compute.greater(node_id, 0), node_id, None)


def _three_sizes(args: Sequence[WorkArgs | CallArgs]) -> dict[str, pa.Array]:
    """Build the columns of grid and block."""
    columns = {}
    for key in ("grid", "block"):
        number, pieces = number_distinct([getattr(a, key) for a in args])
        values = [None if piece == NO_JSON else loads(piece) for piece in pieces]
        sizes = [[*(value if isinstance(value, list) else ()), *[None] * 3] for value in values]
        for axis, letter in enumerate("xyz"):
            column = ints([size[axis] for size in sizes], pa.int32())
            columns[f"{key}_{letter}"] = column.take(pa.array(number))
    return columns


def calls(called: Timed, threads: Threads) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Build the rows of runtime or driver calls, and what else they record.

    The other tables are those of `_launch_sizes` and `_read_launched`.
    """
    args = CALLS.read(called.events)
    names = named(called.events)
    start = called.start
    columns = {
        "start": start,
        "end": start + np.asarray(times([e.dur for e in called.events]).fill_null(0)),
        "thread": threads.rows(called.events),
        "corr": correlations(args),
        "name": texts_by_index(names.number, names.values),
    }
    in_threads = np.array([name in _IN_THREADS for name in names.values], bool)[names.number]
    table = schema.table(schema.CALLS, columns)
    return table, _launch_sizes(args, in_threads), _read_launched(args, in_threads)


def _read_launched(args: list[CallArgs], in_threads: Mask) -> pa.Table:
    """Return what AMD's calls record about the kernels that they launch, a row per call.

    Columns: name, grid, block, smem, all null for calls that record nothing.
    """
    if all(a.kernel is UNSET for a in args):
        return schema.table(LAUNCHED, {}, len(args))
    columns = _three_sizes(args)
    for axis in "xyz":
        block = columns[f"block_{axis}"]
        counted = pa.compute.and_kleene(pa.array(in_threads), pa.compute.greater(block, 0))
        threads = pa.compute.if_else(pa.compute.fill_null(counted, fill_value=False), block, 1)
        columns[f"grid_{axis}"] = pa.compute.divide(columns[f"grid_{axis}"], threads)
    names = [a.kernel for a in args]
    return schema.table(
        LAUNCHED,
        {
            **columns,
            "name": [name if isinstance(name, str) and name else None for name in names],
            "smem": ints([_or_none(a.smem) for a in args]),
        },
    )


LAUNCHED = pa.schema(list(schema.CAPTURED_LAUNCHES)[4:])
"""What a call records about the kernel that it launches."""


def correlations(args: Sequence[WorkArgs | CallArgs]) -> pa.Array:
    """Return correlation ids; the profiler writes 0 for none."""
    ids = ints([a.connection if a.correlation is None else a.correlation for a in args])
    return pa.compute.if_else(pa.compute.equal(ids, 0), None, ids)


def _launch_sizes(args: list[CallArgs], in_threads: Mask) -> pa.Table:
    """Return what AMD's calls record about the work that they launch, which itself lacks it.

    Columns: corr, smem (bytes), in_threads (the grid is given in threads, not in blocks), bytes (of
    a copy or fill).
    """
    described = np.fromiter(
        (
            a.smem is not UNSET
            or a.bytes is not UNSET
            or a.size is not UNSET
            or a.size_bytes is not UNSET
            for a in args
        ),
        bool,
        len(args),
    )
    args = [*compress(args, described.tolist())]
    return pa.table(
        {
            "corr": correlations(args),
            "smem": ints([_or_none(a.smem) for a in args]),
            "in_threads": pa.array(in_threads[described]),
            "bytes": ints(_sizes(args)),
        }
    )


def _sizes(args: Sequence[WorkArgs | CallArgs]) -> list[object]:
    """Return the bytes of copies and fills, under whichever name; None for other work."""
    named = ((a.bytes, a.size, a.size_bytes) for a in args)
    return [next((size for size in sizes if size is not UNSET), None) for sizes in named]


def _or_none(value: object) -> object:
    return None if value is UNSET else value


def with_launch_sizes(activities: pa.Table, sizes: pa.Table) -> pa.Table:
    """Fill in shared memory and bytes of copies and fills; convert each grid to blocks."""
    index = first_index(integers(sizes["corr"]), integers(activities["corr"], _NO_CALL))
    smem, size = (sizes[name].combine_chunks().take(or_null(index)) for name in ("smem", "bytes"))
    moves = pa.compute.is_in(
        activities["kind"], pa.array((schema.MEMCPY, schema.MEMSET), pa.int8())
    ).combine_chunks()
    columns = {
        "smem": pa.compute.coalesce(activities["smem"].combine_chunks(), smem),
        "bytes": pa.compute.coalesce(
            activities["bytes"].combine_chunks(), pa.compute.if_else(moves, size, None)
        ),
    }
    in_threads = pa.array(np.append(sizes["in_threads"].to_numpy(), [False])[index])
    for axis in "xyz":
        grid, block = (activities[f"{name}_{axis}"].combine_chunks() for name in ("grid", "block"))
        countable = pa.compute.and_kleene(in_threads, pa.compute.greater(block, 0))
        columns[f"grid_{axis}"] = pa.compute.divide(grid, pa.compute.if_else(countable, block, 1))
    for name, column in columns.items():
        activities = set_column(activities, name, column)
    return activities


def launching_process(
    activities: pa.Table, calls: pa.Table, threads: Threads, host: int | None
) -> pa.Array:
    """Return the process whose call launched each activity, else the only process there is.

    Null if calls of several processes have its correlation id, as in merged traces of ranks.
    The process in an activity's own event is the device. `host` is the process that the trace
    describes, for a trace without events of any.
    """
    processes = np.array([pid for pid, _ in threads.ids], dtype=np.int64)
    if len(set(processes)) <= 1:
        only = processes[0] if len(processes) else host
        return pa.repeat(pa.scalar(only, pa.int64()), activities.num_rows)
    callers = processes[calls["thread"].to_numpy()]
    values, counts = np.unique(callers if len(callers) else processes, return_counts=True)
    ours, theirs = integers(calls["corr"]), integers(activities["corr"], _NO_CALL)
    process = np.append(callers, values[counts.argmax()])[first_index(ours, theirs)]
    ids_of_each = [np.unique(ours[callers == each]) for each in values]
    ids, processes_using = np.unique(np.concatenate(ids_of_each), return_counts=True)
    return pa.array(process, mask=np.isin(theirs, ids[processes_using > 1]))


_NO_CALL = -2
"""Stands for the correlation id of work that has none; no call has it."""


_COLLECTIVE = {
    "name": ("Collective name",),
    "group": ("Process Group Name", "Process Group ID"),  # the first since torch 2.3
    "description": ("Process Group Description",),
    "ranks": ("Process Group Ranks",),
    "size": ("Group size",),
    "dtype": ("dtype",),
    "in": ("In msg nelems",),
    "out": ("Out msg nelems",),
}
"""Where Kineto keeps what `schema.COLLECTIVE` lists."""


def _collective(args: dict[str, Any]) -> str:
    described = {
        key: next((args[name] for name in names if name in args), None)
        for key, names in _COLLECTIVE.items()
    }
    for key in ("group", "ranks"):  # numbers and lists in some versions, texts in others
        described[key] = None if described[key] is None else str(described[key])
    plain = {key: value for key, value in described.items() if isinstance(value, (str, int, float))}
    return orjson.dumps(plain).decode()


def _fill_missing(values: list[Any], others: Iterable[Any]) -> list[Any]:
    if None not in values:
        return values
    return [b if a is None else a for a, b in zip(values, others, strict=True)]
