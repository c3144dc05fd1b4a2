"""What filled the memory of devices: the peak and what made it up, growth, running out of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pyprof.allocations.growth import growth
from pyprof.allocations.history import BEFORE
from pyprof.analysis.memory.held_memory import (
    HeldBlock,
    HeldMemory,
    HeldStack,
    grouped,
    held_blocks,
    held_stacks,
    live_blocks,
)
from pyprof.analysis.memory.memory_changes import (
    CheckpointedLayer,
    PossibleChange,
    checkpoints,
    possible_changes,
)
from pyprof.analysis.memory.memory_time import LayerWork, TimedMemory, beside
from pyprof.arrays import MISSING
from pyprof.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyprof.allocations.free_space import FreeSpace
    from pyprof.allocations.growth import Growth
    from pyprof.allocations.history import History, RecordedDevice
    from pyprof.allocations.read import Recorded
    from pyprof.analysis.memory.held_memory import Moment
    from pyprof.arrays import Int64Array
    from pyprof.inputs.source import Source

KEYS = ("category", "layer", "line", "op", "direction")
"""What memory is grouped by."""
_MAX_BLOCKS = 100
_MAX_OOMS = 10
_POINTS = 1000

Window: TypeAlias = "tuple[int, int]"
"""The first and the last moment, ns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfMemory:
    """A request that could not be met."""

    event_id: int
    """Number of the event, from 0."""
    time_ns: int | None
    """Since the first event; null if no times are known."""
    asked_bytes: int
    """As requested by the program."""
    device_free_bytes: int | None
    """Free memory of the device itself; null if not recorded."""
    allocated_bytes: int
    """What the program held."""
    reserved_bytes: int | None
    """Memory that the allocator had reserved on the device; null if not recorded."""
    free_bytes: int | None
    """The unused part of it; null if the file has no segments."""
    largest_free_bytes: int | None
    """The largest piece of it; null likewise."""
    line: str | None
    """The user's line that asked; null if no stack was recorded."""


@dataclass(frozen=True, slots=True)
class LeakingLine:
    """A line that holds more and more at the ends of steps."""

    line: str | None
    """null: of blocks without a known line."""
    bytes: int
    """From the first compared end of a step to the last."""
    bytes_per_step: float
    """Slope of a straight line fitted to what it holds at the ends of steps."""
    block_count: int
    """How many more blocks it holds."""


@dataclass(frozen=True, slots=True)
class StepGrowth:
    """What is held at the ends of steps."""

    marked_by: str
    """What marks the steps."""
    held_bytes: tuple[int, ...]
    """At the end of each step."""
    leaks: tuple[LeakingLine, ...]
    """Lines that hold more and more after the first step, the largest first."""


@dataclass(frozen=True, slots=True)
class MemoryPoint:
    """What is held at a moment, the most of an interval."""

    event_id: int
    """Number of the event after which that was, from 0."""
    time_ns: int | None
    """Since the first event; null if no times are known."""
    bytes: int
    """Bytes of all categories."""
    reserved_bytes: int | None
    """Memory that the allocator had reserved on the device; null if unknown."""
    category_bytes: tuple[int, ...]
    """By category, in the order of `categories`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldAt:
    """What was held at a chosen moment. Its fields for the peak are for this moment."""

    event_id: int
    """Number of the event after which that is, from 0; -1: before the first."""
    time_ns: int | None
    """Time of that event since the first one; null before it, or where no times are known."""
    bytes: int
    """What the program held."""
    active_bytes: int
    """The same with blocks that were freed but still waited for a stream."""
    reserved_bytes: int | None
    """Memory that the allocator had reserved on the device; null if unknown."""
    by: Mapping[str, tuple[HeldMemory, ...]]
    """What made it up, by category, evidence, layer, line, op, direction and size."""
    largest: tuple[HeldBlock, ...]
    """The largest live blocks, at most 100."""
    stacks: tuple[HeldStack, ...]
    """By call stack, the largest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMemory:
    """The memory of one device in one recording."""

    device: str
    """As torch names it."""
    rank: int | None
    """Rank of the process; null if unknown."""
    event_count: int
    """How many were recorded."""
    began_ns: int | None
    """When the first event was, on the clock of the file; null if no times are known."""
    span_ns: int | None
    """From the first event to the last; null if no times are known."""
    start_bytes: int
    """What was held before the first event."""
    start_block_count: int
    """Number of blocks."""
    peak_bytes: int
    """The most that was held at a time."""
    peak_event_id: int
    """Number of the event after which it was, from 0; -1: before the first."""
    peak_time_ns: int | None
    """Since the first event; null before it, or where no times are known."""
    peak_active_bytes: int
    """At the peak, with blocks that were freed but still waited for a stream."""
    peak_reserved_bytes: int | None
    """Memory that the allocator had reserved on the device at the peak; null if unknown."""
    peak_free_bytes: int | None
    """The unused part of it, fragments and cache; null if the file has no segments."""
    peak_rounding_bytes: int | None
    """The part of it that blocks take beyond their requested size; null likewise."""
    peak_free_piece_count: int | None
    """Number of unused pieces; null likewise."""
    peak_largest_free_bytes: int | None
    """The largest of them; null likewise."""
    max_active_bytes: int
    """The most that was held at a time, with freed blocks that still waited for a stream."""
    max_active_event_id: int
    """Number of the event after which that was, from 0; -1: before the first."""
    max_active_time_ns: int | None
    """Since the first event; null before it, or where no times are known."""
    max_reserved_bytes: int | None
    """The most memory that the allocator had reserved on the device; null if unknown."""
    max_reserved_event_id: int | None
    """Number of the event after which that was, from 0; -1: before the first; null likewise."""
    max_reserved_time_ns: int | None
    """Since the first event; null before it, or where no times are known."""
    end_bytes: int
    """What was held after the last event."""
    end_allocated_bytes: int | None
    """The same as the allocator counts it, with sizes rounded up; null if not recorded."""
    end_reserved_bytes: int | None
    """Memory that the allocator had reserved on the device at the end; null if unknown."""
    by: Mapping[str, tuple[HeldMemory, ...]]
    """What made up the peak, by category, evidence, layer, line, op, direction and size."""
    largest: tuple[HeldBlock, ...]
    """The largest live blocks at the peak, at most 100."""
    stacks: tuple[HeldStack, ...]
    """What made up the peak by call stack, the largest first."""
    at: HeldAt | None
    """What was held at a chosen moment; null unless one is chosen."""
    growth: StepGrowth | None
    """From step to step; null if no steps are marked, or fewer than four."""
    out_of_memory: tuple[OutOfMemory, ...]
    """The last ten."""
    changes: tuple[PossibleChange, ...]
    """What would lower the peak, most first."""
    checkpoints: tuple[CheckpointedLayer, ...]
    """Layers that hold activations at the peak, if they were checkpointed; most saved first."""
    beside_time: Mapping[str, tuple[TimedMemory, ...]] | None
    """By op, line and layer; null without a trace of the same run."""
    categories: tuple[str, ...]
    """Categories of `timeline`; the last is `unknown`."""
    timeline: tuple[MemoryPoint, ...]
    """What was held over time, at most 1,000 points."""
    notes: tuple[str, ...]
    """What the recording lacks."""


def highest_first(
    recordings: Iterable[Recorded],
    source: Source | None = None,
    window: Window | None = None,
    at: Moment | None = None,
) -> tuple[DeviceMemory, ...]:
    """Analyse every device of some recordings, the one that peaks highest first.

    `source` is a trace of the same run, for times. The timeline shows a window of time, on the
    files' clock, if the peak is in it; else everything. `at` is a moment to show beside the peak.
    """
    devices: list[DeviceMemory] = []
    work = None
    for each in recordings:
        for device in each.devices:
            if source is not None and work is None:
                work = LayerWork(source)
            devices.append(_device(each, device, source, work, window, at))
    return tuple(sorted(devices, key=lambda each: -each.peak_bytes))


def all_held(
    recordings: Iterable[Recorded], at: Moment | None = None
) -> Iterator[tuple[int | None, str, HeldBlock]]:
    """Yield every block that is live at a device's peak, or at a moment, with rank and device."""
    for recorded in recordings:
        for device in recorded.devices:
            history = device.history
            state = history.peak if at is None else _state(history, at)
            for block in held_blocks(history, live_blocks(history, state), state):
                yield recorded.rank, history.device, block


def _state(history: History, at: Moment) -> int:
    """Return the state at a moment; raise CaptureError where no times are known."""
    last = len(history.time_ns) - 1
    if at.time_ns is None:
        return min(at.event_id, last)
    if (since := history.since_first_ns) is None:
        if last < 0:
            return BEFORE
        raise CaptureError("no times were recorded: give the number of an event, as --at 100")
    return int(np.searchsorted(since, at.time_ns, "right")) - 1


def _held_at(device: RecordedDevice, at: Moment) -> HeldAt:
    history = device.history
    state = _state(history, at)
    return HeldAt(
        event_id=state,
        time_ns=history.time_of(state),
        bytes=history.held(state),
        active_bytes=history.active_in(state),
        reserved_bytes=history.reserved_in(state),
        by=grouped(history, state),
        largest=_largest(history, state),
        stacks=held_stacks(device, state),
    )


def _device(
    recorded: Recorded,
    device: RecordedDevice,
    source: Source | None,
    work: LayerWork | None,
    window: Window | None,
    at: Moment | None,
) -> DeviceMemory:
    history = device.history
    peak, last = history.peak, len(history.time_ns) - 1
    full = history.reserved_peak
    space = device.free_space(peak)
    since = history.since_first_ns
    by = grouped(history, peak)
    return DeviceMemory(
        device=history.device,
        rank=recorded.rank,
        event_count=len(history.time_ns),
        began_ns=None if since is None else int(history.time_ns[0]),
        span_ns=None if since is None else int(since[-1]),
        start_bytes=history.start,
        start_block_count=int(history.blocks.live(BEFORE).sum()),
        peak_bytes=history.held(peak),
        peak_event_id=peak,
        peak_time_ns=history.time_of(peak),
        peak_active_bytes=history.active_in(peak),
        peak_reserved_bytes=history.reserved_in(peak),
        peak_free_bytes=space and space.bytes,
        peak_rounding_bytes=_rounding(history, peak, space),
        peak_free_piece_count=space and space.pieces,
        peak_largest_free_bytes=space and space.largest_bytes,
        max_active_bytes=history.active_in(history.active_peak),
        max_active_event_id=history.active_peak,
        max_active_time_ns=history.time_of(history.active_peak),
        max_reserved_bytes=None if full is None else history.reserved_in(full),
        max_reserved_event_id=full,
        max_reserved_time_ns=None if full is None else history.time_of(full),
        end_bytes=history.held(last),
        end_allocated_bytes=device.end_allocated_bytes,
        end_reserved_bytes=history.reserved_end,
        by=by,
        largest=_largest(history, peak),
        stacks=held_stacks(device, peak),
        at=None if at is None else _held_at(device, at),
        growth=_growth(growth(history, *device.steps)),
        out_of_memory=tuple(_oom(device, event) for event in device.ooms[-_MAX_OOMS:]),
        changes=possible_changes(history) if device.of_tensors else (),
        checkpoints=checkpoints(history, work) if device.of_tensors else (),
        beside_time=None if source is None else beside(by, source),
        categories=(*history.labels["category"].names, "unknown"),
        timeline=_timeline(history, window),
        notes=device.notes,
    )


def _largest(history: History, state: int) -> tuple[HeldBlock, ...]:
    rows = live_blocks(history, state, _MAX_BLOCKS)
    return tuple(held_blocks(history, rows, state))


def _rounding(history: History, state: int, space: FreeSpace | None) -> int | None:
    """Return what blocks take beyond what was requested; None if unknown."""
    reserved = history.reserved_in(state)
    if space is None or reserved is None:
        return None
    rounding = reserved - history.active_in(state) - space.bytes
    return rounding if rounding >= 0 else None  # events are missing, as a note says


def _growth(grown: Growth | None) -> StepGrowth | None:
    if grown is None:
        return None
    leaks = tuple(LeakingLine(*leak) for leak in grown.leaks)
    return StepGrowth(grown.marked_by, grown.held, leaks)


def _oom(device: RecordedDevice, event: int) -> OutOfMemory:
    history = device.history
    space: FreeSpace | None = device.free_space(event)
    asked, free, line = device.request(event)
    return OutOfMemory(
        event_id=event,
        time_ns=history.time_of(event),
        asked_bytes=asked,
        device_free_bytes=free,
        allocated_bytes=history.held(event),
        reserved_bytes=history.reserved_in(event),
        free_bytes=space and space.bytes,
        largest_free_bytes=space and space.largest_bytes,
        line=line,
    )


def _timeline(history: History, window: Window | None) -> tuple[MemoryPoint, ...]:
    """The highest state of each of some intervals, by category."""
    count = len(history.time_ns)
    if not count:
        return ()
    since = history.since_first_ns
    time = np.arange(count) if since is None else since
    first, end = _shown(history, window)
    states = first + _highest_states(history.level[first:end], time[first:end])
    labels = history.labels["category"]
    held = [history.level_of(labels.codes == code)[states] for code in range(len(labels.names))]
    held.append(history.level_of(labels.codes == MISSING)[states])
    reserved = history.reserved
    return tuple(
        MemoryPoint(
            state,
            history.time_of(state),
            int(history.level[state]),
            int(reserved[state]) if reserved is not None else None,
            tuple(int(each[index]) for each in held),
        )
        for index, state in enumerate(states.tolist())
    )


def _shown(history: History, window: Window | None) -> tuple[int, int]:
    """The first state to show and the one after the last; all unless a window holds the peak.

    The state in which a window begins is its first.
    """
    count, since = len(history.time_ns), history.since_first_ns
    if since is None or window is None or history.peak < 0:
        return 0, count
    low, high = (moment - int(history.time_ns[0]) for moment in window)
    if not low <= int(since[history.peak]) <= high:
        return 0, count
    first = int(np.searchsorted(since, low, "left"))
    return max(first - 1, 0), int(np.searchsorted(since, high, "right"))


def _highest_states(level: Int64Array, time: Int64Array) -> Int64Array:
    """Find the highest state of each of some intervals of time."""
    span = int(time[-1] - time[0]) + 1
    passed = (time - time[0]).astype(np.float64)
    interval = np.minimum(passed * _POINTS // span, _POINTS - 1)
    starts = np.flatnonzero(np.diff(interval, prepend=-1))
    highest = np.maximum.reduceat(level, starts)
    is_highest = level == np.repeat(highest, np.diff(np.append(starts, len(level))))
    states = np.flatnonzero(is_highest)
    chosen: Int64Array = states[np.diff(interval[states], prepend=-1) != 0]
    return chosen
