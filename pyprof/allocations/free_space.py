"""Unused memory that the allocator holds in a given state: its total, and its pieces by size."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyprof.allocations.history import ALLOC, FREE_COMPLETED, replay
from pyprof.allocations.snapshot import ADDS, TAKES
from pyprof.allocations.unpickle import ACTIONS
from pyprof.arrays import MISSING, first_index

if TYPE_CHECKING:
    from pyprof.allocations.history import Blocks
    from pyprof.allocations.snapshot import Snapshot
    from pyprof.arrays import Int64Array

_ROUNDED_TO = 512
"""Bytes: blocks are multiples of it."""
_UNSPLIT_BYTES = 1 << 20
"""A remainder up to this size stays part of a large block (`should_split` of torch's allocator).
Smaller blocks are of the small pool, whose remainders are always split off, as in expandable
segments.
"""
_MAX_PAIRS = 32
"""Maximum number of neighbours per block; only damaged files have more."""
_SEGMENT_FREE = ACTIONS.index("segment_free")


class FreeSpace(NamedTuple):
    """Free pieces of what is reserved."""

    bytes: int
    pieces: int
    largest_bytes: int


def free_space(snapshot: Snapshot, device: int, blocks: Blocks, state: int) -> FreeSpace:
    """Find the free pieces of a device's segments in a state.

    The segments at that time are those at the end, with later additions and removals undone. Pieces
    end where segments do, unless segments can grow.
    """
    segments, events = snapshot.segments, snapshot.of_device(device)
    own = segments.device == device
    later = np.arange(len(events)) > state
    came, went = (later & np.isin(events.action, kinds) for kinds in (ADDS, TAKES))
    occupied = np.flatnonzero(blocks.occupied(state))
    spans = [
        (segments.address[own], segments.bytes[own], 1),
        (events.address[came], events.bytes[came], -1),
        (events.address[went], events.bytes[went], 1),
        (blocks.address[occupied], _sizes(snapshot, device, blocks, occupied), _USED),
    ]
    fixed = own & ~segments.expandable
    gone = events.action == _SEGMENT_FREE
    gone &= later & ~np.isin(events.address, segments.address[own])
    address = np.concatenate([segments.address[fixed], events.address[gone]])
    size = np.concatenate([segments.bytes[fixed], events.bytes[gone]])
    return _pieces(spans, np.concatenate([address, address + size]))


def _sizes(snapshot: Snapshot, device: int, blocks: Blocks, rows: Int64Array) -> Int64Array:
    """Return the bytes that some blocks take up: rounded up, and with a tail too small to split.

    The end state has the sizes of its blocks. For other blocks, the tail is what was free behind
    them when they were allocated.
    """
    segments, events = snapshot.segments, snapshot.of_device(device)
    own = segments.device == device
    sizes = -(-blocks.bytes[rows] // _ROUNDED_TO) * _ROUNDED_TO
    if not segments.expandable[own].any():
        large = np.flatnonzero((sizes > _UNSPLIT_BYTES) & (blocks.allocated[rows] >= 0))
        sizes[large] += _tails(
            blocks.address[rows[large]] + sizes[large],
            blocks.allocated[rows[large]],
            _bounds(snapshot, device, blocks),
        )
    last = np.flatnonzero(blocks.freed[rows] == len(events))
    at_end = np.flatnonzero(own[snapshot.blocks.segment])
    index = first_index(snapshot.blocks.address[at_end], blocks.address[rows[last]])
    there = index != MISSING
    sizes[last[there]] = snapshot.blocks.bytes[at_end[index[there]]]
    return sizes


class _Bounds(NamedTuple):
    """Addresses that no block reaches over from the event `since` until `until`, ascending."""

    address: Int64Array
    since: Int64Array
    until: Int64Array


def _bounds(snapshot: Snapshot, device: int, blocks: Blocks) -> _Bounds:
    """List the beginnings of blocks, and the ends of segments."""
    segments, events = snapshot.segments, snapshot.of_device(device)
    kind = np.full(len(events), MISSING)
    kind[np.isin(events.action, ADDS)] = ALLOC
    kind[np.isin(events.action, TAKES)] = FREE_COMPLETED
    recorded = replay(kind, events.address, events.bytes).blocks
    own = (segments.device == device) & ~np.isin(segments.address, recorded.address)
    throughout = segments.address[own] + segments.bytes[own]
    columns = (
        [blocks.address, recorded.address + recorded.bytes, throughout],
        [blocks.allocated, recorded.allocated, np.full(len(throughout), MISSING)],
        [blocks.freed, recorded.freed, np.full(len(throughout), len(events))],
    )
    bounds = _Bounds(*map(np.concatenate, columns))
    order = np.argsort(bounds.address, kind="stable")
    return _Bounds(*(column[order] for column in bounds))


def _tails(ends: Int64Array, event: Int64Array, bounds: _Bounds) -> Int64Array:
    """Return the bytes between each end and the next bound of that event; 0 if enough to split."""
    first = np.searchsorted(bounds.address, ends, "left")
    counts = np.searchsorted(bounds.address, ends + _UNSPLIT_BYTES, "right") - first
    tails = np.zeros(len(ends), np.int64)
    if counts.sum() > _MAX_PAIRS * (len(bounds.address) + len(ends)):
        return tails
    of = np.repeat(np.arange(len(ends)), counts)
    bound = np.arange(len(of)) + np.repeat(first - (np.cumsum(counts) - counts), counts)
    there = (bounds.since[bound] <= event[of]) & (event[of] < bounds.until[bound])
    of, bound = of[there], bound[there]  # by end, then by address: the first is the next
    nearest = np.append(True, of[1:] != of[:-1])[: len(of)]
    tails[of[nearest]] = bounds.address[bound[nearest]] - ends[of[nearest]]
    return tails


_USED = 1 << 32
"""What a block adds to the number of segments at its address, where there is one at most."""


def _pieces(spans: list[tuple[Int64Array, Int64Array, int]], ends: Int64Array) -> FreeSpace:
    bounds = [np.concatenate([start, start + size]) for start, size, _ in spans]
    changes = [np.repeat([weight, -weight], len(start)) for start, _, weight in spans]
    where, inverse = np.unique(np.concatenate(bounds), return_inverse=True)
    if len(where) < 2:  # noqa: PLR2004 - a piece has two ends
        return FreeSpace(0, 0, 0)
    change = np.zeros(len(where), np.int64)
    np.add.at(change, inverse, np.concatenate(changes))
    state = np.cumsum(change)[:-1]
    free = (state > 0) & (state < _USED)
    lengths = np.diff(where)
    begins = free & (np.append(True, ~free[:-1]) | np.isin(where[:-1], ends))
    sizes = np.bincount((np.cumsum(begins) - 1)[free], lengths[free])
    if not len(sizes):
        return FreeSpace(0, 0, 0)
    return FreeSpace(int(lengths[free].sum()), len(sizes), int(sizes.max()))
