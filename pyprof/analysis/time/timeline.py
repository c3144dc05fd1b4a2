"""GPU streams, and when each GPU worked, on what, and why it idled: by interval arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyprof import schema
from pyprof.analysis.time import cpu_idle, host_api, idle
from pyprof.analysis.time.intervals import EMPTY, Intervals, complement, union, union_of
from pyprof.arrays import MISSING
from pyprof.parse.launches import launch_bounds
from pyprof.parse.ranges.nesting import by_value
from pyprof.prof.processor import GPU, word
from pyprof.records.records import combinations, distinct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from pyprof.analysis.time.intervals import Intervals
    from pyprof.arrays import Int64Array, IntArray, Mask
    from pyprof.records.records import Records
    from pyprof.schema import Capture


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream of one device of one process, and the rows that ran on it, in row order."""

    pid: int | None
    device: int | None
    stream: int | None
    rows: NDArray[np.int64]
    cpu: bool
    """Its rows are ops timed on the CPU, by a capture without a GPU."""
    several_processes: bool
    processor: str = GPU
    """What users call the device."""

    @property
    def device_label(self) -> str:
        """Name the device for people; with the process only if there are several."""
        name = "CPU ops" if self.cpu else self.processor
        name += "" if self.cpu or self.device is None else f" {self.device}"
        named = self.several_processes and self.pid is not None
        return f"{name}, process {self.pid}" if named else name

    @property
    def label(self) -> str:
        """Name device and stream for people."""
        has_number = self.stream is not None and not self.cpu
        return f"{self.device_label}, stream {self.stream}" if has_number else self.device_label


def streams(records: Records) -> list[Stream]:
    """List the streams by process, device and number, which are None if the records lack them."""
    keys = [records.numpy(name, MISSING) for name in ("pid", "device", "stream")]
    if not records.rows:
        return []
    first, number = combinations(*keys)
    rows_of = dict(by_value(number))
    several = len(np.unique(keys[0])) > 1
    cpu = records.of_kind(schema.CPU)
    gpu = records.dictionary("gpu")
    words = [word(name) for name in (*gpu.values, None)]
    listed = []
    for index in np.lexsort([key[first] for key in keys[::-1]]).tolist():
        rows = rows_of[index]
        identifiers = [int(key[rows[0]]) for key in keys]
        pid, device, stream = (None if value == MISSING else value for value in identifiers)
        on_cpu, called = bool(cpu[rows[0]]), words[gpu.index[rows[0]]]
        listed.append(Stream(pid, device, stream, rows, on_cpu, several, called))
    return listed


def in_order(records: Records, stream: Stream) -> NDArray[np.int64]:
    """Return a stream's rows by start; in row order if the records have no times."""
    if "start" not in records.columns:
        return stream.rows
    start, end = records.numpy("start")[stream.rows], records.numpy("end")[stream.rows]
    return stream.rows[np.lexsort((end, start))]


# Sums of durations mislead if streams overlap: everything here is the length of a set of time.
COMPUTE, COMMUNICATION, COPY = range(3)
"""What a row is: kernels, graphs and fills of memory; collectives' kernels; copies."""

BLOCKING = "launches blocked (CUDA_LAUNCH_BLOCKING=1): idle time and overlap are not the program's"
"""The warning about a capture in which launches blocked."""

_BLOCKED = 0.95
"""From this share of kernels on that end inside their launching call, launches are blocking."""


@dataclass(frozen=True, slots=True)
class DeviceTime:
    """One GPU as one process used it. Sets of time in ns on the capture's clock."""

    pid: int
    device: int
    gpu: str | None
    rank: int | None
    start_ns: int
    end_ns: int
    compute: Intervals
    communication: Intervals
    copy: Intervals
    paused: Intervals
    """When the profiler was paused, and so nothing is known to have run: no part of the span."""
    windows: int
    """Number of recordings that make up the span."""
    gaps: idle.Gaps
    idle: Mapping[str, Intervals]
    """Idle time by cause; see `idle.CAUSES`."""

    @property
    def on_cpu(self) -> bool:
        """Whether this is no GPU but the CPU: the ops of a capture without GPU work."""
        return self.gpu == schema.KINDS[schema.CPU]

    @property
    def busy(self) -> Intervals:
        """When anything ran."""
        return self.compute | self.communication | self.copy

    @property
    def span(self) -> Intervals:
        """From the first start to the last end, without pauses: busy and idle time add up to it."""
        return union_of(np.array([self.start_ns]), np.array([self.end_ns])) - self.paused

    @property
    def span_ns(self) -> int:
        """The length of the span."""
        return self.span.total

    @property
    def busy_ns(self) -> int:
        """Time in which anything ran."""
        return self.busy.total

    @property
    def idle_ns(self) -> int:
        """Time in which nothing ran."""
        return self.span_ns - self.busy_ns

    @property
    def exposed_communication(self) -> Intervals:
        """Communication while nothing was computed."""
        return self.communication - self.compute

    @property
    def exposed_copy(self) -> Intervals:
        """Copies while nothing else ran."""
        return self.copy - self.compute - self.communication

    @property
    def overlap_ns(self) -> int:
        """Time in which work of at least two of the three kinds ran."""
        with_compute = self.compute & (self.communication | self.copy)
        return (with_compute | (self.communication & self.copy)).total


@dataclass(frozen=True, slots=True)
class Timeline:
    """All GPUs of a capture, in the order of their process and number."""

    devices: tuple[DeviceTime, ...]
    api_known: bool
    """False if synchronising calls are unknown, so that their time counts as the host's."""
    blocking: bool
    """Launches blocked (CUDA_LAUNCH_BLOCKING=1): idle time and overlap are not the program's."""
    left_out: int
    """GPUs that hardly worked, or with fewer rows, that were not looked at."""


_MAX_GPUS = 1024
"""Maximum number of GPUs looked at, each as one process used it; no machine has as many."""
_MIN_WORK = 0.01
"""Minimum work of a GPU as a share of the busiest one's: with less, as some fills by a process of
another GPU, it waits for nothing."""


def activity_classes(records: Records) -> IntArray:
    """Return for each row whether it computes, communicates or copies."""
    copy = records.of_kind(schema.MEMCPY)
    comm = records.dictionary("dir").is_in("comm")
    return np.select([copy, comm], [np.int8(COPY), np.int8(COMMUNICATION)], np.int8(COMPUTE))


def runs_alone(capture: Capture | None) -> bool:
    """Whether the profiler ran each kernel alone, so that overlap and idle time are unknown."""
    return capture is not None and capture.tool == "ncu"


def timeline(
    records: Records, capture: Capture | None = None, rows: Mask | None = None
) -> Timeline | None:
    """Analyse all rows, or the span of some; None if the records hold no times.

    The span of some rows begins where the work before them on their device ended, so that it
    includes the wait for their first; in each window of the capture, if there are several. What
    else ran in it was work, too.
    """
    if "start" not in records.columns or not records.rows:
        return None
    chosen = np.ones(records.rows, bool) if rows is None else rows
    called = host_api.calls(records, capture)
    pid, device = records.numpy("pid"), records.numpy("device")
    hosts = called.hosts()
    columns = _Columns(records, chosen, capture)
    lanes = [
        ((process, number), ours[rows])
        for process, ours in by_value(pid)
        for number, rows in by_value(device[ours])
        if chosen[ours[rows]].any()
    ]
    work_ns = np.where(chosen, np.maximum(records.numpy("end") - records.numpy("start"), 0), 0)
    of_lane = [int(work_ns[rows].sum()) for _, rows in lanes]
    least = _MIN_WORK * max(of_lane, default=0)
    used = [lane for lane, ns in zip(lanes, of_lane, strict=True) if ns >= least]
    busiest = sorted(
        sorted(used, key=lambda lane: -len(lane[1]))[:_MAX_GPUS], key=lambda lane: lane[0]
    )
    ran = {key: union_of(columns.start[rows], columns.end[rows]) for key, rows in busiest}
    device_times = tuple(
        columns.device(key, rows, hosts.get(key[0], host_api.SILENT), _busy_elsewhere(ran, key))
        for key, rows in busiest
    )
    launched = chosen & (columns.launch_start >= 0) & records.of_kind(schema.KERNEL)
    ended = columns.launch_end[launched] >= columns.end[launched]
    blocking = bool(len(ended)) and float(ended.mean()) >= _BLOCKED
    return Timeline(device_times, called.complete, blocking, len(lanes) - len(busiest))


def _busy_elsewhere(ran: Mapping[tuple[int, int], Intervals], key: tuple[int, int]) -> Intervals:
    """Return when other GPUs of a process ran something, given all by process and device."""
    pid, device = key
    others = {number: busy for (owner, number), busy in ran.items() if owner == pid}
    if device == MISSING:  # it may be any of them
        return EMPTY
    return union(busy for number, busy in others.items() if number not in (device, MISSING))


class _Columns:
    """The columns that the analysis needs, taken out of the records once."""

    def __init__(self, records: Records, chosen: Mask, capture: Capture | None) -> None:
        self.records, self.chosen, self.capture = records, chosen, capture
        self.activity_class = activity_classes(records)
        self.start, self.end = records.numpy("start"), records.numpy("end")
        self.window = records.numpy("window", 0)
        self.gpu, self.rank = records.dictionary("gpu"), records.dictionary("rank")
        self.launch_start, self.launch_end = launch_bounds(records)
        self.launch_kind = host_api.launch_kinds(records)
        self.replay = records.numpy("replay")

    def device(
        self, key: tuple[int, int], on_device: Int64Array, host: host_api.Host, others: Intervals
    ) -> DeviceTime:
        """Analyse one device of one process, given all its rows, and when its others worked."""
        chosen = self.chosen[on_device]
        first, last, paused, windows = recorded(
            chosen, *(column[on_device] for column in (self.window, self.start, self.end))
        )
        rows = on_device[np.argsort(self.start[on_device], kind="stable")]
        of_class = (rows[self.activity_class[rows] == number] for number in range(3))
        compute, communication, copy = (
            union_of(self.start[each], self.end[each]) for each in of_class
        )
        if not chosen.all():
            compute, communication, copy = (
                each.cut(first, last) - paused for each in (compute, communication, copy)
            )
        free = complement(compute | communication | copy, first, last)
        gaps = self._gaps(rows, free - paused)
        gpu = self.gpu.at(rows[0])
        if gpu == schema.KINDS[schema.CPU]:
            of_cpu = cpu_idle.causes(union_of(gaps.start, gaps.end), self.capture)
            causes = {**dict.fromkeys(idle.CAUSES, EMPTY), **of_cpu}
        else:
            causes = idle.causes(gaps, host, others)
        return DeviceTime(
            *key, gpu, self.rank.at(rows[0]), first, last, compute, communication, copy,
            paused, windows, gaps, causes,
        )  # fmt: skip

    def _gaps(self, rows: Int64Array, free: Intervals) -> idle.Gaps:
        index = np.searchsorted(self.start[rows], free.end)
        end = self.end[rows]
        latest = np.maximum.accumulate(end)
        last_ended = np.maximum.accumulate(np.where(end == latest, np.arange(len(end)), 0))
        row, before = rows[index], rows[last_ended[np.maximum(index - 1, 0)]]
        in_replay = (
            (index > 0) & (self.replay[row] >= 0) & (self.replay[row] == self.replay[before])
        )
        called = self.launch_start[row], self.launch_end[row], self.launch_kind[row]
        return idle.Gaps(free.start, free.end, row, *called, in_replay)


class Recorded(NamedTuple):
    """When some rows were recorded. Times in ns."""

    start_ns: int
    end_ns: int
    paused: Intervals
    """Time between windows; empty if there is one, or if work of one ran on into the next."""
    windows: int
    """Number of windows that the rows are from."""


def recorded(chosen: Mask, window: Int64Array, start: Int64Array, end: Int64Array) -> Recorded:
    """Measure windows from the window, start and end of rows; at least one row must be chosen.

    A window begins where the work before its first chosen row ended, or with that row.
    """
    names, number = distinct(window)
    count, limits = len(names), np.iinfo(np.int64)
    first, last, before = (np.full(count, value) for value in (limits.max, limits.min, limits.min))
    np.minimum.at(first, number[chosen], start[chosen])
    np.maximum.at(last, number[chosen], end[chosen])
    earlier = ~chosen & (start < first[number])
    np.maximum.at(before, number[earlier], end[earlier])
    there = last > limits.min
    first = np.where(before > limits.min, np.minimum(first, before), first)[there]
    last = last[there]
    bounds = int(first.min()), int(last.max())
    return Recorded(*bounds, complement(union_of(first, last), *bounds), int(there.sum()))
