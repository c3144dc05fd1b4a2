"""Advice on a host that does something other than launching: loads data, compiles, computes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.advice.api_calls import recurs, starts_of_calls
from pyprof.analysis.advice.cpu import MAKES_TENSORS, MAKES_VALUES, UNLESS_SERVING, of_calls
from pyprof.analysis.advice.finding import Advice
from pyprof.analysis.advice.registry import CAPTURE, GPU, TIMES, rule
from pyprof.analysis.advice.rule_context import idle_for, is_most
from pyprof.analysis.time.cpu_idle import compiles_again, longest_line
from pyprof.analysis.time.host_api import ALLOC, LOAD, SYNC
from pyprof.analysis.time.idle import DISPATCH_NS, HOST
from pyprof.analysis.time.intervals import longest, union, union_of
from pyprof.answers.parts import Finding
from pyprof.arrays import ints
from pyprof.gpu.kernel_roles import communicates
from pyprof.marker import plain_layer, unnumbered
from pyprof.ops.torch.collectives import BARRIER, SEND_RECV
from pyprof.ops.torch.collectives import kind as collective_kind

if TYPE_CHECKING:
    from pyprof.analysis.advice.rule_context import RuleContext
    from pyprof.analysis.time.intervals import Intervals
    from pyprof.analysis.time.timeline import DeviceTime
    from pyprof.arrays import Int64Array, Mask

_WITH_OWN_RULE = (SYNC, ALLOC, LOAD)
"""Causes that have a rule of their own."""


@rule(
    "the GPU had work meanwhile",
    "a file or an op is called so, not a range",
    about="data loading",
    needs=(TIMES, CAPTURE),
)
def data_loading(context: RuleContext) -> Advice | None:
    """Find ranges that name data loading, and how long the GPUs idled inside them.

    Their line is the dataset's or collate_fn's; else the line that ran after the longest wait.
    """
    devices = context.devices or context.cpus
    if context.capture is None or not devices:
        return None
    idle = [(_waiting_time(device), device.gaps) for device in devices]
    evidence, most = [], 0
    for name, (start, end) in context.loading_ranges.items():
        loading = union_of(start, end)
        waits = [(context.inside(waited & loading), gaps) for waited, gaps in idle]
        waited, gaps = max(waits, key=lambda wait: wait[0].total)
        if waited.total:
            last = gaps.row[waited.length_within(gaps.start, gaps.end).argmax()]
            line = longest_line(context.capture, start, end)
            evidence.append(
                Finding(
                    what=plain_layer(unnumbered(name)),
                    line=line or context.line.at(last),
                    count=int(np.count_nonzero(waited.length_within(start, end))),
                    time_ns=waited.total,
                )
            )
            most = max(most, waited.total)
    if not evidence:
        return None
    return Advice(
        title="the GPU waits for the next batch"
        if context.devices
        else "the loop waits for the next batch",
        action="use more DataLoader workers, persistent_workers=True, a larger prefetch_factor;"
        f" decode and augment ahead of time{' or on the GPU' if context.devices else ''}",
        gain_ns=most,
        evidence=tuple(sorted(evidence, key=lambda entry: -entry.time_ns)),
    )


def _waiting_time(device: DeviceTime) -> Intervals:
    """Return the time in which a range of data loading would hold the loop up.

    On a GPU, that is idle time, except for the causes in `_WITH_OWN_RULE`; on a CPU it is all the
    time, whether ops compute or not.
    """
    if device.on_cpu:
        return device.span
    return union(times for cause, times in device.idle.items() if cause not in _WITH_OWN_RULE)


@rule(
    "something runs meanwhile", "nothing is compiled", about="compilation", needs=(TIMES, CAPTURE)
)
def compilation(context: RuleContext) -> Advice | None:
    """Find the time in which nothing runs because torch.compile is at work; the longest counts."""
    devices = context.devices or context.cpus
    idle = (union(device.idle.values()) & context.compiling for device in devices)
    idle_ns = max((context.inside(each).total for each in idle), default=0)
    if context.capture is None or not idle_ns:
        return None
    compiling = context.inside(context.compiling)
    waits = "the GPU waits" if context.devices else "no op runs"
    return Advice(
        title=f"{waits} while torch.compile compiles",
        action="capture after warm-up"
        if context.once or compiles_again(context.capture) is False
        else "keep shapes and types the same, or torch.compile(dynamic=True); TORCH_LOGS=recompiles"
        " says why it compiles again; if it does so once, capture after warm-up",
        gain_ns=idle_ns,
        evidence=(
            Finding(
                what="torch.compile",
                line=longest_line(context.capture, compiling.start, compiling.end),
                count=len(compiling),
                time_ns=idle_ns,
            ),
        ),
    )


@rule(
    "the host was loading data, which data_loading reports",
    "torch.compile was at work, which compilation reports",
    "an op was at work on the CPU, which ops_on_cpu reports",
    "the host was launching",
    about="idle time",
    needs=(GPU, TIMES),
)
def host_work(context: RuleContext) -> Advice | None:
    """Find gaps in which the host neither launched nor waited; the evidence is what came next."""
    calls, some = context.calls, _mark_on_cpu(context)
    rows, idle_ns = idle_for(context, HOST, without=union_of(calls.start[some], calls.end[some]))
    first = ahead = ""
    made = np.isin(rows, _find_after(context, _MAKES_GRAPH))
    if is_most(idle_ns, made):
        first = ahead = (
            "keep sizes the same, or pad them to a few, so that CUDA graphs are made once and then"
            " replayed; "
            if recurs(context, rows[made])
            else "capture after warm-up, or look at later --steps: a CUDA graph is made meanwhile;"
            " if it goes on, "
        )
    elif is_most(idle_ns, np.isin(rows, _find_after(context, _LOADS_CODE))):
        first = ahead = (
            "capture after warm-up, or look at later --steps: code is compiled or loaded"
            " meanwhile; if it goes on, "
        )
    elif is_most(idle_ns, context.copies(_TO_DEVICE)[rows]):
        ahead = "" if context.trains else UNLESS_SERVING
        ahead += "prepare ahead what is copied to the GPU, on another thread, or make it there; "
        first = ahead.replace("on another thread", "as DataLoader workers do")
    elif context.table.steps is not None and any(context.table.steps.phases):  # a serving engine's
        first = ahead = UNLESS_SERVING
    return context.advice(
        "the GPU waits while the host does something other than launching",
        f"{first}a CPU profiler (py-spy, pyinstrument) shows what Python does while the GPU waits;"
        " the work below came late",
        rows,
        wasted_ns=idle_ns,
        elsewhere=f"{ahead}a CPU profiler (perf, or py-spy for Python) shows what the host does"
        " while the GPU waits; the work below came late",
    )


@rule(
    "the op calls the GPU's API, and so works on the GPU or waits for it",
    "the op makes tensors of numbers, or numbers of tensors, which python_values reports",
    "the op is short, or computes nothing, as a view or an empty tensor",
    "the op waits for other ranks, as a collective on the CPU",
    "a thread called it that launches nothing, beside the one that the GPU waits for",
    "the GPU had work meanwhile",
    about="idle time",
    needs=(GPU, TIMES, CAPTURE),
)
def ops_on_cpu(context: RuleContext) -> Advice | None:
    """Find gaps in which ops worked on the CPU, such as an optimizer whose state is there."""
    calls, chosen = context.calls, np.flatnonzero(_mark_on_cpu(context))
    start, end = calls.start[chosen], calls.end[chosen]
    inside = union_of(start, end)
    idle = longest(context.idle(device, HOST) & inside for device in context.devices)
    ns = idle.length_within(start, end)
    if not ns.any():
        return None
    return Advice(
        title="the GPU waits while ops compute on the CPU",
        action="keep their tensors on the GPU (device='cuda', optimizer states, too), or run them"
        " while the GPU has work",
        gain_ns=idle.total,
        evidence=of_calls(context, chosen[ns > 0], ns[ns > 0]),
    )


def _mark_on_cpu(context: RuleContext) -> Mask:
    """Mark long calls of ops by threads that launch work, during which no API is called."""
    calls = context.calls
    if context.capture is None or not len(context.capture.calls):
        return np.zeros(len(calls.name), bool)
    began = np.sort(ints(context.capture.calls.column("start")))
    called = np.searchsorted(began, calls.end) > np.searchsorted(began, calls.start)
    launches = np.isin(calls.thread, ints(context.capture.calls.column("thread")))
    waits = calls.name.matches(
        lambda op: communicates(op) or collective_kind(op) in (BARRIER, SEND_RECV)
    )
    elsewhere = waits | calls.name.is_in(*MAKES_TENSORS, *MAKES_VALUES)
    is_long = calls.end - calls.start > DISPATCH_NS
    return np.asarray(is_long & calls.computes & launches & ~called & ~elsewhere)


_TO_DEVICE = re.compile(r"HtoD|HostToDevice")
_LOADS_CODE = "(?:Module|Library)Load"
"""Within the names of calls that load compiled code: cuModuleLoadDataEx, hipModuleLoad."""
_MAKES_GRAPH = "GraphInstantiate"


def _find_after(context: RuleContext, calls: str) -> Int64Array:
    """Find the rows after gaps in which API calls of such names began."""
    nothing = np.zeros(0, np.int64)
    if context.capture is None:
        return nothing
    began = np.sort(starts_of_calls(context.capture, calls))
    gaps = [device.gaps for device in context.devices]
    some = [np.searchsorted(began, g.end) > np.searchsorted(began, g.start) for g in gaps]
    return np.concatenate([nothing, *(g.row[a] for g, a in zip(gaps, some, strict=True))])
