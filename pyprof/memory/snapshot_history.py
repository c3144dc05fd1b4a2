"""From a torch memory snapshot to the history of each device in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyprof.arrays import NONE
from pyprof.memory import categories, ranges, stacks
from pyprof.memory.history import BEFORE, Blocks, History, Labels, label, replay
from pyprof.memory.unpickle import ACTIONS, STATES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyprof.arrays import Ints, Mask
    from pyprof.memory.snapshot import Events, Snapshot

_ADDS = [ACTIONS.index(name) for name in ("segment_alloc", "segment_map")]
_TAKES = [ACTIONS.index(name) for name in ("segment_free", "segment_unmap")]
_ALLOCATED, _PENDING = (STATES.index(name) for name in ("active_allocated", "active_pending_free"))


def devices(snapshot: Snapshot) -> list[int]:
    """List the devices that did or hold anything."""
    used = {device for device, events in enumerate(snapshot.events) if len(events)}
    return sorted(used | set(snapshot.segments.device.tolist()))


class Replayed(NamedTuple):
    """A device's history, and what it lacks."""

    history: History
    notes: tuple[str, ...]


def history(snapshot: Snapshot, device: int, described: stacks.Described) -> Replayed:
    """Give the history of one device; `described` is what `stacks.describe` says."""
    events = snapshot.of_device(device)
    replayed = replay(events.action, events.address, events.bytes)
    own = snapshot.segments.device[snapshot.blocks.segment] == device
    earlier = _earlier(snapshot, own, events)
    earlier_blocks = _live_throughout(snapshot, earlier, len(events))
    blocks = replayed.blocks.plus(earlier_blocks)
    of_event = np.where(replayed.blocks.allocated == BEFORE, NONE,
                        events.stack[replayed.event])  # fmt: skip
    stack = np.concatenate([of_event, snapshot.blocks.stack[earlier]])
    event = np.concatenate([replayed.event, np.full(len(earlier), NONE)])
    made = History(
        f"cuda:{device}",
        events.time_ns,
        blocks,
        int(snapshot.segments.bytes[snapshot.segments.device == device].sum()),
        _reserved_change(events),
        _labels(snapshot, device, events, blocks, stack, event, described),
        _given_back_by(events, blocks, described),
    )
    return Replayed(made, tuple(_notes(snapshot, own, made, replayed.lost)))


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
    reserved = made.reserved
    if reserved is not None and (made.active > reserved).any():
        yield "more is allocated than is reserved at times: events of segments are missing"
    if lost:
        yield f"{lost:,} frees are of blocks whose allocation was not recorded"


def _earlier(snapshot: Snapshot, own: Mask, events: Events) -> Ints:
    """Find the blocks of the end of which no event tells: they were live all the time."""
    blocks = snapshot.blocks
    live = own & ((blocks.state == _ALLOCATED) | (blocks.state == _PENDING))
    rows = np.flatnonzero(live)
    rows = rows[np.argsort(blocks.address[rows])]
    told = np.zeros(len(rows) + 1, bool)
    where = events.address[events.action <= ACTIONS.index("free_completed")]
    place = np.searchsorted(blocks.address[rows], where)
    same = np.append(blocks.address[rows], NONE)[place] == where
    told[place[same]] = True
    return rows[~told[:-1]]


def _live_throughout(snapshot: Snapshot, rows: Ints, count: int) -> Blocks:
    blocks = snapshot.blocks
    pending = blocks.state[rows] == _PENDING
    return Blocks(
        blocks.address[rows],
        blocks.requested_bytes[rows],
        np.full(len(rows), BEFORE),
        np.where(pending, BEFORE, count),
        np.full(len(rows), count),
    )


def _reserved_change(events: Events) -> Ints:
    sign = np.isin(events.action, _ADDS).astype(np.int64) - np.isin(events.action, _TAKES)
    change: Ints = sign * events.bytes
    return change


def _labels(
    snapshot: Snapshot,
    device: int,
    events: Events,
    blocks: Blocks,
    stack: Ints,
    event: Ints,
    described: stacks.Described,
) -> dict[str, Labels]:
    begins = np.where((event != NONE) & (blocks.allocated != BEFORE), event, NONE)
    time_ns = np.append(events.time_ns, NONE)[begins]
    around = ranges.around(snapshot, device, time_ns)
    by_stack = categories.directions(described.clues[stack])
    direction = Labels(by_stack, categories.DIRECTIONS)
    said = around.direction
    if said.names:  # by ranges of the user's, where stacks do not tell
        known = np.array([categories.DIRECTIONS.index(name) for name in said.names] + [NONE])
        direction = direction._replace(
            codes=np.where(by_stack == NONE, known[said.codes], by_stack)
        )
    freed = np.append(events.stack, NONE)[np.clip(blocks.released, NONE, len(events))]
    evidence = categories.Evidence(described.clues[stack], described.clues[freed])
    category, why = categories.categorise(blocks, evidence, direction.codes, len(events))
    return {
        "category": category,
        "evidence": why,
        "layer": _layers(snapshot, events, begins, around.layer),
        "line": Labels(described.line.codes[stack], described.line.names),
        "op": Labels(described.op.codes[stack], described.op.names),
        "direction": direction,
    }


def _given_back_by(
    events: Events, blocks: Blocks, described: stacks.Described
) -> dict[str, Labels]:
    """Say who gave blocks back, if any event has the stack of that."""
    requested = ACTIONS.index("free_requested")
    if not (events.stack[events.action >= requested] != NONE).any():
        return {}
    stack = np.append(events.stack, NONE)[np.clip(blocks.released, NONE, len(events))]
    named = {"line": described.line, "op": described.op}
    return {key: Labels(said.codes[stack], said.names) for key, said in named.items()}


def _layers(snapshot: Snapshot, events: Events, begins: Ints, ranges: Labels) -> Labels:
    """Give the layer by the ranges; where there is none, by what the program wrote beside it."""
    metadata = np.append(events.metadata, NONE)[begins]
    if not (metadata != NONE).any():
        return ranges
    written = label([*snapshot.texts])
    shifted = np.where(metadata == NONE, NONE, written.codes[metadata] + len(ranges.names))
    codes = np.where(ranges.codes == NONE, shifted, ranges.codes)
    return Labels(codes, (*ranges.names, *written.names))
