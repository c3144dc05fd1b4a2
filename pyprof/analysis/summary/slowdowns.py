"""When a GPU took longer for the same work: its clock fell, or another program used it, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof import schema
from pyprof.analysis.summary.device_power import clock_hz
from pyprof.arrays import MISSING
from pyprof.parse.ranges.nesting import by_value
from pyprof.prof.processor import word
from pyprof.quantities import duration
from pyprof.records.records import combinations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyprof.arrays import Floats, Int64Array, IntArray, Mask
    from pyprof.prof.table import Table
    from pyprof.schema import Capture

_LONGER, _EACH_LONGER = 1.15, 1.1
"""Minimum ratios of times for the median of kernels, and for nearly all."""
_MIN_KERNELS, _MIN_CALLS = 5, 2
"""Minimum number of different kernels, and of calls of each in a spell and outside of it."""
_NEARLY_ALL, _MAJORITY = 0.9, 0.5
"""Shares of the kernels, of their time, and of the calls in a spell."""
_AT_END = 0.05
"""A spell lasts until the end if what follows is no longer than this share of it."""
_LOWER = 0.97
"""A clock is lower if it is at most this share of what it was otherwise."""
_OVERLAP = 0.05
"""Maximum share of a kernel's time in which other work may run beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slowdown:
    """A spell in which nearly all kernels of a GPU took longer than the same ones outside of it."""

    device: str
    """The GPU, with the rank if that is recorded."""
    start_ns: int
    """After the first of the device's kernels, or of those chosen."""
    end_ns: int | None
    """None if it lasted until the last kernel."""
    ratio: float
    """How many times as long they took: the median, weighted by time."""
    kernels: int
    """Number of different kernels that were compared."""
    clock_hz: tuple[float, float] | None
    """The mean clock in it and outside of it; None if it was not sampled."""

    def __str__(self) -> str:
        """When, how much, and why, as a sentence."""
        when = f"{duration(self.start_ns)} after its first kernel on"
        if self.end_ns is not None:
            when = f"{duration(self.start_ns)} to {duration(self.end_ns)} after its first kernel"
        why = "a lower clock, or another program on it (inferred)"
        if self.clock_hz is not None:
            clock, usual = (f"{hz / 1e6:,.0f} MHz" for hz in self.clock_hz)
            why = f"its clock was {clock} on average, {usual} otherwise"
            if self.clock_hz[0] > _LOWER * self.clock_hz[1]:
                why = f"perhaps another program on it, as {why}"
        return (
            f"{self.device}: from {when}, the same kernels take {self.ratio:.2f} times as long "
            f"(nearly all of {self.kernels}, which ran alone): {why}."
        )


def slowdowns(table: Table, capture: Capture | None, chosen: Mask | None) -> Iterator[Slowdown]:
    """Find the longest spell of each device among the chosen rows, if it has any.

    Kernels are the same if name, launch size and, as far as known, work are. Collectives wait for
    others, and work that runs side by side shares the device: both are left out.
    """
    records = table.records
    if "start" not in records.columns:
        return
    names = ("kLongName", "grid", "block")
    work = (records.dictionary(name).index for name in names)
    _, number = combinations(*work, table.costs.flops, table.costs.bytes)
    start, end = records.numpy("start"), records.numpy("end")
    counted = records.of_kind(schema.KERNEL) & ~records.dictionary("dir").is_in("comm")
    counted &= end > start
    if chosen is not None:
        counted &= chosen
    for device, rows in by_value(records.numpy("device")):
        order = rows[np.argsort(start[rows], kind="stable")]
        alone = order[counted[order] & _mark_alone(start[order], end[order])]
        took = end[alone] - start[alone]
        all_ns = int((end - start)[order[counted[order]]].sum())
        if (spell := _spell(number[alone], took, all_ns)) is None:
            continue
        first, last, ratio, kernels = spell
        bounds = int(start[alone[first]]), int(end[alone[last - 1]])
        ends = int(end[alone[-1]]) - bounds[1] <= _AT_END * (bounds[1] - bounds[0])
        origin = int(start[order[counted[order]][0]])
        rank = records.dictionary("rank").at(order[0])
        name = word(records.dictionary("gpu").at(order[0]))
        name += "" if device == MISSING else f" {device}"
        yield Slowdown(
            device=name if rank is None else f"rank {rank}, {name}",
            start_ns=bounds[0] - origin,
            end_ns=None if ends else bounds[1] - origin,
            ratio=ratio,
            kernels=kernels,
            clock_hz=None if capture is None else clock_hz(capture, device, bounds),
        )


def _mark_alone(start: Int64Array, end: Int64Array) -> Mask:
    """Mark the rows, ordered by start, during which hardly anything else ran."""
    room = _OVERLAP * (end - start)
    before = np.append(start[:1], np.maximum.accumulate(end)[:-1])
    after = np.append(start[1:], end[-1:])
    return np.asarray((before - start <= room) & (end - after <= room))


def _spell(number: IntArray, took: Int64Array, all_ns: int) -> tuple[int, int, float, int] | None:
    """Find the first row of the spell, the one after its last, the ratio, and count kernels."""
    count = np.bincount(number)
    order = np.lexsort((took, number))
    begin = np.cumsum(count) - count
    fast = took[order][np.minimum(begin + count // 10, len(order) - 1)] if len(order) else count
    usual = fast[number].astype(float)
    longer = usual * (np.log(took / usual) - np.log(_LONGER))
    total = np.append(0.0, np.cumsum(longer))
    last = int(np.argmax(total - np.minimum.accumulate(total)))
    first = int(np.argmin(total[: last + 1]))
    if first == 0:  # none, or a warm-up
        return None
    inside = np.zeros(len(number), bool)
    inside[first:last] = True
    slow, slow_count = _medians(number[inside], took[inside], len(count))
    quick, quick_count = _medians(number[~inside], took[~inside], len(count))
    both = (slow_count >= _MIN_CALLS) & (quick_count >= _MIN_CALLS)
    weight = np.bincount(number, took)[both]
    if both.sum() < _MIN_KERNELS or weight.sum() < _MAJORITY * all_ns:
        return None
    ratio = (slow / quick)[both]
    rising = np.argsort(ratio)
    share = np.cumsum(weight[rising]) / weight.sum()
    low, middle = ratio[rising][np.searchsorted(share, (1 - _NEARLY_ALL, _MAJORITY))]
    if low < _EACH_LONGER or middle < _LONGER or np.mean(ratio >= _EACH_LONGER) < _NEARLY_ALL:
        return None
    # other kernels, or as many quick calls, are those of other work, such as an evaluation
    if np.mean((both[number] & (took > quick[number]))[inside]) < _NEARLY_ALL:
        return None
    return first, last, float(middle), int(both.sum())


def _medians(number: IntArray, took: Int64Array, size: int) -> tuple[Floats, Int64Array]:
    """Return the median time of each number, 1 without any, and how often it occurs."""
    count = np.bincount(number, minlength=size)
    order = np.lexsort((took, number))
    middle = np.cumsum(count) - count + count // 2
    median = np.ones(size)
    median[count > 0] = took[order][middle[count > 0]]
    return median, count
