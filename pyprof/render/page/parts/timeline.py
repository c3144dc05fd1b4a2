"""What ran when on each stream, in lanes of boxes, and below them why a GPU idled.

A page holds some thousand boxes, a capture a million kernels. Kernels of a typical step and of the
slowest one are boxes of their own, and so are the longest ones; the others join their neighbours on
the stream, in boxes that show what took most of their time. The longest gaps are drawn, and those
of these two steps. How many are left out is stated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyprof.analysis.time.timeline import in_order, streams
from pyprof.arrays import MISSING
from pyprof.quantities import duration
from pyprof.records import merging
from pyprof.records.merging import merged_by
from pyprof.records.records import combinations, totals
from pyprof.render.page import figures
from pyprof.render.page.cross_filter import KEYS
from pyprof.render.page.strips import steps_with_work
from pyprof.render.page.tables import device_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from pyprof.analysis.summary.overview import Overview
    from pyprof.analysis.time.steps import Steps
    from pyprof.analysis.time.timeline import DeviceTime, Stream
    from pyprof.arrays import Int64Array, IntArray, Mask
    from pyprof.records.records import Records
    from pyprof.render.page.parts import Page, PartInput

TITLE, ORDER = "Timeline", 40

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
_MAX_LANES = 32
_MAX_DEVICES = 8
_MAX_MARKS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """The boxes of a stream, in the order of time. Times in ns from the capture's first kernel."""

    name: str
    start: Int64Array
    length: Int64Array
    summed: Int64Array
    """The time of its kernels; more than its length where they overlap, as a stream's may."""
    rows: Int64Array
    """How many kernels it holds."""
    texts: pa.Table
    """What describes kernels: `cross_filter.KEYS`."""
    longest: Int64Array
    """The row in `texts` of its longest kernel."""
    parts: Parts


@dataclass(frozen=True, slots=True)
class Parts:
    """What boxes of several kernels consist of: the kinds with most time in each."""

    box: Int64Array
    """The index of the box in its lane."""
    kind: Int64Array
    """The row in the lane's `texts`."""
    ns: Int64Array
    """Summed time."""


class Gap(NamedTuple):
    """A time in which a device did nothing, for one reason."""

    start: int
    length: int
    cause: str


@dataclass(frozen=True, slots=True)
class DeviceLanes:
    """One device as one process used it: why it idled, and its streams."""

    name: str
    gaps: tuple[Gap, ...]
    gaps_left_out: int
    left_out_ns: int
    lanes: tuple[Lane, ...]


class Mark(NamedTuple):
    """A step."""

    name: str
    start: int
    length: int


def _as_many_as_fit(
    a: tuple[DeviceLanes, ...], b: tuple[DeviceLanes, ...]
) -> tuple[DeviceLanes, ...]:
    """Put the devices of another capture below these, those for whose lanes there is room."""
    devices = [*a]
    room = _MAX_LANES - sum(len(device.lanes) for device in devices)
    for device in b:
        if len(devices) < _MAX_DEVICES and len(device.lanes) <= room:
            room -= len(device.lanes)
            devices.append(device)
    return tuple(devices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """All devices, each capture on its own clock, from its first kernel on."""

    devices: tuple[DeviceLanes, ...] = merged_by(_as_many_as_fit)
    device_count: int
    """Number of devices, with those that are not drawn."""
    marks: tuple[Mark, ...] = merged_by(merging.first)
    """The first steps of the first capture."""
    marks_left_out: int = merged_by(merging.first)
    typical: Mark | None = merged_by(merging.first)
    """The step after warm-up whose time is nearest to the median."""
    slowest: Mark | None = merged_by(merging.first)
    length_ns: int = merged_by(max)
    streams_left_out: int
    captures: int = 1

    @property
    def devices_left_out(self) -> int:
        """Number of devices that are not drawn."""
        return self.device_count - len(self.devices)


def summarise(gathered: PartInput) -> Lanes | None:
    """Draw the chosen rows; None if the records hold no times."""
    overview, records = gathered.overview, gathered.source.table.records
    if overview.timeline is None:
        return None
    rows = np.ones(records.rows, bool) if overview.rows is None else overview.rows
    devices = overview.timeline.devices[:_MAX_DEVICES]
    first, length = extent(devices)
    shown, marks = _marks(records, overview, first)
    typical, slowest = _examples(overview.steps, shown)
    drawn, left_out = _chosen_streams(records, rows, devices)
    examples = [marks(step) for step in (typical, slowest) if step is not None]
    single = _single(gathered, rows, drawn, length, typical, slowest)
    drawn_devices = tuple(
        _device(device, first, examples,
                [_lane(gathered, stream, rows, single, first, length)
                 for stream in drawn if (stream.pid, stream.device) == _key(device)])
        for device in devices
    )  # fmt: skip
    return Lanes(
        devices=drawn_devices,
        marks=tuple(map(marks, shown[:_MAX_MARKS].tolist())),
        marks_left_out=len(shown[_MAX_MARKS:]),
        typical=None if typical is None else marks(typical),
        slowest=None if slowest is None else marks(slowest),
        length_ns=length,
        device_count=len(overview.timeline.devices) + overview.timeline.left_out,
        streams_left_out=left_out,
    )


def section(page: Page) -> Mapping[str, Any] | None:
    """Return the figure, and a note of what is not drawn."""
    drawn: Lanes | None = page.data
    if drawn is None:
        return None
    rows = [lane.rows for device in drawn.devices for lane in device.lanes]
    gaps = sum(device.gaps_left_out for device in drawn.devices)
    used = {gap.cause for device in drawn.devices for gap in device.gaps}
    return {
        "timeline": figures.timeline(drawn, page.selectable),
        "joined": sum(int(each[each > 1].sum()) for each in rows),
        "single": sum(int((each == 1).sum()) for each in rows),
        "gaps_left_out": gaps,
        "gaps_time": duration(sum(device.left_out_ns for device in drawn.devices)),
        "devices_left_out": drawn.devices_left_out,
        "streams_left_out": drawn.streams_left_out,
        "marks_left_out": drawn.marks_left_out if drawn.captures == 1 else 0,
        "captures": drawn.captures,
        "causes": [(name, colour, figures.MEANINGS[name])
                   for name, colour in figures.IDLE.items() if name in used],
    }  # fmt: skip


def extent(devices: Sequence[DeviceTime]) -> tuple[int, int]:
    """Return when the first kernel began, ns, and how long after that the last one ended."""
    shown = devices[:_MAX_DEVICES]
    first = min(device.start_ns for device in shown)
    return first, max(device.end_ns for device in shown) - first


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
    busiest = sorted(candidates, key=lambda stream: -int(time[stream.rows].sum()))[:_MAX_LANES]
    kept = {id(stream) for stream in busiest}
    return [stream for stream in candidates if id(stream) in kept], len(candidates) - len(busiest)


def _marks(
    records: Records, overview: Overview, first: int
) -> tuple[Int64Array, Callable[[int], Mark]]:
    """The steps with work on the GPU, and a function that makes the mark of a step."""
    shown, ended = steps_with_work(records, overview)

    def mark(step: int) -> Mark:
        duration = int(overview.steps.duration_ns[step])
        return Mark(f"step {step}", max(int(ended[step]) - duration - first, 0), duration)

    return shown, mark


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
    gathered: PartInput, rows: Mask, drawn: Sequence[Stream], length: int, *examples: int | None
) -> Mask:
    """Find the rows that get their own boxes: all if there are few, else those worth a look.

    These are those of the example steps, then the longest that stand out in their bin.
    """
    records, steps = gathered.source.table.records, gathered.overview.steps
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
    gathered: PartInput, stream: Stream, chosen: Mask, single: Mask, first: int, length: int
) -> Lane:
    records, facts = gathered.source.table.records, gathered.facts
    rows = in_order(records, stream)
    rows = rows[chosen[rows]]
    start, end = records.numpy("start")[rows], records.numpy("end")[rows]
    fact = facts.of_row[rows]
    begin = _begins(start, single[rows], first, length)
    begins = np.flatnonzero(begin)
    count = np.diff(begins, append=len(rows))
    time, last, start = end - start, np.maximum.reduceat(end, begins), start[begins]
    box = np.cumsum(begin, dtype=np.int32)
    box -= 1
    top = np.flatnonzero(time == np.maximum.reduceat(time, begins).take(box))
    # the first of these in each box
    longest = top[np.flatnonzero(np.diff(box.take(top), prepend=np.int32(-1)))]
    part_box, part_fact, part_ns = _parts(box, (count > 1).take(box), fact, time)
    used, index = np.unique(np.concatenate([fact[longest], part_fact]), return_inverse=True)
    number = "" if stream.stream is None or stream.cpu else f"stream {stream.stream}"
    return Lane(
        name=number or stream.device_label,
        start=start - first,
        length=last - start,
        summed=np.add.reduceat(time, begins),
        rows=count,
        texts=facts.combinations.select(KEYS).take(used),
        longest=index[: len(longest)],
        parts=Parts(part_box, index[len(longest) :], part_ns),
    )


def _parts(
    box: IntArray, joined: Mask, fact: IntArray, time: Int64Array
) -> tuple[Int64Array, IntArray, Int64Array]:
    """Add up what joined boxes consist of; return box, fact and time of the longest of each box."""
    box, fact = box[joined], fact[joined]
    first, number = combinations(box, fact)
    ns = totals(number, time[joined], len(first))
    order = np.lexsort((-ns, box[first]))
    first, ns = first[order], ns[order]
    of_box = box[first].astype(np.int64)
    kept = np.arange(len(of_box)) - np.searchsorted(of_box, of_box) < _MAX_PARTS
    return of_box[kept], fact[first[kept]], ns[kept]


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
        *_gaps(*paused, np.full(len(paused[0]), figures.PAUSED)),
    ]
    left_out_ns = int((end[rest] - start[rest]).sum())
    return DeviceLanes(
        device_name(device), tuple(sorted(gaps)), len(rest), left_out_ns, tuple(shown)
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
