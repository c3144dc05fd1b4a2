"""Advice on calls of the GPU's API: allocations, copies, launches, waits, kernels being loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof import schema
from pyprof.analysis.advice.registry import GPU, TIMES, rule
from pyprof.analysis.advice.rule_context import idle_for
from pyprof.analysis.advice.transfers import TO_HOST
from pyprof.analysis.time.cpu_idle import text_matches
from pyprof.analysis.time.host_api import ALLOC, COPY, LAUNCH, LOAD, SYNC
from pyprof.arrays import ints
from pyprof.parse.launches import launch_bounds
from pyprof.records.records import distinct

if TYPE_CHECKING:
    from pyprof.analysis.advice.finding import Advice
    from pyprof.analysis.advice.rule_context import RuleContext
    from pyprof.arrays import Int64Array, Mask
    from pyprof.schema import Capture


@rule("the GPU had work meanwhile", about="idle time", needs=(GPU, TIMES))
def allocation(context: RuleContext) -> Advice | None:
    """Find gaps in which the host allocated or freed GPU memory; the evidence is what came next."""
    rows, idle_ns = idle_for(context, ALLOC)
    every, own = _steps_of(context, rows)
    # in several steps, also in the second half of all: not in warm-up alone
    goes_on = len(own) >= _SEVERAL and own[-1] >= np.median(every)
    allocator = _ALLOCATORS.get(context.torch_device)
    setting = f", and set {allocator}=expandable_segments:True" if allocator else ""
    return context.advice(
        "the GPU waits for memory to be allocated or freed",
        f"{'' if goes_on else 'capture after warm-up; if it persists, '}keep shapes constant, avoid"
        f" empty_cache(){setting}",
        rows,
        wasted_ns=idle_ns,
        elsewhere="allocate once, before the loop, and use it again, or take a memory pool"
        " (cudaMallocAsync)",
    )


_ALLOCATORS = {"cuda": "PYTORCH_CUDA_ALLOC_CONF", "npu": "PYTORCH_NPU_ALLOC_CONF"}
"""The setting of torch's allocator for a kind of device, where it has expandable segments."""


def recurs(context: RuleContext, rows: Int64Array) -> bool:
    """Whether rows lie in most of several steps, and so are not warm-up."""
    all_steps, own = _steps_of(context, rows)
    return len(own) >= _SEVERAL and len(own) > len(all_steps) / 2


def _steps_of(context: RuleContext, rows: Int64Array) -> tuple[Int64Array, Int64Array]:
    """The steps that count, and those of some rows; none of what happens once."""
    if context.once or context.table.steps is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    step = context.table.steps.of_row
    every, own = (np.unique(part[part >= 0]) for part in (step[context.chosen], step[rows]))
    return every, own


_SEVERAL = 3
"""With this many steps, a capture is no longer all warm-up."""


@rule("the GPU had work meanwhile", about="idle time", needs=(GPU, TIMES))
def blocking_copies(context: RuleContext) -> Advice | None:
    """Find gaps in which a copy's call had not returned; the evidence is what came next.

    While the copies themselves run, there is no gap: `pageable_copies` covers that time.
    """
    rows, idle_ns = idle_for(context, COPY)
    return context.advice(
        "the GPU waits while a copy holds up the host",
        "copy rarely, in large pieces, and with non_blocking=True from pinned memory; keep on the"
        " GPU what is used again",
        rows,
        wasted_ns=idle_ns,
        elsewhere="copy rarely, in large pieces, asynchronously from pinned memory; keep on the"
        " GPU what is used again",
    )


@rule(
    "what came late is the replay of a CUDA graph",
    "the host was loading data",
    about="idle time",
    needs=(GPU, TIMES),
)
def launch_bound(context: RuleContext) -> Advice | None:
    """Find gaps in which the host was launching or dispatching; the evidence is what came late."""
    rows, idle_ns = idle_for(context, LAUNCH)
    eager = ~_mark_replayed(context)[rows]
    rows, idle_ns = rows[eager], idle_ns[eager]
    reads = recurs(context, np.flatnonzero(context.copies(TO_HOST)))
    outside = "; .item(), nonzero() and boolean masks must stay outside a graph" if reads else ""
    action = "CUDA graphs, torch.compile(mode='reduce-overhead'), larger batches or fused ops"
    elsewhere = "CUDA graphs, larger batches or fused kernels"
    if context.torch_device != "cuda":
        action, outside = "torch.compile, larger batches or fused ops", ""
        elsewhere = "larger batches or fused kernels"
    return context.advice(
        "the GPU waits for the host to launch short kernels",
        f"use {action}{outside}",
        rows,
        wasted_ns=idle_ns,
        elsewhere=f"use {elsewhere}",
    )


def _mark_replayed(context: RuleContext) -> Mask:
    """Mark work launched by replays of CUDA graphs: one call, often for many kernels."""
    called, _ = launch_bounds(context.table.records)
    number = distinct(called)[1]
    many = (called >= 0) & (np.bincount(number)[number] > 1)
    replay = context.kind(schema.GRAPH) | (context.table.records.numpy("replay") >= 0) | many
    if context.capture is None:
        return np.asarray(replay)
    return np.asarray(replay | np.isin(called, starts_of_calls(context.capture, "GraphLaunch")))


def starts_of_calls(capture: Capture, pattern: str) -> Int64Array:
    """Return when the API calls whose names match a pattern began."""
    named = capture.calls.filter(text_matches(capture.calls, "name", pattern))
    return ints(named.column("start"))


@rule("more work was queued when the wait ended", about="idle time", needs=(GPU, TIMES))
def synchronisation(context: RuleContext) -> Advice | None:
    """Find gaps after the host waited for the GPU; the evidence is what it waited for."""
    rows, idle_ns = idle_for(context, SYNC, before=True)
    return context.advice(
        "the host waits for the GPU, which then runs out of work",
        "keep .item(), .cpu(), print, nonzero(), boolean masks, comparisons of tensors and"
        " torch.cuda.synchronize() out of the step; below is the work that was waited for",
        rows,
        wasted_ns=idle_ns,
        elsewhere="keep waits for the GPU, and small copies from it, out of the loop; below is the"
        " work that was waited for",
    )


@rule(
    "the GPU had work meanwhile: the launch waited for room in its queue",
    "a copy, a fill or a graph took long, not a kernel's launch",
    about="idle time",
    needs=(GPU, TIMES),
)
def kernel_loading(context: RuleContext) -> Advice | None:
    """Find gaps in which kernels were loaded; the evidence is what was launched first."""
    rows, idle_ns = idle_for(context, LOAD)
    return context.advice(
        "single launches take over 1 ms: kernel loading, or the profiler writing",
        "these recur, so kernels are not being loaded: record less (shapes, stacks), and see with"
        " perf or py-spy what else takes the host's time"
        if recurs(context, rows)
        else "capture after warm-up, or look at later --steps: loading happens once",
        rows,
        wasted_ns=idle_ns,
    )
