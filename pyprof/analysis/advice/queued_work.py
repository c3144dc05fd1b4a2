"""Advice on work that was queued in time, and yet began late."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.analysis.advice.registry import GPU, TIMES, rule
from pyprof.analysis.advice.rule_context import idle_for
from pyprof.analysis.time.idle import PEER, QUEUE
from pyprof.analysis.time.intervals import union

if TYPE_CHECKING:
    from pyprof.analysis.advice.finding import Advice
    from pyprof.analysis.advice.rule_context import RuleContext


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
    alone = []
    for each in busiest.values():  # the others idle while it works, for most of the time
        same = (one for one in context.devices if one.pid == each.pid and one is not each)
        if 2 * (each.busy & union(one.busy for one in same)).total < each.busy_ns:
            alone.append(each)
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
