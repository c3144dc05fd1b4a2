"""Two recordings of memory compared: what holds more, or less, at the peak."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.analysis.memory.held_memory import HeldMemory
    from pyprof.analysis.memory.peaks import DeviceMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldChange:
    """What something holds at the peak of each."""

    name: str | None
    """null where it is unknown."""
    a_bytes: int
    """At the peak of A."""
    b_bytes: int
    """At the peak of B."""
    a_block_count: int
    """In so many blocks."""
    b_block_count: int
    """In so many blocks."""
    change_bytes: int
    """How much more B holds."""


@dataclass(frozen=True, slots=True)
class ComparedMemory:
    """A device in both recordings."""

    a: DeviceMemory
    b: DeviceMemory

    def by(self, key: str) -> tuple[HeldChange, ...]:
        """Return what changed, the largest change first."""
        before, after = (
            {group.name: group for group in device.by.get(key, ())} for device in (self.a, self.b)
        )
        pairs = ((name, before.get(name), after.get(name)) for name in {**before, **after})
        changes = (_change(*pair) for pair in pairs)
        moved = [each for each in changes if each.change_bytes]
        return tuple(sorted(moved, key=lambda each: -abs(each.change_bytes)))


def _change(name: str | None, a: HeldMemory | None, b: HeldMemory | None) -> HeldChange:
    a_bytes, b_bytes = (each.bytes if each else 0 for each in (a, b))
    a_count, b_count = (each.block_count if each else 0 for each in (a, b))
    return HeldChange(
        name=name,
        a_bytes=a_bytes,
        b_bytes=b_bytes,
        a_block_count=a_count,
        b_block_count=b_count,
        change_bytes=b_bytes - a_bytes,
    )


@dataclass(frozen=True, slots=True)
class MemoryComparison:
    """Two recordings, device by device."""

    pairs: tuple[ComparedMemory, ...]
    """The highest peak of A first."""
    only_a: tuple[str, ...]
    """Devices that B has not."""
    only_b: tuple[str, ...]
    """Devices that A has not."""


def compare(a: Sequence[DeviceMemory], b: Sequence[DeviceMemory]) -> MemoryComparison:
    """Put together the devices of one name; where no names agree, those that peak highest."""
    others = {each.device: each for each in reversed(b)}
    pairs = [ComparedMemory(each, others[each.device]) for each in a if each.device in others]
    pairs = pairs or [ComparedMemory(a[0], b[0])]
    only_a, only_b = (
        tuple(each.device for each in devices if each.device not in paired)
        for devices, paired in ((a, {pair.a.device for pair in pairs}),
                                (b, {pair.b.device for pair in pairs}))
    )  # fmt: skip
    return MemoryComparison(tuple(pairs), only_a, only_b)
