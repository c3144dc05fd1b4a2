"""A model of torch's caching allocator: pools, best fit, splits and merges, with true records.

Sizes and rules are those of c10's CUDACachingAllocator without any setting.
"""

from dataclasses import dataclass, field
from typing import Any

MIB = 1 << 20
_SMALL = MIB
_UNIT = 512


@dataclass(eq=False)
class _Block:
    address: int
    size: int
    segment: int
    small: bool
    requested: int = 0
    used: bool = False


@dataclass
class Allocator:
    """A device; `pieces` is what is free after each event."""

    events: list[dict[str, Any]] = field(default_factory=list)
    pieces: list[list[int]] = field(default_factory=list)
    _blocks: list[_Block] = field(default_factory=list)
    _segments: dict[int, int] = field(default_factory=dict)
    _next: int = 0x7F00_0000_0000

    def alloc(self, requested: int) -> int:
        size = max(-(-requested // _UNIT) * _UNIT, _UNIT)
        small = size <= _SMALL
        fits = [b for b in self._blocks if not b.used and b.small == small and b.size >= size]
        block = min(fits, key=lambda b: (b.size, b.address), default=None)
        if block is None:
            block = self._segment(size, small=small)
        rest = block.size - size
        if rest >= _UNIT if small else rest > _SMALL:
            place = self._blocks.index(block) + 1
            self._blocks.insert(place, _Block(block.address + size, rest, block.segment, small))
            block.size = size
        block.used, block.requested = True, requested
        self._event("alloc", block.address, requested)
        return block.address

    def free(self, address: int) -> None:
        block = next(b for b in self._blocks if b.address == address)
        self._event("free_requested", address, block.requested)
        block.used = False
        self._merge(block)
        self._event("free_completed", address, block.requested)

    def empty_cache(self) -> None:
        for address, size in [*self._segments.items()]:
            (*own,) = (b for b in self._blocks if b.segment == address)
            if not any(b.used for b in own):
                self._blocks = [b for b in self._blocks if b.segment != address]
                del self._segments[address]
                self._event("segment_free", address, size)

    def snapshot(self) -> dict[str, Any]:
        segments: list[dict[str, Any]] = []
        for address, size in self._segments.items():
            own = [b for b in self._blocks if b.segment == address]
            used = sum(b.size for b in own if b.used)
            segments.append({
                "device": 0, "address": address, "total_size": size, "allocated_size": used,
                "active_size": used, "requested_size": used, "stream": 0,
                "segment_type": "small" if own[0].small else "large", "is_expandable": False,
                "blocks": [
                    {"address": b.address, "size": b.size, "requested_size": b.requested * b.used,
                     "state": "active_allocated" if b.used else "inactive", "frames": []}
                    for b in own
                ],
            })  # fmt: skip
        return {"segments": segments, "device_traces": [self.events]}

    def _segment(self, size: int, *, small: bool) -> _Block:
        if small:
            total = 2 * MIB
        elif size < 10 * MIB:
            total = 20 * MIB
        else:
            total = -(-size // (2 * MIB)) * 2 * MIB
        block = _Block(self._next, total, self._next, small)
        self._segments[self._next] = total
        self._next += total  # side by side, as on a device
        self._blocks.append(block)
        self._event("segment_alloc", block.address, total)
        return block

    def _merge(self, block: _Block) -> None:
        place = self._blocks.index(block)
        for other in (place + 1, place - 1):
            if not 0 <= other < len(self._blocks):
                continue
            near = self._blocks[other]
            if not near.used and near.segment == block.segment:
                block.address = min(block.address, near.address)
                block.size += near.size
                near.size = 0
        self._blocks = [b for b in self._blocks if b.size]

    def _event(self, action: str, address: int, size: int) -> None:
        self.events.append(
            {"action": action, "addr": address, "size": size, "stream": 0, "frames": []}
        )
        self.pieces.append([b.size for b in self._blocks if not b.used])
