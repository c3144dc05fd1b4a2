"""Advice on memory allocations and copies that hold work up."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.advice.registry import rule
from pyprof.analysis.advice.rule_context import idle_for
from pyprof.analysis.advice.scope import GPU, TIMES
from pyprof.analysis.time import host_api
from pyprof.analysis.time.host_api import ALLOC, COPY
from pyprof.analysis.time.intervals import union_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyprof.analysis.advice.finding import Advice
    from pyprof.analysis.advice.rule_context import RuleContext
    from pyprof.analysis.time.intervals import Intervals
    from pyprof.arrays import Mask
    from pyprof.records.records import Records


@rule(
    "the GPU had work meanwhile",
    about="idle time",
    needs=(GPU, TIMES),
)
def allocation(context: RuleContext) -> Advice | None:
    """Find gaps in which the host allocated or freed GPU memory; the evidence is what came next."""
    _, rows, idle_ns = idle_for(context, ALLOC)
    return context.advice(
        "allocation",
        "the GPU waits for memory to be allocated or freed",
        "capture after warm-up; if it persists, keep shapes constant, avoid empty_cache(), and"
        " set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        rows,
        context.most(rows, idle_ns),
        weight=idle_ns,
        elsewhere="allocate once, before the loop, and use it again, or take a memory pool"
        " (cudaMallocAsync)",
    )


@rule(
    "the GPU had work meanwhile",
    about="idle time",
    needs=(GPU, TIMES),
)
def blocking_copies(context: RuleContext) -> Advice | None:
    """Find gaps in which a copy's call had not returned; the evidence is what came next.

    While the copies themselves run, there is no gap: `pageable_copies` covers that time.
    """
    _, rows, idle_ns = idle_for(context, COPY)
    return context.advice(
        "blocking_copies",
        "the GPU waits while a copy holds up the host",
        "copy rarely, in large pieces, and with non_blocking=True from pinned memory; keep on the"
        " GPU what is used again",
        rows,
        context.most(rows, idle_ns),
        weight=idle_ns,
        elsewhere="copy rarely, in large pieces, asynchronously from pinned memory; keep on the"
        " GPU what is used again",
    )


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
    needs=(GPU, TIMES),
)
def pageable_copies(context: RuleContext) -> Advice | None:
    """Find large copies whose call blocked for most of the copy's time: they could be hidden."""
    if context.timeline is None or context.timeline.blocking:
        return None
    records = context.table.records
    rows = np.flatnonzero(_large_host_copies(context) & (_blocked_share(records) > _MAX_BLOCKED))
    return context.advice(
        "pageable_copies",
        "copies between host and GPU block the host: pageable memory, or blocking calls",
        "create or load the weights on the GPU itself: with torch.device('cuda'):"
        if context.once
        else "use pin_memory=True in the DataLoader and .to(device, non_blocking=True)",
        rows,
        _most_alone(context, rows),
        elsewhere="make the data on the GPU itself"
        if context.once
        else "copy from pinned memory, asynchronously, on a stream of its own",
    )


@rule(
    "the call blocks the host, which pageable_copies tells, or is unknown",
    "something is computed meanwhile",
    "it took no time worth hiding, as a few bytes of .item()",
    about="copies",
    needs=(GPU, TIMES),
)
def exposed_copies(context: RuleContext) -> Advice | None:
    """Find asynchronous copies between host and GPU while the GPU does nothing else."""
    if context.timeline is None or context.timeline.blocking:
        return None
    records = context.table.records
    called, _ = host_api.launches(records)
    free = (called >= 0) & (_blocked_share(records) <= _MAX_BLOCKED)
    rows = np.flatnonzero(_large_host_copies(context) & free)
    alone_ns = _alone(context, rows)
    rows, alone_ns = rows[alone_ns > 0], alone_ns[alone_ns > 0]
    return context.advice(
        "exposed_copies",
        "asynchronous copies between host and GPU run while nothing is computed",
        "copy the next batch on a stream of its own while this one is computed (prefetch), and keep"
        " on the GPU what is used again; copy smaller types (uint8, float16)",
        rows,
        _most_alone(context, rows),
        weight=alone_ns,
    )


@rule(
    "copies that a call asked for",
    "pages fetched ahead of the kernels, while nothing else ran that could wait for them",
    about="copies",
    needs=(GPU, TIMES),
)
def unified_memory(context: RuleContext) -> Advice | None:
    """Find pages of unified memory that move while a kernel runs, which waits for them."""
    if context.timeline is None or context.timeline.blocking:
        return None
    rows = np.flatnonzero(context.copies(_MIGRATION))
    waited_ns = context.ns[rows] - _alone(context, rows)
    rows, waited_ns = rows[waited_ns > 0], waited_ns[waited_ns > 0]
    return context.advice(
        "unified_memory",
        "pages of unified memory move while kernels run and wait for them",
        "allocate on the GPU what it uses repeatedly, or fetch it ahead (cudaMemPrefetchAsync)",
        rows,
        context.most(rows, waited_ns),
        weight=waited_ns,
    )


_MIGRATION = re.compile("Unified Memory")
_HOST_AND_GPU = re.compile(r"HtoD|DtoH|Pageable|HostToDevice|DeviceToHost")


def _large_host_copies(context: RuleContext) -> Mask:
    large = context.table.records.numpy("bytes") > _STAGED_BYTES
    return context.copies(_HOST_AND_GPU) & large


def _blocked_share(records: Records) -> np.ndarray:
    """The share of each row's time during which the launching call had not returned."""
    called, returned = host_api.launches(records)
    start, end = records.numpy("start"), records.numpy("end")
    both = np.minimum(returned, end) - np.maximum(called, start)
    share: np.ndarray = both / np.maximum(end - start, 1)
    return share


def _alone(context: RuleContext, rows: np.ndarray) -> np.ndarray:
    """How long each copy ran while its GPU did nothing else."""
    start, end = (context.table.records.numpy(name)[rows] for name in ("start", "end"))
    alone_ns = np.zeros(len(rows))
    for here, alone in _on_devices(context, rows):
        alone_ns[here] = alone.length_within(start[here], end[here])
    return alone_ns


def _most_alone(context: RuleContext, rows: np.ndarray) -> int:
    """How long any of some copies ran alone, on the GPU where that is longest."""
    start, end = (context.table.records.numpy(name)[rows] for name in ("start", "end"))
    return max(
        (
            (alone & union_of(start[here], end[here])).total
            for here, alone in _on_devices(context, rows)
        ),
        default=0,
    )


def _on_devices(context: RuleContext, rows: np.ndarray) -> Iterator[tuple[Mask, Intervals]]:
    """Each GPU's rows among these, and when it did nothing but copy."""
    pid, number = (context.table.records.numpy(name)[rows] for name in ("pid", "device"))
    for device in context.devices:
        alone = device.copy - device.compute - device.communication
        yield (pid == device.pid) & (number == device.device), context.inside(alone)
