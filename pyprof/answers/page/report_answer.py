"""The answer of `pyprof report`: the summary, and what only the page shows. It has no JSON."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from pyprof.records import merging
from pyprof.records.merging import merged_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from pyprof.answers.lines_answer import Lines
    from pyprof.answers.memory_answer import DeviceMemory, RankMemory
    from pyprof.answers.page.roofline_answer import Point, Roof
    from pyprof.answers.summary_answer import Summary
    from pyprof.answers.try_answer import Try
    from pyprof.answers.whatif_answer import WhatIf
    from pyprof.arrays import Floats, Int64Array

ATTRIBUTES = ("op", "dir", "line", "stack", "layer", "kernel", "family", "tc", "bound")
"""What identifies a row: a click on the page selects by these."""
STACK_SEPARATOR = "\n"
"""Between the lines of a `stack`; no line contains it."""
PAUSED = "paused"
"""Cause of a gap while the profiler was paused: what ran then is unknown."""
KINDS_OF_WORK = ("compute", "communication", "copy")
MAX_DEVICES = 8
"""Maximum number of devices whose timeline is drawn."""
MAX_LANES = 32
MAX_RANKS = 64


class UsedDevice(NamedTuple):
    """A device as one process used it."""

    processor: str
    """GPU, NPU or the like; CPU in a capture without one."""
    device: int | None
    """Its number; None if not recorded."""
    rank: int | None
    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTime:
    """The calls of a kernel by one op."""

    kernel: str | None
    full_name: str
    """With its template arguments; "" if only the short name is known."""
    op: str | None
    tc: str | None
    """As in the column `tc` of prof."""
    calls: int
    time_ns: int
    share: float
    """Share of the summed time of all rows, 0 to 1."""
    flops_per_s: float | None
    bytes_per_s: float | None


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
    """What describes kernels: `ATTRIBUTES`."""
    longest: Int64Array
    """The row in `texts` of its longest kernel."""
    parts: Parts
    rest: Parts
    """What boxes consist of besides `parts`, by family: `kind` is a row of that family."""


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
    """One device: why it idled, and its streams."""

    device: UsedDevice
    gaps: tuple[Gap, ...]
    gaps_left_out: int
    left_out_ns: int
    lanes: tuple[Lane, ...]


class Mark(NamedTuple):
    """A step."""

    step: int
    start: int
    length: int


def _append_devices(
    a: tuple[DeviceLanes, ...], b: tuple[DeviceLanes, ...]
) -> tuple[DeviceLanes, ...]:
    """Put the devices of another capture below these, those for whose lanes there is room."""
    devices = [*a]
    room = MAX_LANES - sum(len(device.lanes) for device in devices)
    for device in b:
        if len(devices) < MAX_DEVICES and len(device.lanes) <= room:
            room -= len(device.lanes)
            devices.append(device)
    return tuple(devices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """What ran when on all devices, each capture on its own clock, from its first kernel on."""

    devices: tuple[DeviceLanes, ...] = merged_by(_append_devices)
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


@dataclass(frozen=True, slots=True)
class DeviceSteps:
    """Times of steps by GPU, each from the end of the previous step on the GPU to its own."""

    kind: str
    """Kind of `steps.Steps`; steps of different kinds do not match by number."""
    devices: tuple[UsedDevice, ...]
    duration_ns: tuple[Floats, ...]
    """One array for each GPU; NaN for a step in which it did nothing."""
    computing_ns: tuple[Floats, ...]
    """The same for compute time: ranks that wait for each other take equally long."""
    left_out: int = 0

    def merged(self, other: DeviceSteps) -> DeviceSteps:
        """Put the GPUs of another capture below these."""
        if other.kind != self.kind:
            kept, rest = (self, other) if self.devices else (other, self)
            return replace(kept, left_out=kept.left_out + len(rest.devices) + rest.left_out)
        devices = (*self.devices, *other.devices)
        durations = (*self.duration_ns, *other.duration_ns)
        computing = (*self.computing_ns, *other.computing_ns)
        return DeviceSteps(
            self.kind,
            devices[:MAX_RANKS],
            durations[:MAX_RANKS],
            computing[:MAX_RANKS],
            self.left_out + other.left_out + len(devices[MAX_RANKS:]),
        )

    @property
    def steps(self) -> int:
        """The number of steps."""
        return max((len(duration) for duration in self.duration_ns), default=0)


@dataclass(frozen=True, slots=True)
class StripRow:
    """What one device did in one step, or else in one recording."""

    step: int | None
    recording: int | None
    """Number of a period recorded without a pause; None if there is only one."""
    length_ns: int
    bins: tuple[Floats, Floats, Floats, Int64Array]
    """Left and right ns from the row's start, share busy (0 to 1), and the index in KINDS_OF_WORK
    of what took most of that; bins in which nothing ran are left out."""


@dataclass(frozen=True, slots=True)
class Strips:
    """How busy devices are in each short bin of some steps, and with what."""

    rows: tuple[tuple[UsedDevice, tuple[StripRow, ...]], ...]
    """Of each device."""
    steps_left_out: int
    devices_left_out: int


class Clock(NamedTuple):
    """The time that the timeline shows."""

    start_ns: int
    """On the clock of the recording."""
    length_ns: int

    @property
    def window(self) -> tuple[int, int]:
        """The time in which a peak is shown there: the host allocates ahead of the kernels."""
        return self.start_ns - self.length_ns // 2, self.start_ns + self.length_ns


@dataclass(frozen=True, slots=True)
class HighestMemory:
    """The device that peaks highest, and how high all do."""

    device: DeviceMemory
    clock: Clock | None
    """The timeline of its capture; None if there is none."""
    peaks: tuple[RankMemory, ...]

    def merged(self, other: HighestMemory) -> HighestMemory:
        """Keep the device that peaks highest, and the peaks of all, the highest first."""
        highest = max(self, other, key=lambda each: each.device.peak_bytes)
        peaks = sorted((*self.peaks, *other.peaks), key=lambda each: -each.peak_bytes)
        return replace(highest, peaks=tuple(peaks))


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a page shows."""

    summary: Summary
    attributes: pa.Table
    """The distinct combinations of `ATTRIBUTES`, with time (`ns`) and number (`rows`) of rows."""
    kernels: Sequence[KernelTime]
    """The longest first."""
    lines: Lines
    points: Sequence[Point]
    """What ops achieve, the longest first."""
    roofs: Sequence[Roof]
    """Those with most time first; none for an unknown device."""
    lanes: Lanes | None
    """None if the records hold no times."""
    device_steps: DeviceSteps
    strips: Strips | None
    """None if the records hold no times."""
    memory: HighestMemory | None
    """None if no memory was recorded."""
    tried: Try | None
    """The trial that the first capture is of; None if it is of none."""
    whatif: WhatIf | None
    """None if steps are chosen, which are not predicted by themselves."""
    tools: Sequence[str]
    """The profilers that recorded the captures."""
    began_ns: int | None
    """When the first recording began, ns since 1970; None if unknown."""
