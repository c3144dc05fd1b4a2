"""What filled the memory (`pyprof memory --json`), and what changed (`pyprof diff`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyprof.analysis.memory.memory_diff import HeldChange
from pyprof.analysis.memory.peaks import KEYS, DeviceMemory
from pyprof.answers import answer
from pyprof.answers.base import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyprof.analysis.memory.memory_diff import ComparedMemory, MemoryComparison


@answer("memory")
@dataclass(frozen=True, slots=True)
class Memory(Answer):
    """What filled the memory: peaks and their contents, growth, and out-of-memory errors."""

    devices: tuple[DeviceMemory, ...]
    """Each device of each file, the one with the highest peak first."""


@dataclass(frozen=True, slots=True)
class MemoryMeasure:
    """A level of memory in A and in B."""

    a_bytes: float | None
    """Its value in A; null if A does not record it."""
    b_bytes: float | None
    """Its value in B; null if B does not record it."""
    change_bytes: float | None
    """B minus A; null if either is null."""
    change_share: float | None
    """The change relative to A; null if `change_bytes` is null or A is 0."""


@dataclass(frozen=True, slots=True)
class DeviceMemoryChange:
    """A device in both snapshots."""

    a_device: str
    """Its name in A, such as `cuda:0`."""
    b_device: str
    """Its name in B, such as `cuda:0`."""
    metrics: Mapping[str, MemoryMeasure]
    """The levels: peak, reserved (at the peak), start and end."""
    by: Mapping[str, tuple[HeldChange, ...]]
    """What holds more or less at the peaks, by category, layer, line, op and direction; the largest
    change first, without what holds the same."""


@answer("memory_diff")
@dataclass(frozen=True, slots=True)
class MemoryDiff(Answer):
    """Memory snapshots A and B compared."""

    devices: tuple[DeviceMemoryChange, ...]
    """Devices of both, the highest peak of A first."""
    only_a: tuple[str, ...]
    """Devices that are not in B."""
    only_b: tuple[str, ...]
    """Devices that are not in A."""
    failed: tuple[str, ...]
    """Conditions of --fail-if that are exceeded or cannot be checked, each with the reason."""


def memory_diff(comparison: MemoryComparison, failed: Sequence[str] = ()) -> MemoryDiff:
    """Build the answer."""
    devices = tuple(map(_device, comparison.pairs))
    return MemoryDiff(devices, comparison.only_a, comparison.only_b, tuple(failed))


def _device(pair: ComparedMemory) -> DeviceMemoryChange:
    measures = {
        name: MemoryMeasure(metric.a, metric.b, metric.delta, metric.relative)
        for name, metric in pair.metrics.items()
    }
    return DeviceMemoryChange(
        pair.a.device, pair.b.device, measures, {key: pair.by(key) for key in KEYS}
    )
