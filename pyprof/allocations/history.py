"""What a device's allocator did, as blocks that live from one event to another, and the levels.

Events are in order; the state after event `n` is the state `n`, the one before the first is -1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyprof.arrays import MISSING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.allocations.free_space import FreeSpace
    from pyprof.arrays import Int64Array, Mask

ALLOC, FREE_REQUESTED, FREE_COMPLETED = range(3)
"""The kinds of events that concern blocks. Files with one event per free have only the last."""

BEFORE = MISSING
"""Stands for what happened before the first event."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """All blocks in the events or the end state, one entry each."""

    address: Int64Array
    bytes: Int64Array
    """As requested by the program."""
    allocated: Int64Array
    """The event; BEFORE for what was live when the history began."""
    released: Int64Array
    """The event by which the program freed it; the number of events if none did."""
    freed: Int64Array
    """The event from which on it can be reallocated: later, if other streams still used it."""

    def __len__(self) -> int:
        return len(self.bytes)

    def live(self, state: int) -> Mask:
        """Mask of the blocks that the program holds in a state."""
        return (self.allocated <= state) & (self.released > state)

    def occupied(self, state: int) -> Mask:
        """Mask of the blocks that cannot be reallocated: live, or in use on another stream."""
        return (self.allocated <= state) & (self.freed > state)

    def plus(self, other: Blocks) -> Blocks:
        """Join two sets of blocks."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in self.__slots__)
        return Blocks(*map(np.concatenate, pairs))


class Replay(NamedTuple):
    """Blocks, as found from events."""

    blocks: Blocks
    event: Int64Array
    """The first event of each block."""
    lost: int
    """Frees of what was already free: an allocation between the two was not recorded."""


def replay(kind: Int64Array, address: Int64Array, size: Int64Array) -> Replay:
    """Pair allocations with frees; events that are neither have any other `kind`."""
    count = len(kind)
    rows = np.flatnonzero((kind >= ALLOC) & (kind <= FREE_COMPLETED))
    rows = rows[np.argsort(address[rows], kind="stable")]
    does, where = kind[rows], address[rows]
    same = np.diff(where, prepend=-2) == 0
    before = np.where(same, np.roll(does, 1), FREE_COMPLETED)
    twice = (before == FREE_REQUESTED) & (does == FREE_REQUESTED)
    begins = ~same | (does == ALLOC) | (before == FREE_COMPLETED) | twice
    first = np.flatnonzero(begins)
    life = np.cumsum(begins) - 1

    def event_of(what: int) -> Int64Array:
        events = np.full(len(first), count)
        chosen = does == what
        events[life[chosen]] = rows[chosen]
        return events

    is_allocated = does[first] == ALLOC
    requested, completed = event_of(FREE_REQUESTED), event_of(FREE_COMPLETED)
    follows = np.append(same[first][1:], False)
    unseen = np.where(follows, np.append(rows[first][1:], count), count)
    if not (does == FREE_COMPLETED).any():  # not recorded
        completed = requested
    completed = np.where(completed == count, unseen, completed)
    pending = ~is_allocated & (requested == count) & bool((does == FREE_REQUESTED).any())
    released = np.where(pending, BEFORE, np.minimum(requested, completed))
    sound = is_allocated | ~same[first]
    allocated = np.where(is_allocated, rows[first], BEFORE)
    columns = (where[first], size[rows[first]], allocated, released, completed)
    return Replay(
        Blocks(*(column[sound] for column in columns)), rows[first][sound], int((~sound).sum())
    )


class Labels(NamedTuple):
    """Names for each block, by row; MISSING if nothing is known."""

    codes: Int64Array
    names: tuple[str, ...]

    def take(self, rows: Int64Array) -> Labels:
        """Choose rows; nothing is known of MISSING."""
        return Labels(np.append(self.codes, MISSING)[rows], self.names)

    def at(self, rows: Int64Array) -> list[str | None]:
        """Return the names in some rows."""
        names = (*self.names, None)
        return [names[code] for code in self.codes[rows].tolist()]


def label(texts: list[str | None]) -> Labels:
    """Number texts, one per block."""
    numbers: dict[str | None, int] = {None: MISSING}
    codes = [numbers.setdefault(text, len(numbers) - 1) for text in texts]
    return Labels(np.array(codes, np.int64), tuple(name for name in numbers if name is not None))


def or_else(one: Labels, other: Labels) -> Labels:
    """Take values of `one` and, where they are missing, of `other`."""
    shifted = np.where(other.codes == MISSING, MISSING, other.codes + len(one.names))
    return Labels(np.where(one.codes == MISSING, shifted, one.codes), (*one.names, *other.names))


@dataclass(frozen=True, kw_only=True)
class History:
    """One device, from the first recorded event to the end."""

    device: str
    """As torch names it: `cuda:0`, `cpu`."""
    time_ns: Int64Array
    """The time of each event on the file's clock; MISSING if not recorded."""
    blocks: Blocks
    reserved_end: int | None = None
    """Memory that the allocator had reserved on the device at the end; None if unknown."""
    reserved_change: Int64Array | None = None
    """What each event added to the reserved memory; None if unknown."""
    labels: Mapping[str, Labels] = field(default_factory=dict)
    """By `category`, `evidence`, `layer`, `line`, `op`, `direction`; one entry per block each."""
    given_back_by: Mapping[str, Labels] = field(default_factory=dict)
    """The same labels, or some, of what freed each block; MISSING also if it was not freed."""
    half_precision: bool = False
    """Whether anything is known to be computed in 16 bits, by autocast or by its own type."""

    @cached_property
    def start(self) -> int:
        """What the program held before the first event, bytes."""
        return int(self.blocks.bytes[self.blocks.live(BEFORE)].sum())

    @cached_property
    def level(self) -> Int64Array:
        """What the program holds after each event, bytes."""
        return self.start + np.cumsum(self._change(self.blocks.released))

    @cached_property
    def active(self) -> Int64Array:
        """Occupied bytes after each event: live, or freed and waiting for a stream."""
        return self.active_in(BEFORE) + np.cumsum(self._change(self.blocks.freed))

    @cached_property
    def reserved(self) -> Int64Array | None:
        """Memory that the allocator has reserved on the device after each event, bytes."""
        if self.reserved_end is None or self.reserved_change is None:
            return None
        later = np.cumsum(self.reserved_change[::-1])[::-1]
        return self.reserved_end - np.append(later[1:], 0)[: len(later)]

    @cached_property
    def peak(self) -> int:
        """The first state in which the program holds most."""
        return _highest(self.level, self.start)

    @cached_property
    def active_peak(self) -> int:
        """The first state in which most is active: also what waits for a stream."""
        return _highest(self.active, self.active_in(BEFORE))

    @cached_property
    def reserved_peak(self) -> int | None:
        """The first state in which most is reserved on the device; None if unknown."""
        start = self.reserved_in(BEFORE)
        if self.reserved is None or start is None:
            return None
        return _highest(self.reserved, start)

    @cached_property
    def since_first_ns(self) -> Int64Array | None:
        """The time of each event since the first, never decreasing; None if any is unknown."""
        if not len(self.time_ns) or (self.time_ns == MISSING).any():
            return None
        return np.asarray(np.maximum.accumulate(self.time_ns) - self.time_ns[0])

    def time_of(self, state: int) -> int | None:
        """Return the time of a state since the first event; None before it, or if unknown."""
        since = self.since_first_ns
        return int(since[state]) if since is not None and state >= 0 else None

    def held(self, state: int) -> int:
        """Return the bytes that the program holds in a state."""
        return int(self.level[state]) if state >= 0 else self.start

    def active_in(self, state: int) -> int:
        """Sum the occupied blocks in a state, bytes."""
        return int(self.blocks.bytes[self.blocks.occupied(state)].sum())

    def reserved_in(self, state: int) -> int | None:
        """Return the bytes of the device that the allocator holds in a state; None if unknown."""
        if self.reserved is None or self.reserved_change is None:
            return None
        if state >= 0:
            return int(self.reserved[state])
        return self.reserved_end - int(self.reserved_change.sum())  # type: ignore[operator]

    def levels_of(self, chosen: Mask) -> Int64Array:
        """Return the bytes held in some blocks before the first event, and after each."""
        start = int(self.blocks.bytes[self.blocks.live(BEFORE) & chosen].sum())
        return start + np.append(0, np.cumsum(self._change(self.blocks.released, chosen)))

    def _change(self, ends: Int64Array, chosen: Mask | bool = True) -> Int64Array:  # noqa: FBT001, FBT002
        change = np.zeros(len(self.time_ns) + 1, np.int64)
        blocks = self.blocks
        begins, stops = (blocks.allocated >= 0) & chosen, (ends >= 0) & chosen
        change[blocks.allocated[begins]] += blocks.bytes[begins]
        np.add.at(change, ends[stops], -blocks.bytes[stops])
        return change[:-1]


def _highest(level: Int64Array, start: int) -> int:
    """Return the first state with the highest level; BEFORE if no event exceeds the start."""
    if not len(level) or int(level.max()) <= start:
        return BEFORE
    return int(np.argmax(level))


@dataclass(frozen=True)
class RecordedDevice:
    """The memory of one device, and what else its file holds about it."""

    history: History
    steps: tuple[str, tuple[int, ...]] = ("", ())
    """What marks the steps, and the states at which steps end."""
    ooms: tuple[int, ...] = ()
    """The events at which memory ran out."""
    end_allocated_bytes: int | None = None
    notes: tuple[str, ...] = ()
    stacks: Labels | None = None
    """The call stack of each block, its frames in lines; None for a snapshot, or if unknown."""
    of_tensors: bool = True
    """Whether blocks are what the program requests, not what its allocator takes of the device."""

    def call_stacks(self, rows: Int64Array) -> Labels:
        """Label some blocks with their call stacks, the outermost frame in the first line."""
        return label([None] * len(rows)) if self.stacks is None else self.stacks.take(rows)

    def free_space(self, state: int) -> FreeSpace | None:
        """Find unused memory that the allocator holds; None if the file has no segments."""
        del state
        return None

    def request(self, event: int) -> tuple[int, int | None, str | None]:
        """Return the bytes that an OOM requested, those free, and the line of the request."""
        raise NotImplementedError
