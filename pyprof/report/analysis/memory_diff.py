"""Two recordings of memory compared: what holds more, or less, at the peak."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.report.analysis.memory import DeviceMemory


@dataclass(frozen=True, slots=True)
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

    @property
    def change_bytes(self) -> int:
        """Give how much more B holds."""
        return self.b_bytes - self.a_bytes


@dataclass(frozen=True, slots=True)
class ComparedMemory:
    """A device in both recordings."""

    a: DeviceMemory
    b: DeviceMemory

    def by(self, key: str) -> tuple[HeldChange, ...]:
        """Give what changed, the largest change first; what holds the same is left out."""
        before, after = (
            {group.name: group for group in device.by.get(key, ())} for device in (self.a, self.b)
        )
        pairs = ((name, before.get(name), after.get(name)) for name in {**before, **after})
        changes = (
            HeldChange(
                name,
                a.bytes if a else 0,
                b.bytes if b else 0,
                a.block_count if a else 0,
                b.block_count if b else 0,
            )
            for name, a, b in pairs
        )
        moved = [each for each in changes if each.change_bytes]
        return tuple(sorted(moved, key=lambda each: -abs(each.change_bytes)))


def compare(a: Sequence[DeviceMemory], b: Sequence[DeviceMemory]) -> tuple[ComparedMemory, ...]:
    """Put together the devices of one name; where no names agree, those that peak highest."""
    others = {each.device: each for each in reversed(b)}
    pairs = [ComparedMemory(each, others[each.device]) for each in a if each.device in others]
    return tuple(pairs) or (ComparedMemory(a[0], b[0]),)
