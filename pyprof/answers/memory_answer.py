"""`pyprof memory --json`: what filled the memory of devices."""

from __future__ import annotations

from dataclasses import dataclass

from pyprof.analysis.memory.peaks import DeviceMemory
from pyprof.answers import answer
from pyprof.answers.base import Answer


@answer("memory")
@dataclass(frozen=True, slots=True)
class Memory(Answer):
    """What filled the memory: the peaks and what made them up, growth, running out of it."""

    devices: tuple[DeviceMemory, ...]
    """Each device of each file, the one that peaks highest first."""
