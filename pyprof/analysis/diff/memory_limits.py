"""Limits on what memory may grow by, as `--fail-if` writes them: `peak>+5%`, `reserved>2GB`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyprof.analysis.diff.compare import Metric
from pyprof.analysis.diff.gate import Limit
from pyprof.cli_types import suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyprof.analysis.memory.memory_diff import ComparedMemory, MemoryComparison

_FIELDS = {
    "peak": "peak_bytes",
    "reserved": "peak_reserved_bytes",
    "start": "start_bytes",
    "end": "end_bytes",
}
METRICS = tuple(_FIELDS)
"""What can be limited: of `pyprof memory` the peak, what was reserved then, both ends."""

_UNITS = {"%": 0.01, "": 1, "B": 1, **{f"{prefix}B": 1000**power for power, prefix in
          enumerate("kMGT", 1)}, **{f"{prefix}iB": 1024**power for power, prefix in
          enumerate("KMGT", 1)}}  # fmt: skip
_LIMIT = re.compile(
    r"\s*(?P<name>[a-z]+)\s*(?P<sign>[<>])\s*(?P<value>[+-]?\d+(?:\.\d+)?)\s*"
    rf"(?P<unit>{'|'.join(map(re.escape, _UNITS))})\s*"
)


@dataclass(frozen=True, slots=True)
class _Device:
    metrics: Mapping[str, Metric]


def metrics(pair: ComparedMemory) -> Mapping[str, Metric]:
    """Return what can be limited, of one device."""
    return {
        name: Metric(name=name, unit="bytes", a=getattr(pair.a, field), b=getattr(pair.b, field))
        for name, field in _FIELDS.items()
    }


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
    """Say which limits any device is beyond; and whether any is, or none can be told to be."""
    broken: list[str] = []
    exceeded = False
    for pair in comparison.pairs:
        device = _Device(metrics(pair))
        for limit in limits:
            sentence = limit.broken(device)
            if sentence is not None:
                several = len(comparison.pairs) > 1
                broken.append(f"{pair.b.device}: {sentence}" if several else sentence)
                exceeded |= limit.grown(device) is not None
    return tuple(broken), exceeded
