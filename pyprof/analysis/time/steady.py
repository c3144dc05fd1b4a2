"""Which work is the loop's, and which happens once: start-up, warm-up, what follows the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyprof import schema
from pyprof.analysis.time.intervals import complement, union_of
from pyprof.analysis.time.steps import bounds_on_gpu
from pyprof.parse.steps.loop_steps import launch_times

if TYPE_CHECKING:
    from pyprof.analysis.time.intervals import Intervals
    from pyprof.analysis.time.steps import Steps
    from pyprof.arrays import Int64Array, Mask
    from pyprof.records.records import Records

_MAIN_SHARE = 0.5
"""The longest kernels of guessed steps, up to this share of the steps' time, are the loop's own.
The loop must have at least this share of all kernels' time, else the guess does not count.
"""

_FOREVER_NS = 1 << 61
"""Beyond all times of a capture; twice this still fits into 64 bits."""


class Loop(NamedTuple):
    """The steady part of a capture."""

    rows: Mask
    time: Intervals
    """On the GPU, from the end of the step before; around guessed steps, from the first launch. To
    the end of the loop's rows."""

    @property
    def outside(self) -> Intervals:
        """All other time."""
        return complement(self.time, -_FOREVER_NS, _FOREVER_NS)


def find_loop(records: Records, steps: Steps, *, unbroken: bool = False) -> Loop | None:
    """Find the steps after warm-up, and what lies between them; None if they cannot be found.

    Guessed steps are only the longest unbroken series: what repeats before and after it, judged by
    the kernels that take most of a step, belongs to the loop, too, unless it is to be `unbroken`.
    """
    averaged = steps.steady
    if averaged is None:
        return None
    launch_ns = launch_times(records)
    inside = np.asarray(steps.rows(averaged))
    first, last = int(steps.start_ns[averaged[0]]), int(steps.end_ns[averaged[1] - 1])
    widened = steps.guessed and not unbroken
    if widened:
        kernels = records.of_kind(schema.KERNEL, schema.CPU)
        main = kernels & _main_kernels(records, np.asarray(kernels & inside))
        first = min(first, int(launch_ns[main].min(initial=first)))
        last = max(last, int(launch_ns[main].max(initial=last)) + 1)
    rows = inside | ((launch_ns >= first) & (launch_ns < last))
    if widened:
        ns = records.numpy("kDuration")
        if ns[kernels & rows].sum() < _MAIN_SHARE * ns[kernels].sum():
            return None
    else:
        bounds = bounds_on_gpu(records, steps.of_row, len(steps))
        if bounds is not None and bounds[averaged[0]] < bounds[averaged[1]]:
            first, last = bounds[[*averaged]].tolist()
    last = max(last, int(records.numpy("end").max(initial=last, where=rows)))
    return Loop(np.asarray(rows), union_of(np.array([first]), np.array([last])))


def with_first_steps(loop: Loop, steps: Steps) -> Loop:
    """Return the loop with all of its steps, those of the warm-up among them."""
    last = len(steps.start_ns)
    first_ns = min(int(loop.time.start.min()), int(steps.start_ns.min()))
    end_ns = max(int(loop.time.end.max()), int(steps.end_ns.max()))
    rows = loop.rows | np.asarray(steps.rows((0, last)))
    return Loop(np.asarray(rows), union_of(np.array([first_ns]), np.array([end_ns])))


def _main_kernels(records: Records, rows: Mask) -> Mask:
    """Find the kernels, by name, that take most time among these rows."""
    name = records.dictionary("kLongName")
    index: Int64Array = np.where(name.index < 0, len(name.values), name.index)
    ns = np.bincount(index[rows], records.numpy("kDuration")[rows], len(name.values) + 1)
    order = np.argsort(-ns, kind="stable")
    before = np.cumsum(ns[order]) - ns[order]
    is_main = np.zeros(len(ns), bool)
    is_main[order[(before < _MAIN_SHARE * ns.sum()) & (ns[order] > 0)]] = True
    return np.asarray(is_main[index])
