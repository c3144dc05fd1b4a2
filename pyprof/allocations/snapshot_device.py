"""The memory of each device of a snapshot, and what else the snapshot holds about it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from pyprof.allocations import categories, stacks, trace_history
from pyprof.allocations import snapshot_ranges as ranges
from pyprof.allocations.free_space import free_space
from pyprof.allocations.history import (
    BEFORE,
    Blocks,
    History,
    Labels,
    RecordedDevice,
    label,
    or_else,
    replay,
)
from pyprof.allocations.snapshot import ADDS, TAKES
from pyprof.allocations.stacks import is_python
from pyprof.allocations.unpickle import ACTIONS, STATES
from pyprof.arrays import MISSING
from pyprof.quantities import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyprof.allocations.free_space import FreeSpace
    from pyprof.allocations.snapshot import Events, Snapshot
    from pyprof.allocations.stacks import Described
    from pyprof.arrays import Int64Array, Mask
    from pyprof.schema import Capture


_OOM = ACTIONS.index("oom")


def devices(read: Snapshot, capture: Capture | None) -> tuple[SnapshotDevice, ...]:
    """Build the devices of a snapshot; a capture of the same run adds context to its events."""
    described = stacks.describe(read)
    return tuple(recorded_device(read, n, described, capture) for n in device_numbers(read))


@dataclass(frozen=True)
class SnapshotDevice(RecordedDevice):
    """A device of a snapshot."""

    snapshot: Snapshot = field(kw_only=True)
    described: Described = field(kw_only=True)
    number: int = field(kw_only=True)
    block_stack: Int64Array = field(kw_only=True)
    """The row of the snapshot's stacks for each block."""

    def call_stacks(self, rows: Int64Array) -> Labels:
        """Label some blocks with their call stacks; C++ stacks only give the op."""
        numbers, codes = np.unique(self.block_stack[rows], return_inverse=True)
        texts: list[str | None] = []
        for number in numbers.tolist():
            frames = filter(is_python, reversed(self.snapshot.stack(number)))
            lines = [f"{frame.name} ({frame.file}:{frame.line})" for frame in frames]
            texts.append("\n".join(" ".join(line.split()) for line in lines) or None)
        return label(texts).take(codes.reshape(-1))

    def free_space(self, state: int) -> FreeSpace | None:
        """Find unused memory that the allocator holds."""
        return free_space(self.snapshot, self.number, self.history.blocks, state)

    def request(self, event: int) -> tuple[int, int | None, str | None]:
        """Return the bytes that an OOM requested, those free, and the line of the request."""
        events = self.snapshot.of_device(self.number)
        free = int(events.free_bytes[event])
        line = self.described.line.at(events.stack[[event]])[0]
        return int(events.bytes[event]), None if free == MISSING else free, line


def _steps(
    read: Snapshot, number: int, history: History, clues: Int64Array, capture: Capture | None
) -> tuple[str, tuple[int, ...]]:
    marked_by, moments = ranges.step_bounds(read, number)
    if not len(moments) and capture is not None:
        marked_by, moments = trace_history.step_bounds(capture)
    if len(moments):
        # the state at each moment
        states: Int64Array = (
            np.searchsorted(np.maximum.accumulate(history.time_ns), moments, "right") - 1
        )
        return marked_by, tuple(states[states >= 0].tolist())
    by_optimizer, by_zero_grad = _ends_by_stacks(history, clues)
    if len(by_optimizer) < len(by_zero_grad):  # a fused optimizer, and SGD, allocate nothing
        return "zero_grad's stacks", tuple(by_zero_grad.tolist())
    return "the optimizer's stacks", tuple(by_optimizer.tolist())


def _ends_by_stacks(history: History, clues: Int64Array) -> tuple[Int64Array, Int64Array]:
    """The states before allocations that follow the optimizer's, and those that follow zero_grad.

    The last step ends with the last free of both, as the model may go before the recording ends.
    """
    allocated, direction = history.blocks.allocated, history.labels["direction"]
    within = allocated >= 0
    known = within & (direction.codes != MISSING)
    by_optimizer = direction.codes == categories.DIRECTIONS.index("optimizer")

    def events_of(blocks: Mask) -> Mask:
        return np.bincount(allocated[blocks], minlength=len(clues)) > 0

    allocates = events_of(within)
    zero_grad = ((clues & stacks.FrameHint.ZERO_GRAD) != 0) & ~allocates
    optimizer = ((clues & stacks.FrameHint.OPTIMIZER) != 0) & ~allocates
    last = max(np.flatnonzero(zero_grad | optimizer).tolist(), default=len(clues) - 1)
    return (
        _ends_of_runs(events_of(known & by_optimizer), events_of(known & ~by_optimizer), last),
        _ends_of_runs(zero_grad, allocates, last),
    )


def _ends_of_runs(marks: Mask, others: Mask, last: int) -> Int64Array:
    """For each run of marked events, the state before the event of `others` after it, or `last`."""
    events = np.flatnonzero(marks | others)
    ends_run = marks[events] & ~np.append(marks[events], False)[1:]
    before_next = np.append(events, last + 1)[1:] - 1
    return np.asarray(before_next[ends_run])


_FREES = [ACTIONS.index(name) for name in ("free_requested", "free_completed")]
_ALLOCATED, _PENDING = (STATES.index(name) for name in ("active_allocated", "active_pending_free"))


def device_numbers(snapshot: Snapshot) -> list[int]:
    """List the devices that did or hold anything."""
    used = {device for device, events in enumerate(snapshot.events) if len(events)}
    return sorted(used | set(snapshot.segments.device.tolist()))


def recorded_device(
    snapshot: Snapshot,
    device: int,
    described: stacks.Described,
    capture: Capture | None = None,
) -> SnapshotDevice:
    """Return one device; `described` is the result of `stacks.describe`.

    A capture of the same run adds to each event what was running then.
    """
    events = snapshot.of_device(device)
    replayed = replay(events.action, events.address, events.bytes)
    own = snapshot.segments.device[snapshot.blocks.segment] == device
    earlier, earlier_blocks = _find_unmentioned(snapshot, own, events)
    blocks = replayed.blocks.plus(earlier_blocks)
    of_event = np.where(replayed.blocks.allocated == BEFORE, MISSING,
                        events.stack[replayed.event])  # fmt: skip
    stack = np.concatenate([of_event, snapshot.blocks.stack[earlier]])
    event = np.concatenate([replayed.event, np.full(len(earlier), MISSING)])
    sites = None
    if capture is not None and len(events):
        sites = trace_history.sites_at(capture, events.time_ns)
    sign = np.isin(events.action, ADDS).astype(np.int64) - np.isin(events.action, TAKES)
    segments = snapshot.segments.device == device
    history = History(
        device=f"cuda:{device}",
        time_ns=events.time_ns,
        blocks=blocks,
        reserved_end=int(snapshot.segments.bytes[segments].sum()),
        reserved_change=sign * events.bytes,
        labels=_labels(snapshot, device, events, blocks, stack, event, described, sites),
        given_back_by=_given_back_by(events, blocks, described),
        half_precision=bool((described.clues & stacks.FrameHint.HALF).any())
        or (capture is not None and trace_history.has_half_precision(capture)),
    )
    notes = tuple(_notes(snapshot, own, history, replayed.lost))
    if _lacks_segments(history):
        history = replace(history, reserved_change=None)
    return SnapshotDevice(
        history,
        _steps(snapshot, device, history, _event_clues(events, described)[:-1], capture),
        tuple(np.flatnonzero(events.action == _OOM).tolist()),
        int(snapshot.segments.allocated_bytes[segments].sum()),
        notes,
        snapshot=snapshot,
        described=described,
        number=device,
        block_stack=stack,
    )


def _notes(snapshot: Snapshot, own: Mask, made: History, lost: int) -> Iterator[str]:
    """Say where events and the end state disagree: events were left out of the recording."""
    if not len(made.time_ns):
        yield "no events were recorded: the peak is the end; use _record_memory_history()"
        return
    blocks = snapshot.blocks
    held = int(blocks.requested_bytes[own & (blocks.state == _ALLOCATED)].sum())
    missing = held - made.held(len(made.time_ns) - 1)
    if missing:
        yield (
            f"events lead to {abs(missing):,} bytes {'less' if missing > 0 else 'more'} than the "
            "end state holds: some were not recorded"
        )
    if _lacks_segments(made):
        yield (
            "more is allocated than is reserved at times: events of segments are missing, and what "
            "was reserved before the end is unknown"
        )
    if lost:
        yield f"{counted(lost, 'free')} of blocks whose allocation was not recorded"


def _lacks_segments(made: History) -> bool:
    return made.reserved is not None and bool((made.active > made.reserved).any())


def _find_unmentioned(snapshot: Snapshot, own: Mask, events: Events) -> tuple[Int64Array, Blocks]:
    """Find the blocks at the end that no event mentions: they were live all the time."""
    blocks = snapshot.blocks
    live = own & ((blocks.state == _ALLOCATED) | (blocks.state == _PENDING))
    rows = np.flatnonzero(live)
    rows = rows[np.argsort(blocks.address[rows])]
    seen = np.zeros(len(rows) + 1, bool)
    where = events.address[events.action <= ACTIONS.index("free_completed")]
    index = np.searchsorted(blocks.address[rows], where)
    same = np.append(blocks.address[rows], MISSING)[index] == where
    seen[index[same]] = True
    rows = rows[~seen[:-1]]
    begin, end = np.full(len(rows), BEFORE), np.full(len(rows), len(events))
    released = np.where(blocks.state[rows] == _PENDING, BEFORE, end)
    sizes = blocks.requested_bytes[rows]
    return rows, Blocks(blocks.address[rows], sizes, begin, released, end)


def _labels(
    snapshot: Snapshot,
    device: int,
    events: Events,
    blocks: Blocks,
    stack: Int64Array,
    event: Int64Array,
    described: stacks.Described,
    sites: trace_history.EventContext | None,
) -> dict[str, Labels]:
    begins = np.where((event != MISSING) & (blocks.allocated != BEFORE), event, MISSING)
    ends = np.where(blocks.released < len(events), blocks.released, MISSING)
    time_ns = np.append(events.time_ns, MISSING)[begins]
    layer, range_direction = ranges.around(snapshot, device, time_ns)
    metadata = np.append(events.metadata, MISSING)[begins]  # which the program attached
    if (metadata != MISSING).any():
        layer = or_else(layer, label([*snapshot.texts]).take(metadata))
    at_event = _event_clues(events, described)
    allocated = np.where(begins == MISSING, described.clues[stack], at_event[begins])
    freed = at_event[ends]
    direction = Labels(categories.directions(allocated), categories.DIRECTIONS)
    labels = {
        "layer": layer,
        "line": described.line.take(stack),
        "op": described.op.take(stack),
    }
    if sites is not None:
        at_begin = {key: said.take(begins) for key, said in sites._asdict().items()}
        labels["layer"] = or_else(at_begin["layer"], labels["layer"])
        labels["line"] = or_else(labels["line"], at_begin["line"])
        labels["op"] = or_else(at_begin["op"], labels["op"])
        labels["function"] = at_begin["function"]
        direction = _fill_direction(direction, at_begin["direction"])
        allocated = allocated | trace_history.clues(sites, begins)
        freed = freed | trace_history.clues(sites, ends)
    direction = _fill_direction(direction, range_direction)
    freed_in = categories.freed_in(
        freed, blocks.released, _event_directions(at_event[:-1], begins, direction.codes)
    )
    category, why = categories.categorise(
        blocks, categories.Evidence(allocated, freed, freed_in), direction.codes, len(events)
    )
    return {"category": category, "evidence": why, **labels, "direction": direction}


def _event_clues(events: Events, described: stacks.Described) -> Int64Array:
    """Return the clues of each event's stack; the last entry, of no event, is 0.

    In a recording of Python frames, allocations (or frees) without a frame are those of autograd's
    threads, if others have frames.
    """
    clues = described.clues[events.stack]
    if described.only_python:
        allocates = events.action == ACTIONS.index("alloc")
        frees = np.isin(events.action, _FREES)
        for chosen in (allocates, frees):
            if (events.stack[chosen] != MISSING).any():
                clues = np.where(
                    chosen & (events.stack == MISSING), stacks.FrameHint.ENGINE_THREAD, clues
                )
    return np.append(clues, 0)


def _event_directions(clues: Int64Array, begins: Int64Array, direction: Int64Array) -> Int64Array:
    """Return the direction of each event: for an allocation its block's, else by its stack."""
    directions = categories.directions(clues)
    known = (begins != MISSING) & (direction != MISSING)
    directions[begins[known]] = direction[known]
    return directions


def _fill_direction(direction: Labels, other: Labels) -> Labels:
    """Fill in unknown directions from those of `other`."""
    said = trace_history.directions(other)
    return direction._replace(codes=np.where(direction.codes == MISSING, said, direction.codes))


def _given_back_by(
    events: Events, blocks: Blocks, described: stacks.Described
) -> dict[str, Labels]:
    """Return who freed blocks, if any event has the stack of a free."""
    requested = ACTIONS.index("free_requested")
    if not (events.stack[events.action >= requested] != MISSING).any():
        return {}
    stack = np.append(events.stack, MISSING)[np.clip(blocks.released, MISSING, len(events))]
    return {"line": described.line.take(stack), "op": described.op.take(stack)}
