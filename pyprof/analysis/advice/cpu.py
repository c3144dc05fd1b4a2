"""Advice on ops timed on the CPU: time between them, and calls that compute nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pyprof.analysis.advice.finding import Advice, group_findings
from pyprof.analysis.advice.registry import CAPTURE, CPU, TIMES, rule
from pyprof.analysis.advice.rule_context import idle_for
from pyprof.analysis.time.host_api import LAUNCH
from pyprof.analysis.time.idle import DISPATCH, HOST, OPS
from pyprof.analysis.time.intervals import longest, union
from pyprof.records.records import number_combinations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.analysis.advice.rule_context import RuleContext
    from pyprof.answers.parts import Finding
    from pyprof.arrays import Int64Array, Mask

_MIN_SHARE = 0.05
"""Minimum share of the time: every script, and the profiler, spends some between ops."""


@rule(
    "a GPU does the work: what launches cost it, launch_bound reports",
    "single pauses are long, which python_work reports",
    "a small part of the time: every script has some",
    about="time between ops",
    needs=(CPU, TIMES),
)
def short_ops(context: RuleContext) -> Advice | None:
    """Find short pauses around ops; the evidence is the op."""
    return _advise_on_pauses(
        context,
        DISPATCH,
        "Python, PyTorch's dispatch and the profiler take the time around short ops",
        "replace loops by ops on whole tensors (batches, masks, torch.vmap), or use torch.compile",
    )


@rule(
    "a GPU does the work: how long it waits, host_work reports",
    "pauses are short, which short_ops reports",
    "a line's first call of many, or a pause that few of them have",
    "the time is in ranges of data loading, which data_loading reports",
    "a small part of the time: every script has some",
    about="time between ops",
    needs=(CPU, TIMES),
)
def python_work(context: RuleContext) -> Advice | None:
    """Find long pauses between ops; the evidence is what came next."""
    return _advise_on_pauses(
        context,
        HOST,
        "no op runs while Python does something else: data, files, other libraries",
        "py-spy or pyinstrument shows what Python does meanwhile; the work below came late",
    )


_AHEAD = "do it once before the loop, or ahead in other processes, as DataLoader workers do; "
"""What to do about pauses in a loop."""
UNLESS_SERVING = "unless it waits for requests, "
"""Precedes advice to work ahead if nothing is trained: pauses may be waits for requests."""


def _advise_on_pauses(context: RuleContext, cause: str, title: str, action: str) -> Advice | None:
    # in the process where they take longest
    pauses = longest(context.idle(device, cause) for device in context.cpus)
    if not len(pauses) or pauses.total < _MIN_SHARE * context.span_ns:
        return None
    calls = context.calls
    if not len(calls.name):
        rows, idle_ns = idle_for(context, cause, context.cpus)
        return context.advice(title, action, rows, pauses.total, weight=idle_ns)
    order = np.argsort(calls.start, kind="stable")
    # a pause ends where a call begins or, inside a call, where its work does
    index = np.searchsorted(calls.start, pauses.end, side="right", sorter=order) - 1
    over = (index < 0) | (calls.end[order[index]] < pauses.end)
    index = np.minimum(index + over, len(order) - 1)
    following, ns = order[index], pauses.end - pauses.start
    details = None
    if cause == HOST:
        again, recurs = _mark_recurring(context, order, following, ns)
        recurring_ns = ns[again & recurs]
        # one long pause among short ones is not part of the loop
        if recurring_ns.sum() - recurring_ns.max(initial=0) > ns[again].sum() / 2:
            action = ("" if context.trains else UNLESS_SERVING) + _AHEAD + action
        before, ns = order[np.maximum(index[again] - 1, 0)].tolist(), ns[again]
        following = _prefer_lines(context, order, index[again])
        details = [
            f"after {calls.name.at(call)} at {line.rpartition('/')[2]}" if line else ""
            for call, line in zip(before, map(calls.line.at, before), strict=True)
        ]
    if ns.sum() < _MIN_SHARE * context.span_ns:
        return None
    return Advice(
        title=title,
        action=action,
        gain_ns=int(ns.sum()),
        evidence=of_calls(context, following, ns, details),
    )


_MIN_CALL_SHARE = 0.5
"""Minimum share of an op's calls from one line that follow a pause, for the pause to recur."""
_LONG_NS = 50_000_000
"""A shorter pause that rarely recurs may be due to the machine, not to the script."""


def _mark_recurring(
    context: RuleContext, order: Int64Array, following: Int64Array, ns: Int64Array
) -> tuple[Mask, Mask]:
    """Mark pauses that precede at least half of the calls of one op on one line, or are long.

    The first of several calls does not count: things are loaded and imported then. Also mark the
    pauses that recur, as in a loop.
    """
    site = number_combinations(context.calls.name.index, context.calls.line.index)
    calls = np.bincount(site)
    first = order[np.unique(site[order], return_index=True)[1]]
    is_first = np.isin(following, first) & (calls[site[following]] > _SOME)
    paused = np.bincount(site[following][~is_first], minlength=len(calls))
    often = (paused >= _MIN_CALL_SHARE * calls)[site[following]]
    counted = np.asarray(~is_first & (often | (ns >= _LONG_NS)))
    return counted, often & (calls[site[following]] > _SOME)


_SOME = 2
"""With this few calls, the first is not an exception, and none recurs."""
_NEXT = 3
"""How many ops, itself included, are searched for the line of an op without one."""


def _prefer_lines(context: RuleContext, order: Int64Array, place: Int64Array) -> Int64Array:
    """Return the calls at these places, or one of the next few if a call has no line."""
    known = context.calls.line.index >= 0
    chosen = order[place]
    for after in range(1, _NEXT):
        later = order[np.minimum(place + after, len(order) - 1)]
        chosen = np.where(known[chosen] | ~known[later], chosen, later)
    return chosen


MAKES_TENSORS = frozenset({"tensor", "as_tensor", "asarray", "new_tensor", "scalar_tensor"})
MAKES_VALUES = frozenset({"item", "tolist", "__bool__", "__float__", "__int__", "numpy"})


@rule(
    "the op computes, and so has rows of its own",
    "it makes no tensor of values and no value of a tensor, as a view",
    "a GPU waits for the value, which synchronisation reports",
    "a small part of the time: every script has some",
    about="tensors of Python values",
    needs=(TIMES, CAPTURE),
)
def python_values(context: RuleContext) -> Advice | None:
    """Find calls that turn Python values into tensors, or back: torch.tensor() of a list."""
    if context.devices:  # the idle time due to the host
        causes = (HOST, LAUNCH)
        waited = longest(
            union(context.idle(gpu, each) for each in causes) for gpu in context.devices
        )
    else:  # the time inside op calls without work
        waited = longest(context.idle(device, OPS) for device in context.cpus)
    if waited.total < _MIN_SHARE * context.span_ns:
        return None
    calls = context.calls
    names = MAKES_TENSORS if context.devices else MAKES_TENSORS | MAKES_VALUES
    of_values = calls.name.is_in(*names)
    chosen = np.flatnonzero(of_values & (context.devices != () or calls.without_work(waited)))
    ns = waited.length_within(calls.start[chosen], calls.end[chosen])
    chosen, ns = chosen[ns > 0], ns[ns > 0]
    if not len(ns) or ns.sum() < _MIN_SHARE * context.span_ns:
        return None
    evidence = of_calls(context, chosen, ns)
    made = evidence[0].what in MAKES_TENSORS
    return Advice(
        title="tensors are made of Python lists, number by number"
        if made
        else "tensors are read number by number: .item(), .tolist()",
        action="x = torch.from_numpy(np.asarray(rows, dtype=np.float32)), once and before the loop;"
        " of a list of arrays: torch.from_numpy(np.stack(arrays)), of tensors: torch.stack(tensors)"
        if made
        else "keep numbers in tensors: total += loss.detach() in the loop, and total.item() once"
        " after it; torch.where instead of if",
        gain_ns=int(ns.sum()),
        evidence=evidence,
    )


def of_calls(
    context: RuleContext, chosen: Int64Array, ns: Int64Array, details: Sequence[str] | None = None
) -> tuple[Finding, ...]:
    """Group calls by op and line and add up their times; the largest group comes first."""
    what, line = (
        column.take(chosen).to_arrow(pa.string())
        for column in (context.calls.name, context.calls.line)
    )
    return group_findings(what, line, details, ns)
