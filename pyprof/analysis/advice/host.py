"""Advice on the host: data loading, other work, launch overhead, waits, lazy loading."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.advice.case import idle_for
from pyprof.analysis.advice.finding import Advice, Evidence
from pyprof.analysis.advice.registry import rule
from pyprof.analysis.advice.scope import CAPTURE, GPU, TIMES
from pyprof.analysis.time.host_api import ALLOC, LAUNCH, LOAD, SYNC
from pyprof.analysis.time.idle import HOST
from pyprof.analysis.time.intervals import union, union_of
from pyprof.marker import plain_layer, unnumbered

if TYPE_CHECKING:
    from pyprof.analysis.advice.case import Case
    from pyprof.analysis.time.intervals import Intervals
    from pyprof.analysis.time.timeline import DeviceTime

_WITH_OWN_RULE = (SYNC, ALLOC, LOAD)
"""Causes that have a rule of their own."""


@rule(
    "the GPU had work meanwhile",
    "a file or an op is called so, not a range",
    about="data loading",
    needs=(TIMES, CAPTURE),
)
def data_loading(case: Case) -> Advice | None:
    """Find ranges that name data loading, and how long the GPUs idled inside them.

    Their line is that of what came next, after the longest wait.
    """
    devices = case.devices or case.cpus
    if case.capture is None or not devices:
        return None
    idle = [(_waiting(device), device.gaps) for device in devices]
    evidence, most = [], 0
    for name, loading in case.loading.items():
        waits = [(case.inside(waited & loading), gaps) for waited, gaps in idle]
        waited, gaps = max(waits, key=lambda wait: wait[0].total)
        if waited.total:
            longest = int(np.argmax(waited.length_within(gaps.start, gaps.end)))
            line = case.texts["line"][int(gaps.row[longest])].as_py()
            what = plain_layer(unnumbered(name))
            evidence.append(
                Evidence(
                    what=what, line=line, count=case.loadings(name, waited), total_ns=waited.total
                )
            )
            most = max(most, waited.total)
    if not evidence:
        return None
    return Advice(
        rule="data_loading",
        title="the GPU waits for the next batch"
        if case.devices
        else "the loop waits for the next batch",
        action="use more DataLoader workers, persistent_workers=True, a larger prefetch_factor;"
        f" decode and augment ahead of time{' or on the GPU' if case.devices else ''}",
        gain_ns=most,
        evidence=tuple(sorted(evidence, key=lambda entry: -entry.total_ns)),
        rows=np.zeros(0, np.int64),
    )


def _waiting(device: DeviceTime) -> Intervals:
    """Return when a range of data loading holds the loop up.

    A GPU must be idle. On a CPU any such range does, whether its ops compute or not.
    """
    if device.on_cpu:
        span = union_of(np.array([device.start_ns]), np.array([device.end_ns]))
        return span - device.paused
    return union(times for cause, times in device.idle.items() if cause not in _WITH_OWN_RULE)


@rule(
    "the host was loading data, which data_loading tells",
    "the host was launching",
    about="idle time",
    needs=(GPU, TIMES),
)
def host_work(case: Case) -> Advice | None:
    """Find gaps in which the host neither launched nor waited; the evidence is what came next."""
    _, rows, idle_ns = idle_for(case, HOST)
    return case.advice(
        "host_work",
        "the GPU waits while the host does something other than launching",
        "a CPU profiler (py-spy, pyinstrument) shows what Python does before the work below",
        rows,
        case.most(rows, idle_ns),
        weight=idle_ns,
    )


@rule(
    "what came late is the replay of a CUDA graph",
    "the host was loading data",
    about="idle time",
    needs=(GPU, TIMES),
)
def launch_bound(case: Case) -> Advice | None:
    """Find gaps in which the host was launching or dispatching; the evidence is what came late."""
    _, rows, idle_ns = idle_for(case, LAUNCH)
    eager = ~case.replays[rows]
    rows, idle_ns = rows[eager], idle_ns[eager]
    return case.advice(
        "launch_bound",
        "the GPU waits for the host to launch short kernels",
        "use CUDA graphs, torch.compile(mode='reduce-overhead'), larger batches or fused ops",
        rows,
        case.most(rows, idle_ns),
        weight=idle_ns,
    )


@rule(
    "more work was queued when the wait ended",
    about="idle time",
    needs=(GPU, TIMES),
)
def synchronisation(case: Case) -> Advice | None:
    """Find gaps after the host waited for the GPU; the evidence is what it waited for."""
    rows, _, idle_ns = idle_for(case, SYNC)
    return case.advice(
        "synchronisation",
        "the host waits for the GPU, which then runs out of work",
        "keep .item(), .cpu(), print and comparisons of tensors out of the step;"
        " below is the work that was waited for",
        rows,
        case.most(rows, idle_ns),
        weight=idle_ns,
    )


@rule(
    "the GPU had work meanwhile: the launch waited for room in its queue",
    "a copy, a fill or a graph took long, not a kernel's launch",
    about="idle time",
    needs=(GPU, TIMES),
)
def kernel_loading(case: Case) -> Advice | None:
    """Find gaps in which kernels were loaded; the evidence is what was launched first."""
    _, rows, idle_ns = idle_for(case, LOAD)
    return case.advice(
        "kernel_loading",
        "single launches take over 1 ms: kernel loading, or the profiler writing",
        "they disappear after warm-up: capture later, or look at later --steps",
        rows,
        case.most(rows, idle_ns),
        weight=idle_ns,
    )
