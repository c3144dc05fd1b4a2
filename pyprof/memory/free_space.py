"""What the allocator holds but nobody uses, in a state: how much, and in pieces of which size."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyprof.memory.unpickle import ACTIONS

if TYPE_CHECKING:
    from pyprof.arrays import Ints
    from pyprof.memory.history import Blocks
    from pyprof.memory.snapshot import Events, Segments

_ROUNDED_TO = 512
"""Bytes: blocks are multiples of it."""
_ADDS = [ACTIONS.index(name) for name in ("segment_alloc", "segment_map")]
_TAKES = [ACTIONS.index(name) for name in ("segment_free", "segment_unmap")]


class FreeSpace(NamedTuple):
    """Free pieces of what is reserved."""

    bytes: int
    pieces: int
    largest_bytes: int


def free_space(
    segments: Segments, device: int, events: Events, blocks: Blocks, state: int
) -> FreeSpace:
    """Find the free pieces of a device's segments in a state.

    The segments of that time are those of the end, with what came and went since undone. Pieces end
    where segments do, unless those can grow.
    """
    own = segments.device == device
    later = np.arange(len(events)) > state
    came, went = (later & np.isin(events.action, kinds) for kinds in (_ADDS, _TAKES))
    occupied = blocks.occupied(state)
    held = blocks.bytes[occupied]
    spans = [
        (segments.address[own], segments.bytes[own], 1),
        (events.address[came], events.bytes[came], -1),
        (events.address[went], events.bytes[went], 1),
        (blocks.address[occupied], -(-held // _ROUNDED_TO) * _ROUNDED_TO, _USED),
    ]
    fixed = own & ~segments.expandable
    ends = np.concatenate([segments.address[fixed], (segments.address + segments.bytes)[fixed]])
    return _pieces(spans, ends)


_USED = 1 << 32
"""What a block adds to the number of segments at an address, of which there is one."""


def _pieces(spans: list[tuple[Ints, Ints, int]], ends: Ints) -> FreeSpace:
    places = [np.concatenate([start, start + size]) for start, size, _ in spans]
    changes = [np.repeat([weight, -weight], len(start)) for start, _, weight in spans]
    where, inverse = np.unique(np.concatenate(places), return_inverse=True)
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
