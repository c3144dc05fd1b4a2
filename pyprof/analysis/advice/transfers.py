"""Advice on copies and collectives: those that hold work up, and those that could be hidden."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.advice.registry import GPU, NODES, TIMES, rule
from pyprof.analysis.advice.rule_context import is_most
from pyprof.analysis.ranks.collective_kinds import kinds_and_groups
from pyprof.analysis.ranks.parallelism import CONTEXT, TENSOR, group_role
from pyprof.analysis.time.intervals import union_of
from pyprof.analysis.time.timeline import COMMUNICATION, activity_classes
from pyprof.ops.torch.collectives import (
    ALL_GATHER,
    ALL_REDUCE,
    BARRIER,
    FUNCTIONAL,
    FUNCTIONAL_OPS,
    REDUCE_SCATTER,
    SEND_RECV,
)
from pyprof.ops.torch.collectives import kind as collective_kind
from pyprof.parse.launches import launch_bounds
from pyprof.records.records import number_combinations

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from pyprof.analysis.advice.finding import Advice
    from pyprof.analysis.advice.rule_context import RuleContext
    from pyprof.analysis.time.intervals import Intervals
    from pyprof.analysis.time.timeline import DeviceTime
    from pyprof.arrays import Int64Array, Mask
    from pyprof.marker import Call
    from pyprof.records.records import Records

_STAGED_BYTES = 65536
"""Up to this, CUDA stages a pageable copy and returns at once (CUDA API reference, "API
synchronization behavior"). The few bytes of `.item()` are below it, too."""
_MAX_BLOCKED = 0.5
"""Maximum share of a copy's time during which its call may block the host: from pinned memory, the
call returns within microseconds, while the copy goes on."""


@rule(
    "the call returns at once, as with pinned memory",
    "a few bytes, as of .item()",
    about="copies",
    needs=(GPU, NODES, TIMES),
)
def pageable_copies(context: RuleContext) -> Advice | None:
    """Find large copies whose call blocked for most of the copy's time: they could be hidden."""
    records = context.table.records
    rows = np.flatnonzero(_large_host_copies(context) & (_blocked_share(records) > _MAX_BLOCKED))
    elsewhere = "copy from or to pinned memory, asynchronously, on a stream of its own"
    if is_most(context.ns[rows], context.copies(TO_HOST)[rows]):  # such as .cpu()
        action = _KEEP_RESULTS
    elif context.once:
        action = "create or load the weights on the GPU itself: with torch.device('cuda')"
        elsewhere = "make the data on the GPU itself"
    else:
        action = "use pin_memory=True in the DataLoader and .to(device, non_blocking=True)"
    return context.advice(
        "copies between host and GPU block the host: pageable memory, or blocking calls",
        action,
        rows,
        _time_alone(context, rows)[1],
        elsewhere=elsewhere,
    )


@rule(
    "the call blocks the host, which pageable_copies reports, or is unknown",
    "something is computed meanwhile",
    "it took no time worth hiding, as a few bytes of .item()",
    about="copies",
    needs=(GPU, NODES, TIMES),
)
def exposed_copies(context: RuleContext) -> Advice | None:
    """Find asynchronous copies between host and GPU while the GPU does nothing else."""
    records = context.table.records
    called, _ = launch_bounds(records)
    free = (called >= 0) & (_blocked_share(records) <= _MAX_BLOCKED)
    rows = np.flatnonzero(_large_host_copies(context) & free)
    alone_ns, most = _time_alone(context, rows)
    rows, alone_ns = rows[alone_ns > 0], alone_ns[alone_ns > 0]
    return context.advice(
        "asynchronous copies between host and GPU run while nothing is computed",
        _KEEP_RESULTS
        if is_most(context.ns[rows], context.copies(TO_HOST)[rows])
        else "copy the next batch on a stream of its own while this one is computed (prefetch), and"
        " keep on the GPU what is used again; copy smaller types (uint8, float16)",
        rows,
        most,
        weight=alone_ns,
    )


_KEEP_RESULTS = (
    "keep results on the GPU, or make them small there (argmax, sum) before .cpu(); or copy them to"
    " pinned memory, on a stream of its own while the next batch is computed"
)


@rule(
    "copies that a call asked for",
    "pages fetched ahead of the kernels, while nothing else ran that could wait for them",
    about="copies",
    needs=(GPU, NODES, TIMES),
)
def unified_memory(context: RuleContext) -> Advice | None:
    """Find pages of unified memory that move while a kernel runs, which waits for them."""
    rows = np.flatnonzero(context.copies(_MIGRATION))
    waited_ns = context.ns[rows] - _time_alone(context, rows)[0]
    rows, waited_ns = rows[waited_ns > 0], waited_ns[waited_ns > 0]
    return context.advice(
        "pages of unified memory move while kernels run and wait for them",
        "allocate on the GPU what it uses repeatedly, or fetch it ahead (cudaMemPrefetchAsync)",
        rows,
        wasted_ns=waited_ns,
    )


_MIGRATION = re.compile("Unified Memory")
TO_HOST = re.compile(r"DtoH|DeviceToHost")
_HOST_AND_GPU = re.compile(r"HtoD|DtoH|Pageable|HostToDevice|DeviceToHost")


def _large_host_copies(context: RuleContext) -> Mask:
    large = context.table.records.numpy("bytes") > _STAGED_BYTES
    return context.copies(_HOST_AND_GPU) & large


def _blocked_share(records: Records) -> NDArray[np.float64]:
    """The share of each row's time during which the launching call had not returned."""
    called, returned = launch_bounds(records)
    start, end = records.numpy("start"), records.numpy("end")
    both = np.minimum(returned, end) - np.maximum(called, start)
    return np.asarray(both / np.maximum(end - start, 1))


def _time_alone(context: RuleContext, rows: Int64Array) -> tuple[NDArray[np.float64], int]:
    """How long each copy ran while its GPU did nothing else, and any on the busiest GPU."""
    return _time_within(context, rows, lambda device: device.exposed_copy)


def _time_within(
    context: RuleContext, rows: Int64Array, part_of: Callable[[DeviceTime], Intervals]
) -> tuple[NDArray[np.float64], int]:
    """Return how long each row ran within a part of its device's time, and any on the busiest."""
    start, end, pid, number = (
        context.table.records.numpy(name)[rows] for name in ("start", "end", "pid", "device")
    )
    ns, most = np.zeros(len(rows)), 0
    for device in (*context.devices, *context.cpus):
        here = (pid == device.pid) & (number == device.device)
        part = context.inside(part_of(device))
        ns[here] = part.length_within(start[here], end[here])
        most = max(most, (part & union_of(start[here], end[here])).total)
    return ns, most


@rule("something is computed meanwhile", about="communication", needs=(NODES, TIMES))
def communication(context: RuleContext) -> Advice | None:
    """Find communication during which nothing was computed; at best other work could hide it."""
    communicates = activity_classes(context.table.records) == COMMUNICATION
    rows = np.flatnonzero(context.chosen & communicates)
    exposed, _ = _time_within(context, rows, lambda device: device.exposed_communication)
    some = exposed > 0
    most = 0
    for device in (*context.devices, *context.cpus):  # at most the time without any
        hidden, rest = device.exposed_communication, device.span - device.communication
        most = max(most, min(context.inside(hidden).total, context.inside(rest).total))
    action = "start collectives earlier, on a stream of their own"
    if context.of_pytorch:
        action = _name_action(context, rows[some], exposed[some])
    advice = context.advice(
        "communication is not overlapped with computation",
        f"{action}; if ranks differ, this time is spent waiting for the slowest",
        rows[some],
        most,
        weight=exposed[some],
    )
    waits = "pyprof ranks shows for whom the others wait, which is most of this time"
    return advice and replace(advice, if_ranks_wait=f"{waits}; {action}")


def _name_action(context: RuleContext, rows: Int64Array, exposed_ns: NDArray[np.float64]) -> str:
    """Say what would hide these collectives, or spare them if most of the time is at barriers."""
    is_barrier = context.call_matches(lambda call: collective_kind(call.op) == BARRIER)
    if is_most(exposed_ns, is_barrier[rows]):
        return "leave out barriers that nothing needs"
    records = context.table.records
    stream = number_combinations(*(records.numpy(each) for each in ("pid", "device", "stream")))
    computes = activity_classes(records) != COMMUNICATION
    shared = np.isin(stream[rows], stream[computes]).any()
    apart = ", on a stream of their own" if context.devices and shared else ""
    ways = _name_ways(context, rows, exposed_ns)
    earlier = f" ({ways}){apart}" if ways else f"{apart}, or compute more of the batch meanwhile"
    return f"start collectives earlier{earlier}"


_WAYS = {
    ALL_REDUCE: "DDP bucket_cap_mb",
    ALL_GATHER: "FSDP prefetch",
    REDUCE_SCATTER: "FSDP prefetch",
    SEND_RECV: "more micro-batches of a pipeline",
}
"""What starts a kind of collective earlier, unless a layer needs its result at once: with tensor or
context parallelism, or in a program that only infers, where no gradients are reduced."""
_MIN_OF_WAYS = 0.1
"""Minimum share of exposed communication for advice on how to start it earlier."""


def _name_ways(context: RuleContext, rows: Int64Array, exposed_ns: NDArray[np.float64]) -> str:
    """Name what starts most of these collectives earlier; all ways if no kind is known, or ""."""
    infers = context.is_one("dir", "fprop").any() and not context.trains
    ns_by_way: dict[str, float] = defaultdict(float)
    with_way_ns = 0.0
    collectives = kinds_and_groups(context.table.records.take(rows))
    in_python = context.call_matches(_is_called_in_python)[rows].tolist()
    for (kind, group), ns, called in zip(collectives, exposed_ns.tolist(), in_python, strict=True):
        in_layers = group_role(group, None, {kind}).name in (TENSOR, CONTEXT)
        if called or in_layers or (kind == ALL_REDUCE and infers) or kind not in {None, *_WAYS}:
            continue
        with_way_ns += ns
        for way in {*_WAYS.values()} if kind is None else [_WAYS[kind]]:
            ns_by_way[way] += ns
    if 2 * with_way_ns < exposed_ns.sum():
        return ""
    least = _MIN_OF_WAYS * exposed_ns.sum()
    return ", ".join(way for way in dict.fromkeys(_WAYS.values()) if ns_by_way[way] > least)


_OF_PYTHON = frozenset({"all_reduce", "all_gather", "reduce_scatter"})
"""Calls of a script: DDP reduces from C++, FSDP gathers one tensor."""


def _is_called_in_python(call: Call) -> bool:
    """Whether a script or tensor parallelism calls it; the latter's collectives are functional."""
    of_script = call.mod == "torch.distributed" and call.op in _OF_PYTHON
    return of_script or call.mod in (FUNCTIONAL, FUNCTIONAL_OPS)
