"""What ran when on each stream, in lanes of boxes, and below them why a GPU idled.

A page holds some thousand boxes, a capture a million kernels. Kernels of a typical step and of the
slowest one are boxes of their own, and so are the longest ones; the others join their neighbours on
the stream, in boxes that show what took most of their time. The longest gaps are drawn, and those
of these two steps. How many are left out is stated.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.report.devices import used_device
from pyprof.analysis.report.strips import steps_with_work
from pyprof.analysis.time.timeline import in_order, streams
from pyprof.answers.page.report_answer import (
    ATTRIBUTES,
    MAX_DEVICES,
    MAX_LANES,
    PAUSED,
    Clock,
    DeviceLanes,
    Gap,
    Lane,
    Lanes,
    Mark,
    Parts,
)
from pyprof.arrays import MISSING
from pyprof.records.records import combinations, totals

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from pyprof.analysis.report.attributes import RowAttributes
    from pyprof.analysis.summary.overview import Overview
    from pyprof.analysis.time.steps import Steps
    from pyprof.analysis.time.timeline import DeviceTime, Stream
    from pyprof.arrays import Int64Array, IntArray, Mask
    from pyprof.records.records import Records

_MAX_SINGLE = 30_000
"""Maximum number of kernels of a capture that are boxes of their own."""
_BINS = 400
"""Bins of a capture's time: what begins in one bin is joined, per stream."""
_VISIBLE = 0.1
"""From this share of a bin on, a kernel is separate from its neighbours."""
_MAX_GAPS = 2500
"""Maximum number of gaps of a device."""
_MAX_PARTS = 12
"""Maximum number of parts of a box that joins several kernels."""
_MAX_MARKS = 2000


def lanes(records: Records, overview: Overview, attributes: RowAttributes) -> Lanes | None:
    """Lay out the chosen rows; None if the records hold no times."""
    if overview.timeline is None:
        return None
    rows = np.ones(records.rows, bool) if overview.rows is None else overview.rows
    devices = overview.timeline.devices[:MAX_DEVICES]
    first, length = clock(devices)
    shown, ended = steps_with_work(records, overview)

    def mark(step: int) -> Mark:
        duration = int(overview.steps.duration_ns[step])
        return Mark(step, max(int(ended[step]) - duration - first, 0), duration)

    typical, slowest = _examples(overview.steps, shown)
    drawn, left_out = _chosen_streams(records, rows, devices)
    examples = [mark(step) for step in (typical, slowest) if step is not None]
    single = _single(records, overview.steps, rows, drawn, length, typical, slowest)
    drawn_devices = tuple(
        _device(device, first, examples,
                [_lane(records, attributes, stream, rows, single, first, length)
                 for stream in drawn if (stream.pid, stream.device) == _key(device)])
        for device in devices
    )  # fmt: skip
    return Lanes(
        devices=drawn_devices,
        marks=tuple(map(mark, shown[:_MAX_MARKS].tolist())),
        marks_left_out=len(shown[_MAX_MARKS:]),
        typical=None if typical is None else mark(typical),
        slowest=None if slowest is None else mark(slowest),
        length_ns=length,
        device_count=len(overview.timeline.devices) + overview.timeline.left_out,
        streams_left_out=left_out,
    )


def clock(devices: Sequence[DeviceTime]) -> Clock:
    """Return when the first kernel began, and how long after that the last one ended."""
    shown = devices[:MAX_DEVICES]
    first = min(device.start_ns for device in shown)
    return Clock(first, max(device.end_ns for device in shown) - first)


def _key(device: DeviceTime) -> tuple[int | None, int | None]:
    return (
        None if device.pid == MISSING else device.pid,
        None if device.device == MISSING else device.device,
    )


def _chosen_streams(
    records: Records, rows: Mask, devices: Sequence[DeviceTime]
) -> tuple[list[Stream], int]:
    """The streams to draw, in order (of many, the busiest), and the number of others."""
    shown = {_key(device) for device in devices}
    candidates = [
        stream
        for stream in streams(records)
        if (stream.pid, stream.device) in shown and rows[stream.rows].any()
    ]
    time = records.numpy("kDuration")
    busiest = sorted(candidates, key=lambda stream: -int(time[stream.rows].sum()))[:MAX_LANES]
    kept = {id(stream) for stream in busiest}
    return [stream for stream in candidates if id(stream) in kept], len(candidates) - len(busiest)


def _examples(steps: Steps, shown: Int64Array) -> tuple[int | None, int | None]:
    """The step nearest to the median and the slowest one, without warm-up."""
    if not len(shown):
        return None, None
    steady = shown[shown >= steps.warm_up]
    steady = steady if len(steady) else shown
    duration = steps.duration_ns[steady]
    nearest = np.argmin(np.abs(duration - np.median(duration)))
    return int(steady[nearest]), int(steady[np.argmax(duration)])


def _single(
    records: Records,
    steps: Steps,
    rows: Mask,
    drawn: Sequence[Stream],
    length: int,
    *examples: int | None,
) -> Mask:
    """Find the rows that get their own boxes: all if there are few, else those worth a look.

    These are those of the example steps, then the longest that stand out in their bin.
    """
    time = records.numpy("kDuration")
    candidates = np.concatenate([stream.rows for stream in drawn] or [np.zeros(0, np.int64)])
    candidates = candidates[rows[candidates]]
    single = np.zeros(records.rows, bool)
    left = _MAX_SINGLE
    for step in dict.fromkeys(examples):
        in_step = candidates[steps.of_row[candidates] == step] if step is not None else []
        if len(in_step) <= left:
            single[in_step] = True
            left -= len(in_step)
    others = candidates[~single[candidates]]
    if len(candidates) > _MAX_SINGLE:
        others = others[time[others] >= length / _BINS * _VISIBLE]
    single[others[np.argsort(-time[others], kind="stable")[:left]]] = True
    return single


def _lane(
    records: Records,
    attributes: RowAttributes,
    stream: Stream,
    chosen: Mask,
    single: Mask,
    first: int,
    length: int,
) -> Lane:
    rows = in_order(records, stream)
    rows = rows[chosen[rows]]
    start, end = records.numpy("start")[rows], records.numpy("end")[rows]
    kind = attributes.of_row[rows]
    begin = _begins(start, single[rows], first, length)
    begins = np.flatnonzero(begin)
    count = np.diff(begins, append=len(rows))
    time, last, start = end - start, np.maximum.reduceat(end, begins), start[begins]
    box = np.cumsum(begin, dtype=np.int32)
    box -= 1
    top = np.flatnonzero(time == np.maximum.reduceat(time, begins).take(box))
    # the first of these in each box
    longest = top[np.flatnonzero(np.diff(box.take(top), prepend=np.int32(-1)))]
    family = attributes.combinations.column("family").combine_chunks().dictionary_encode().indices
    parts, rest = _parts(
        box, (count > 1).take(box), kind, time, family.fill_null(MISSING).to_numpy()
    )
    kinds = [kind[longest], parts.kind, rest.kind]
    used, index = np.unique(np.concatenate(kinds), return_inverse=True)
    of_box, of_part, of_rest = np.split(index, np.cumsum([len(each) for each in kinds[:-1]]))
    number = "" if stream.stream is None or stream.cpu else f"stream {stream.stream}"
    return Lane(
        name=number or stream.device_label,
        start=start - first,
        length=last - start,
        summed=np.add.reduceat(time, begins),
        rows=count,
        texts=attributes.combinations.select(ATTRIBUTES).take(used),
        longest=of_box,
        parts=replace(parts, kind=of_part),
        rest=replace(rest, kind=of_rest),
    )


def _parts(
    box: IntArray, joined: Mask, kind: IntArray, time: Int64Array, family: IntArray
) -> tuple[Parts, Parts]:
    """Add up what joined boxes consist of; return each box's longest, and its rest by family."""
    box, kind = box[joined], kind[joined]
    first, number = combinations(box, kind)
    ns = totals(number, time[joined], len(first))
    order = np.lexsort((-ns, box[first]))
    first, ns = first[order], ns[order]
    of_box = box[first].astype(np.int64)
    kept = np.arange(len(of_box)) - np.searchsorted(of_box, of_box) < _MAX_PARTS
    part_kind = kind[first].astype(np.int64)
    rest_box, rest_kind, rest_ns = of_box[~kept], part_kind[~kept], ns[~kept]
    one, number = combinations(rest_box, family[rest_kind])
    rest = Parts(rest_box[one], rest_kind[one], totals(number, rest_ns, len(one)))
    return Parts(of_box[kept], part_kind[kept], ns[kept]), rest


def _begins(start: Int64Array, single: Mask, first: int, length: int) -> Mask:
    """Mask of the rows that begin a box: single rows, rows after those, and the first of a bin."""
    bins = (start - first) * _BINS // max(length, 1)
    begins = single.copy()
    begins[1:] |= single[:-1] | (np.diff(bins) != 0)
    begins[:1] = True
    return begins


def _device(
    device: DeviceTime, first: int, examples: Sequence[Mark], shown: Sequence[Lane]
) -> DeviceLanes:
    start = np.concatenate([spans.start for spans in device.idle.values()]) - first
    end = np.concatenate([spans.end for spans in device.idle.values()]) - first
    cause = np.repeat([*device.idle], [len(spans) for spans in device.idle.values()])
    order = _drawn_first(start, end, examples)
    kept, rest = order[:_MAX_GAPS], order[_MAX_GAPS:]
    paused = device.paused.start[:_MAX_GAPS] - first, device.paused.end[:_MAX_GAPS] - first
    gaps = [
        *_gaps(start[kept], end[kept], cause[kept]),
        *_gaps(*paused, np.full(len(paused[0]), PAUSED)),
    ]
    left_out_ns = int((end[rest] - start[rest]).sum())
    return DeviceLanes(
        used_device(device), tuple(sorted(gaps)), len(rest), left_out_ns, tuple(shown)
    )


def _drawn_first(start: Int64Array, end: Int64Array, examples: Sequence[Mark]) -> Int64Array:
    """Order gaps: half of the maximum are the longest, then come those in the example steps."""
    longest = np.argsort(start - end, kind="stable")
    first, others = np.split(longest, [_MAX_GAPS // 2])
    begin = start[others]
    inside = np.zeros(len(others), bool)
    for step in examples:
        inside |= (begin >= step.start) & (begin < step.start + step.length)
    return np.concatenate([first, others[inside], others[~inside]])


def _gaps(start: Int64Array, end: Int64Array, cause: NDArray[np.str_]) -> Iterator[Gap]:
    columns = (start.tolist(), (end - start).tolist(), cause.tolist())
    return map(Gap._make, zip(*columns, strict=True))
