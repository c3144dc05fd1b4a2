"""Two recordings of memory compared: what holds more, or less, at the peak, and limits on that.

Limits are as `--fail-if` writes them: `peak>+5%`, `reserved>2GB`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pyprof.analysis.diff.gate import Limit
from pyprof.answers.diff_answer import Measure
from pyprof.answers.memory_answer import DeviceMemoryChange, HeldChange, MemoryDiff, MemoryMeasure
from pyprof.suggestions import suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyprof.answers.memory_answer import DeviceMemory, HeldMemory

_KEYS = ("category", "layer", "line", "op", "direction")
"""What is compared."""


class _Levels(NamedTuple):
    """The part of a comparison that a limit reads."""

    metrics: Mapping[str, Measure]


def compare(a: Sequence[DeviceMemory], b: Sequence[DeviceMemory]) -> MemoryDiff:
    """Compare devices of the same name; if no names agree, those that peak highest."""
    others = {each.device: each for each in reversed(b)}
    pairs = [(each, others[each.device]) for each in a if each.device in others]
    pairs = pairs or [(a[0], b[0])]
    only_a, only_b = (
        tuple(each.device for each in devices if each.device not in paired)
        for devices, paired in ((a, {one.device for one, _ in pairs}),
                                (b, {other.device for _, other in pairs}))
    )  # fmt: skip
    return MemoryDiff(tuple(_compare_devices(*pair) for pair in pairs), only_a, only_b, failed=())


def _compare_devices(a: DeviceMemory, b: DeviceMemory) -> DeviceMemoryChange:
    metrics = {}
    for name, field in _FIELDS.items():
        before, after = getattr(a, field), getattr(b, field)
        change = None if before is None or after is None else after - before
        share = change / before if before and change is not None else None
        metrics[name] = MemoryMeasure(before, after, change, share)
    by = {key: _changes(a.by.get(key, ()), b.by.get(key, ())) for key in _KEYS}
    return DeviceMemoryChange(a.device, b.device, metrics, by)


def _changes(a: Sequence[HeldMemory], b: Sequence[HeldMemory]) -> tuple[HeldChange, ...]:
    """Return what changed, the largest change first."""
    before, after = (
        {group.name: (group.bytes, group.block_count) for group in groups} for groups in (a, b)
    )
    changes = []
    for name in {**before, **after}:
        a_bytes, a_count = before.get(name, (0, 0))
        b_bytes, b_count = after.get(name, (0, 0))
        if a_bytes != b_bytes:
            changes.append(
                HeldChange(
                    name=name,
                    a_bytes=a_bytes,
                    b_bytes=b_bytes,
                    a_block_count=a_count,
                    b_block_count=b_count,
                    change_bytes=b_bytes - a_bytes,
                )
            )
    return tuple(sorted(changes, key=lambda each: -abs(each.change_bytes)))


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
    metric, above = f"{match['name']}_bytes", match["sign"] == ">"
    return Limit(text.strip(), metric, above, value, match["unit"] == "%")


def check(limits: Sequence[Limit], answer: MemoryDiff) -> tuple[MemoryDiff, bool]:
    """Return the answer with the limits that a device exceeds; and whether any surely does."""
    failed: list[str] = []
    exceeded = False
    for device in answer.devices:
        levels = _Levels(
            {
                f"{name}_bytes": Measure(
                    each.a_bytes, each.b_bytes, each.change_bytes, each.change_share
                )
                for name, each in device.metrics.items()
            }
        )
        prefix = f"{device.b_device}: " if len(answer.devices) > 1 else ""
        for violation in (limit.violation(levels) for limit in limits):
            if violation is not None:
                failed.append(f"{prefix}{violation.sentence}")
                exceeded |= violation.certain
    return replace(answer, failed=tuple(failed)), exceeded
