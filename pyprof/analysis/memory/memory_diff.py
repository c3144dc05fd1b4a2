"""Two recordings of memory compared: what holds more, or less, at the peak, and limits on that.

Limits are as `--fail-if` writes them: `peak>+5%`, `reserved>2GB`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyprof.analysis.diff.compare import Metric
from pyprof.analysis.diff.gate import Limit
from pyprof.suggestions import suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyprof.analysis.memory.held_memory import HeldMemory
    from pyprof.analysis.memory.peaks import DeviceMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldChange:
    """What something holds at the peak of each."""

    name: str | None
    """null if it is unknown."""
    a_bytes: int
    """At the peak of A."""
    b_bytes: int
    """At the peak of B."""
    a_block_count: int
    """Number of blocks at A's peak."""
    b_block_count: int
    """Number of blocks at B's peak."""
    change_bytes: int
    """How much more B holds."""


@dataclass(frozen=True, slots=True)
class ComparedMemory:
    """A device in both recordings."""

    a: DeviceMemory
    b: DeviceMemory

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """The numbers that can be limited."""
        return {
            name: Metric(
                name=name, unit="bytes", a=getattr(self.a, field), b=getattr(self.b, field)
            )
            for name, field in _FIELDS.items()
        }

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
    """Devices that B lacks."""
    only_b: tuple[str, ...]
    """Devices that A lacks."""


def compare(a: Sequence[DeviceMemory], b: Sequence[DeviceMemory]) -> MemoryComparison:
    """Pair devices of the same name; if no names agree, those that peak highest."""
    others = {each.device: each for each in reversed(b)}
    pairs = [ComparedMemory(each, others[each.device]) for each in a if each.device in others]
    pairs = pairs or [ComparedMemory(a[0], b[0])]
    only_a, only_b = (
        tuple(each.device for each in devices if each.device not in paired)
        for devices, paired in ((a, {pair.a.device for pair in pairs}),
                                (b, {pair.b.device for pair in pairs}))
    )  # fmt: skip
    return MemoryComparison(tuple(pairs), only_a, only_b)


_FIELDS = {
    "peak": "peak_bytes",
    "reserved": "peak_reserved_bytes",
    "start": "start_bytes",
    "end": "end_bytes",
}
METRICS = tuple(_FIELDS)
"""What can be limited: the peak, memory reserved then, and what is held at start and end."""

_UNITS = {"%": 0.01, "": 1, "B": 1, **{f"{prefix}B": 1000**power for power, prefix in
          enumerate("kMGT", 1)}, **{f"{prefix}iB": 1024**power for power, prefix in
          enumerate("KMGT", 1)}}  # fmt: skip
_LIMIT = re.compile(
    r"\s*(?P<name>[a-z]+)\s*(?P<sign>[<>])\s*(?P<value>[+-]?\d+(?:\.\d+)?)\s*"
    rf"(?P<unit>{'|'.join(map(re.escape, _UNITS))})\s*"
)


def parse(text: str) -> Limit:
    """Read a limit. Raises ValueError, with what to write instead."""
    match = _LIMIT.fullmatch(text)
    if match is None or match["name"] not in METRICS:
        name = re.match(r"\s*(\w*)", text)
        hint = suggestion(name[1], METRICS) if name and name[1] not in METRICS else ""
        raise ValueError(
            f"{text!r} is not a limit of memory{hint or ';'} write METRIC>NUMBER or METRIC<NUMBER "
            "with a unit of %, B, kB, MB, GB, TB, KiB, MiB, GiB or TiB, as in 'peak>+5%'; metrics "
            f"are {', '.join(METRICS)}"
        )
    value = float(match["value"]) * _UNITS[match["unit"]]
    if value and not match["unit"]:
        raise ValueError(f"{text!r}: write % or a unit of bytes: B, kB, MB, GB")
    return Limit(text.strip(), match["name"], match["sign"] == ">", value, match["unit"] == "%")


def check(limits: Sequence[Limit], comparison: MemoryComparison) -> tuple[tuple[str, ...], bool]:
    """Return the limits that a device exceeds; and whether any is known to be exceeded."""
    violations: list[str] = []
    exceeded = False
    for pair in comparison.pairs:
        for limit in limits:
            sentence = limit.violation(pair)
            if sentence is not None:
                several = len(comparison.pairs) > 1
                violations.append(f"{pair.b.device}: {sentence}" if several else sentence)
                exceeded |= limit.increase(pair) is not None
    return tuple(violations), exceeded
