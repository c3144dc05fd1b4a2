"""What filled the memory (`pyprof memory --json`), and what holds more, or less (`pyprof diff`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyprof.analysis.memory.memory_diff import HeldChange, metrics
from pyprof.analysis.memory.peaks import DeviceMemory
from pyprof.answers import answer
from pyprof.answers.base import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyprof.analysis.memory.memory_diff import ComparedMemory, MemoryComparison

_KEYS = ("category", "layer", "line", "op", "direction")


@answer("memory")
@dataclass(frozen=True, slots=True)
class Memory(Answer):
    """What filled the memory: the peaks and what made them up, growth, running out of it."""

    devices: tuple[DeviceMemory, ...]
    """Each device of each file, the one that peaks highest first."""


@dataclass(frozen=True, slots=True)
class MemoryMeasure:
    """A level in both."""

    a_bytes: float | None
    """Its value in A; null if A does not hold it."""
    b_bytes: float | None
    """Its value in B; null if B does not hold it."""
    change_bytes: float | None
    """B less A; null if either is."""
    change_share: float | None
    """The change relative to A; null where `change_bytes` is, or A is 0."""


@dataclass(frozen=True, slots=True)
class DeviceMemoryChange:
    """A device in both snapshots."""

    a_device: str
    """As torch names it in A."""
    b_device: str
    """As torch names it in B."""
    metrics: Mapping[str, MemoryMeasure]
    """peak, reserved (at the peak), start and end."""
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
    """Devices that B has not."""
    only_b: tuple[str, ...]
    """Devices that A has not."""
    failed: tuple[str, ...]
    """Limits of --fail-if that are exceeded, or cannot be checked, with what happened."""


def memory_diff(comparison: MemoryComparison, failed: Sequence[str] = ()) -> MemoryDiff:
    """Make the answer."""
    devices = tuple(map(_device, comparison.pairs))
    return MemoryDiff(devices, comparison.only_a, comparison.only_b, tuple(failed))


def _device(pair: ComparedMemory) -> DeviceMemoryChange:
    measures = {
        name: MemoryMeasure(metric.a, metric.b, metric.delta, metric.relative)
        for name, metric in metrics(pair).items()
    }
    return DeviceMemoryChange(
        pair.a.device, pair.b.device, measures, {key: pair.by(key) for key in _KEYS}
    )
