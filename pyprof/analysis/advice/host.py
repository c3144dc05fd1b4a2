"""Advice on the host: data loading, other work, allocations, launches, waits, lazy loading."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from pyprof import schema
from pyprof.analysis.advice.cpu import MAKES_TENSORS, MAKES_VALUES, of_calls
from pyprof.analysis.advice.finding import Advice
from pyprof.analysis.advice.registry import CAPTURE, GPU, TIMES, rule
from pyprof.analysis.advice.rule_context import idle_for
from pyprof.analysis.advice.transfers import TO_HOST
from pyprof.analysis.time.cpu_idle import compiles_again, longest_line
from pyprof.analysis.time.host_api import ALLOC, COPY, LAUNCH, LOAD, SYNC
from pyprof.analysis.time.idle import DISPATCH_NS, HOST, PEER, QUEUE
from pyprof.analysis.time.intervals import EMPTY, union, union_of
from pyprof.answers.parts import Finding
from pyprof.arrays import ints
from pyprof.gpu.kernel_roles import communicates
from pyprof.marker import plain_layer, unnumbered
from pyprof.ops.torch.collectives import BARRIER, SEND_RECV
from pyprof.ops.torch.collectives import kind as collective_kind
from pyprof.parse.launches import launch_bounds
from pyprof.parse.ranges.texts import map_texts
from pyprof.records.records import distinct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pyprof.analysis.advice.rule_context import RuleContext
    from pyprof.analysis.time.intervals import Intervals
    from pyprof.analysis.time.timeline import DeviceTime
    from pyprof.arrays import Int64Array, Mask
    from pyprof.schema import Capture

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
            longest = int(np.argmax(waited.length_within(gaps.start, gaps.end)))
            line = longest_line(context.capture, start, end)
            evidence.append(
                Finding(
                    what=plain_layer(unnumbered(name)),
                    line=line or context.line.at(gaps.row[longest]),
                    detail="",
                    count=int(np.count_nonzero(waited.length_within(start, end))),
                    time_ns=waited.total,
                    row_ids=(),
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
        rows=np.zeros(0, np.int64),
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
    "something runs meanwhile",
    "nothing is compiled",
    about="compilation",
    needs=(TIMES, CAPTURE),
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
                detail="",
                count=len(compiling),
                time_ns=idle_ns,
                row_ids=(),
            ),
        ),
        rows=np.zeros(0, np.int64),
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
    if _mainly(idle_ns, made):
        first = ahead = (
            "keep sizes the same, or pad them to a few, so that CUDA graphs are made once and then"
            " replayed; "
            if _recurs(context, rows[made])
            else "capture after warm-up, or look at later --steps: a CUDA graph is made meanwhile;"
            " if it goes on, "
        )
    elif _mainly(idle_ns, np.isin(rows, _find_after(context, _LOADS_CODE))):
        first = ahead = (
            "capture after warm-up, or look at later --steps: code is compiled or loaded"
            " meanwhile; if it goes on, "
        )
    elif _mainly(idle_ns, context.copies(_TO_DEVICE)[rows]):
        ahead = "prepare ahead what is copied to the GPU, on another thread, or make it there; "
        first = ahead.replace("on another thread", "as DataLoader workers do")
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
    idle = [context.idle(device, HOST) & union_of(start, end) for device in context.devices]
    longest = max(idle, key=lambda each: each.total, default=EMPTY)
    ns = longest.length_within(start, end)
    if not ns.any():
        return None
    return Advice(
        title="the GPU waits while ops compute on the CPU",
        action="keep their tensors on the GPU (device='cuda', optimizer states, too), or run them"
        " while the GPU has work",
        gain_ns=longest.total,
        evidence=of_calls(context, chosen[ns > 0], ns[ns > 0]),
        rows=np.zeros(0, np.int64),
    )


def _mark_on_cpu(context: RuleContext) -> Mask:
    """Mark long calls of ops by threads that launch work, during which no API is called."""
    calls = context.calls
    if context.capture is None or not len(context.capture.calls):
        return np.zeros(len(calls.name), bool)
    began = np.sort(ints(context.capture.calls.column("start")))
    called = np.searchsorted(began, calls.end) > np.searchsorted(began, calls.start)
    launches = np.isin(calls.thread, ints(context.capture.calls.column("thread")))
    some = (calls.end - calls.start > DISPATCH_NS) & calls.computes & launches & ~called
    for call in np.flatnonzero(some).tolist():
        some[call] = not _makes_or_waits(calls.name[call])
    return np.asarray(some)


def _makes_or_waits(op: str) -> bool:
    """Whether an op makes tensors of numbers, or numbers of them, or waits for other ranks."""
    waits = communicates(op) or collective_kind(op) in (BARRIER, SEND_RECV)
    return waits or op in MAKES_TENSORS | MAKES_VALUES


_TO_DEVICE = re.compile(r"HtoD|HostToDevice")
_LOADS_CODE = "(?:Module|Library)Load"
"""Within the names of calls that load compiled code: cuModuleLoadDataEx, hipModuleLoad."""
_MAKES_GRAPH = "GraphInstantiate"


def _mainly(ns: NDArray[np.float64], some: Mask) -> bool:
    return bool(ns[some].sum() > ns.sum() / 2)


def _find_after(context: RuleContext, calls: str) -> Int64Array:
    """Rows after gaps in which API calls of such names began."""
    nothing = np.zeros(0, np.int64)
    if context.capture is None:
        return nothing
    began = np.sort(_starts_of_calls(context.capture, calls))
    gaps = [device.gaps for device in context.devices]
    some = [np.searchsorted(began, g.end) > np.searchsorted(began, g.start) for g in gaps]
    return np.concatenate([nothing, *(g.row[a] for g, a in zip(gaps, some, strict=True))])


@rule(
    "the GPU had work meanwhile",
    about="idle time",
    needs=(GPU, TIMES),
)
def allocation(context: RuleContext) -> Advice | None:
    """Find gaps in which the host allocated or freed GPU memory; the evidence is what came next."""
    rows, idle_ns = idle_for(context, ALLOC)
    return context.advice(
        "the GPU waits for memory to be allocated or freed",
        f"{'' if _recurs(context, rows) else 'capture after warm-up; if it persists, '}keep shapes"
        " constant, avoid empty_cache(), and set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        rows,
        wasted_ns=idle_ns,
        elsewhere="allocate once, before the loop, and use it again, or take a memory pool"
        " (cudaMallocAsync)",
    )


def _recurs(context: RuleContext, rows: Int64Array) -> bool:
    """Whether rows lie in most of several steps, and so are not warm-up."""
    if context.once or context.table.steps is None:
        return False
    step = context.table.steps.of_row
    all_steps, recurring = (
        len(np.unique(part[part >= 0])) for part in (step[context.chosen], step[rows])
    )
    return recurring >= _SEVERAL and recurring > all_steps / 2


_SEVERAL = 3
"""With this many steps, a capture is no longer all warm-up."""


@rule(
    "the GPU had work meanwhile",
    about="idle time",
    needs=(GPU, TIMES),
)
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
    reads = _recurs(context, np.flatnonzero(context.copies(TO_HOST)))
    outside = "; .item(), nonzero() and boolean masks must stay outside a graph" if reads else ""
    return context.advice(
        "the GPU waits for the host to launch short kernels",
        "use CUDA graphs, torch.compile(mode='reduce-overhead'), larger batches or fused ops"
        f"{outside}",
        rows,
        wasted_ns=idle_ns,
        elsewhere="use CUDA graphs, larger batches or fused kernels",
    )


def _mark_replayed(context: RuleContext) -> Mask:
    """Mark work launched by replays of CUDA graphs: one call, often for many kernels."""
    called, _ = launch_bounds(context.table.records)
    number = distinct(called)[1]
    many = (called >= 0) & (np.bincount(number)[number] > 1)
    replay = context.kind(schema.GRAPH) | (context.table.records.numpy("replay") >= 0) | many
    if context.capture is None:
        return np.asarray(replay)
    return np.asarray(replay | np.isin(called, _starts_of_calls(context.capture, "GraphLaunch")))


def _starts_of_calls(capture: Capture, pattern: str) -> Int64Array:
    """Return when the API calls whose names match a pattern began."""
    matches = partial(pc.match_substring_regex, pattern=pattern)
    return ints(
        capture.calls.filter(map_texts(capture.calls.column("name"), matches)).column("start")
    )


@rule(
    "more work was queued when the wait ended",
    about="idle time",
    needs=(GPU, TIMES),
)
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
        if _recurs(context, rows)
        else "capture after warm-up, or look at later --steps: loading happens once",
        rows,
        wasted_ns=idle_ns,
    )


_LATE_NS = 1_000_000
"""Shorter delays are those of a stream, an event or a graph's start."""


@rule(
    "a delay below 1 ms: of a stream, an event, a graph's start",
    "the host launched it only then",
    about="idle time",
    needs=(GPU, TIMES),
)
def late_start(context: RuleContext) -> Advice | None:
    """Find queued work that began late on an idle GPU: what it waited for was not recorded."""
    rows, idle_ns = idle_for(context, QUEUE)
    late = idle_ns >= _LATE_NS
    rows, idle_ns = rows[late], idle_ns[late]
    return context.advice(
        "work that was queued begins over 1 ms late, though the GPU runs nothing that was recorded",
        "begin the recording earlier, or look at later --steps: it may wait for work that was"
        " launched before the recording or by another process, or for start-up",
        rows,
        wasted_ns=idle_ns,
    )


_TURN_NS = 20_000
"""A stream, an event or a launch delays work by less, whatever other GPUs do."""


@rule(
    "the GPUs are busy at the same time",
    "the host launched it only then",
    about="idle time",
    needs=(GPU, TIMES),
)
def gpus_in_turn(context: RuleContext) -> Advice | None:
    """Find queued work of the busiest GPU that waits while another GPU of the process works.

    The others idle longer, but no step can be shorter than the work of the busiest one.
    """
    busiest = {each.pid: each for each in sorted(context.devices, key=lambda one: one.busy_ns)}
    alone = [each for each in busiest.values() if _works_alone(each, context.devices)]
    rows, idle_ns = idle_for(context, PEER, alone)
    waited = idle_ns >= _TURN_NS
    rows, idle_ns = rows[waited], idle_ns[waited]
    return context.advice(
        "the GPUs of the process work in turn: queued work waits while another one works",
        "split the batch into micro-batches that follow each other through the GPUs (pipeline"
        " parallelism), or each layer over all GPUs (tensor parallelism)",
        rows,
        wasted_ns=idle_ns,
        elsewhere="split the work so that each GPU has some at any time",
    )


def _works_alone(device: DeviceTime, devices: Sequence[DeviceTime]) -> bool:
    """Whether other GPUs of its process idle while it works, for most of the time."""
    others = union(each.busy for each in devices if each.pid == device.pid and each is not device)
    return 2 * (device.busy & others).total < device.busy_ns
