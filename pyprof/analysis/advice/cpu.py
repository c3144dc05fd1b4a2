"""Advice on ops timed on the CPU: time between them, and calls that compute nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pyprof.analysis.advice.case import idle_for
from pyprof.analysis.advice.finding import Advice, Evidence
from pyprof.analysis.advice.registry import rule
from pyprof.analysis.advice.scope import CAPTURE, CPU, TIMES
from pyprof.analysis.time.idle import DISPATCH, HOST, OPS
from pyprof.analysis.time.intervals import EMPTY

if TYPE_CHECKING:
    from pyprof.analysis.advice.case import Case
    from pyprof.analysis.time.intervals import Intervals
    from pyprof.arrays import Int64Array

_LEAST_SHARE = 0.05
"""Every script passes some time between ops, and so does the profiler."""


@rule(
    "a GPU does the work: what launches cost it, launch_bound tells",
    "single pauses are long, which python_work tells",
    "a small part of the time: every script has some",
    about="time between ops",
    needs=(CPU, TIMES),
)
def short_ops(case: Case) -> Advice | None:
    """Find short pauses around ops; the evidence is the op."""
    return _around(
        case,
        DISPATCH,
        "short_ops",
        "Python, PyTorch's dispatch and the profiler take the time around short ops",
        "replace loops by ops on whole tensors (batches, masks, torch.vmap), or use torch.compile",
    )


@rule(
    "a GPU does the work: how long it waits, host_work tells",
    "pauses are short, which short_ops tells",
    "the time is in ranges of data loading, which data_loading tells",
    "a small part of the time: every script has some",
    about="time between ops",
    needs=(CPU, TIMES),
)
def python_work(case: Case) -> Advice | None:
    """Find long pauses between ops; the evidence is what came next."""
    return _around(
        case,
        HOST,
        "python_work",
        "no op runs while Python does something else: data, files, other libraries",
        "a CPU profiler (py-spy, pyinstrument) shows what Python does before the work below",
    )


def _around(case: Case, cause: str, name: str, title: str, action: str) -> Advice | None:
    pauses = _of_process(case, cause)
    if not len(pauses) or pauses.total < _LEAST_SHARE * case.span_ns:
        return None
    if (calls := case.calls) is None:
        _, rows, idle_ns = idle_for(case, cause, case.cpus)
        return case.advice(name, title, action, rows, pauses.total, weight=idle_ns)
    order = np.argsort(calls.start, kind="stable")
    # a pause ends where a call begins or, inside a call, where its work does
    place = np.searchsorted(calls.start, pauses.end, side="right", sorter=order) - 1
    over = (place < 0) | (calls.end[order[place]] < pauses.end)
    following = order[np.minimum(place + over, len(order) - 1)]
    evidence = _of_calls(case, following, pauses.end - pauses.start)
    return Advice(
        rule=name,
        title=title,
        action=action,
        gain_ns=pauses.total,
        evidence=evidence,
        rows=np.zeros(0, np.int64),
    )


def _of_process(case: Case, cause: str) -> Intervals:
    """Return the time for a cause in the process that has most of it."""
    times = (case.inside(device.idle[cause]) for device in case.cpus)
    return max(times, key=lambda each: each.total, default=EMPTY)


@rule(
    "the op computes, and so has rows of its own",
    "a small part of the time: every script has some",
    about="tensors of Python values",
    needs=(CPU, TIMES, CAPTURE),
)
def python_values(case: Case) -> Advice | None:
    """Find calls of ops without work, as torch.tensor() of a list."""
    waited = _of_process(case, OPS)
    if not len(waited) or (calls := case.calls) is None:
        return None
    chosen = np.flatnonzero(calls.without_work(waited))
    ns = (calls.end - calls.start)[chosen]
    if ns.sum() < _LEAST_SHARE * case.span_ns:
        return None
    return Advice(
        rule="python_values",
        title="time passes in ops that compute nothing: tensors of Python values, views, .item()",
        action="make tensors of arrays (torch.from_numpy), not of lists; keep .item() out of loops",
        gain_ns=int(ns.sum()),
        evidence=_of_calls(case, chosen, ns),
        rows=np.zeros(0, np.int64),
    )


def _of_calls(case: Case, chosen: Int64Array, ns: Int64Array) -> tuple[Evidence, ...]:
    """Group calls, each of which stands for some time, by op and line, the most time first."""
    names = case.calls.name if case.calls is not None else []
    data = pa.table(
        {
            "op": [names[place] for place in chosen.tolist()],
            "line": pa.array([case.call_lines[place] for place in chosen.tolist()], pa.string()),
            "ns": ns,
        }
    )
    grouped = data.group_by(["op", "line"], use_threads=False)
    sums = grouped.aggregate([("ns", "sum"), ("ns", "count")])
    evidence = (
        Evidence(what=row["op"], line=row["line"], count=row["ns_count"], total_ns=row["ns_sum"])
        for row in sums.to_pylist()
    )
    return tuple(sorted(evidence, key=lambda each: (-each.total_ns, each.what, each.line or "")))
