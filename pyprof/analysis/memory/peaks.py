"""What filled the memory of devices: the peak and what made it up, growth, running out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pyprof.allocations.history import BEFORE
from pyprof.analysis.memory.growth import growth
from pyprof.analysis.memory.held_memory import grouped, held_blocks, held_stacks
from pyprof.analysis.memory.memory_changes import checkpoints, possible_changes
from pyprof.analysis.memory.memory_time import LayerWork, join_memory_and_time
from pyprof.answers.memory_answer import DeviceMemory, HeldAt, HeldBlock, MemoryPoint, OutOfMemory
from pyprof.arrays import MISSING
from pyprof.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyprof.allocations.free_space import FreeSpace
    from pyprof.allocations.history import History, RecordedDevice
    from pyprof.allocations.read import Recorded
    from pyprof.analysis.memory.held_memory import Moment
    from pyprof.arrays import Int64Array
    from pyprof.inputs.source import Source

_MAX_BLOCKS = 100
_MAX_OOMS = 10
_POINTS = 1000

Window: TypeAlias = "tuple[int, int]"
"""The first and the last moment, ns."""


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
            for block in held_blocks(history, state):
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
        largest=tuple(held_blocks(history, state, _MAX_BLOCKS)),
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
        largest=tuple(held_blocks(history, peak, _MAX_BLOCKS)),
        stacks=held_stacks(device, peak),
        at=None if at is None else _held_at(device, at),
        growth=growth(history, *device.steps),
        out_of_memory=tuple(_oom(device, event) for event in device.ooms[-_MAX_OOMS:]),
        changes=possible_changes(history) if device.of_tensors else (),
        checkpoints=checkpoints(history, work) if device.of_tensors else (),
        beside_time=None if source is None else join_memory_and_time(by, source),
        categories=(*history.labels["category"].names, "unknown"),
        timeline=_timeline(history, window),
        notes=device.notes,
    )


def _rounding(history: History, state: int, space: FreeSpace | None) -> int | None:
    """Return what blocks take beyond what was requested; None if unknown."""
    reserved = history.reserved_in(state)
    if space is None or reserved is None:
        return None
    rounding = reserved - history.active_in(state) - space.bytes
    return rounding if rounding >= 0 else None  # events are missing, as a note says


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
    first, end = _shown_states(history, window)
    states = first + _highest_states(history.level[first:end], time[first:end])
    labels = history.labels["category"]
    codes = (*range(len(labels.names)), MISSING)
    held = [history.levels_of(labels.codes == code)[states + 1] for code in codes]
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


def _shown_states(history: History, window: Window | None) -> tuple[int, int]:
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
