"""Nsight Compute's CSV (`ncu --csv --page details` or `raw`), 2021 to 2026: counters per kernel.

ncu runs each kernel alone, several times, with cold caches and, unless asked otherwise, at the base
clock. Durations are those of such runs; when they took place is not recorded.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import orjson
import pyarrow as pa

from pyprof import schema
from pyprof.readers.encodings import utf8
from pyprof.readers.validate import duplicate_warnings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyprof.arrays import Int64Array
    from pyprof.readers.ncu.tables import Kernel, Numbers, Profile

FORMAT = "the CSV of Nsight Compute"

_HEAD_BYTES = 16 << 20
"""How far the header is searched for: messages of the profiler and the program precede it."""
_HEADER = re.compile(
    rb'^(?=[^\r\n]{0,8192}"?Kernel Name"?)"?(?:ID|Process ID|Kernel Name)"?[,;\t]', re.MULTILINE
)
"""The line above the kernels, which names the columns."""
_SIGNS = (b"==PROF==", b"==WARNING==", b"==ERROR==")
"""How the profiler's own messages begin."""
_WHY_EMPTY = (b"ERR_NVGPUCTRPERM", b"No kernels were profiled")
"""Its messages about an output without kernels."""


def sniff(path: Path, head: bytes) -> bool:
    """Recognise the line of column names, which may follow many lines of the profiler."""
    head = utf8(head)
    if _HEADER.search(head):
        return True
    if not any(sign in head for sign in _SIGNS):
        return False
    with path.open("rb") as file:
        start = utf8(file.read(_HEAD_BYTES))
    return bool(_HEADER.search(start)) or any(reason in start for reason in _WHY_EMPTY)


def read(path: Path) -> schema.Capture:
    """Read the kernels, one row each, with their metrics."""
    from pyprof.readers.ncu import tables  # noqa: PLC0415 - other captures need not load it
    from pyprof.readers.ncu.metrics import known_name, measured  # noqa: PLC0415 - as above

    profile = tables.profile(path, known_name)
    kernels = profile.kernels
    numbers = tables.Numbers(kernels)
    capability = [_two_numbers(kernel.described.get("CC", ""))[0] for kernel in kernels]
    values = [
        measured(kernel, numbers, major) for kernel, major in zip(kernels, capability, strict=True)
    ]
    shapes = [
        {side: _three_sizes(kernel, numbers, side) for side in ("grid", "block")}
        for kernel in kernels
    ]
    duration = pa.array([counters.pop("duration_ns", None) for counters in values], pa.float64())
    device = np.array([_device(kernel) for kernel in kernels])
    start, end = _line_up(duration, device)
    columns = {
        "kind": np.full(len(kernels), schema.KERNEL, np.int8),
        "start": start,
        "end": end,
        "pid": [_parse_whole(kernel.described.get("Process ID")) for kernel in kernels],
        "device": device.astype(np.int32),
        "stream": [_parse_whole(kernel.described.get("Stream")) for kernel in kernels],
        "corr": np.arange(len(kernels)),
        "name": [kernel.described["Kernel Name"] for kernel in kernels],
        "regs": [_int(counters.pop("regs", None), 1 << 31) for counters in values],
        "smem": [_int(counters.pop("smem_bytes", None), 1 << 40) for counters in values],
        **{f"{side}_{axis}": [shape[side][index] for shape in shapes]
           for side in ("grid", "block") for index, axis in enumerate("xyz")},
    }  # fmt: skip
    devices = _devices(kernels, values)
    texts = [orjson.dumps({"source": "ncu", **c}).decode() if c else None for c in values]
    return schema.Capture(
        "ncu",
        None,
        activities=schema.table(schema.ACTIVITIES, {**columns, "counters": texts}),
        devices=devices,
        warnings=tuple(_warnings(profile, duration)),
    )


def _line_up(duration: pa.Array, device: Int64Array) -> tuple[pa.Array, pa.Array]:
    """Let each kernel start when the one before it on its device ended, only to have an order."""
    if duration.null_count == len(duration):
        nothing = pa.nulls(len(duration), pa.int64())
        return nothing, nothing
    lengths = np.rint(np.nan_to_num(duration.to_numpy(zero_copy_only=False))).astype(np.int64)
    end = np.empty_like(lengths)
    for number in np.unique(device):
        own = device == number
        end[own] = np.cumsum(lengths[own])
    return pa.array(end - lengths), pa.array(end, mask=np.asarray(duration.is_null()))


_DIGITS = re.compile(r"\d+")
_MAX_SIZE = 1 << 31
"""Greater than every side of a grid or block."""


def _three_sizes(kernel: Kernel, numbers: Numbers, side: str) -> list[int | None]:
    """Return x, y, z of a grid or block; if only their product is recorded, it is x."""
    title = f"{side.capitalize()} Size"
    sizes = [int(size[:10]) for size in _DIGITS.findall(kernel.described.get(title, ""))]
    if len(sizes) != len("xyz"):
        read = [numbers.read(kernel.metrics.get(f"launch__{side}_dim_{axis}")) for axis in "xyz"]
        sizes = [int(size) for size in read if size is not None]
    if len(sizes) != len("xyz"):
        metrics = (kernel.metrics.get(name) for name in (f"launch__{side}_size", title))
        total = numbers.read(next((metric for metric in metrics if metric), None))
        sizes = [int(total), 1, 1] if total is not None else []
    possible = len(sizes) == len("xyz") and all(0 < size < _MAX_SIZE for size in sizes)
    return [*sizes] if possible else [None, None, None]


def _parse_whole(text: str | None) -> int | None:
    text = (text or "").strip()
    return int(text) if text.isdecimal() and len(text) < len(str(1 << 62)) else None


def _int(value: float | None, limit: int) -> int | None:
    return int(value) if value is not None and 0 <= value < limit else None


def _device(kernel: Kernel) -> int:
    number = _parse_whole(kernel.described.get("Device"))
    return number if number is not None and number < _MAX_DEVICES else 0


_MAX_DEVICES = 1 << 16
"""Greater than every number of a device."""


def _devices(kernels: Sequence[Kernel], values: list[dict[str, float]]) -> pa.Table:
    """Return the devices whose compute capability or number of SMs is recorded."""
    described: dict[int, dict[str, object]] = {}
    for kernel, counters in zip(kernels, values, strict=True):
        sms = _int(counters.pop("sm_count", None), 1 << 16)
        name = kernel.metrics.get("device__attribute_display_name")
        cc = kernel.described.get("CC", "")
        if (name and name.text) or sms or cc:
            device, (major, minor) = _device(kernel), _two_numbers(cc)
            row = {"device": device, "name": name.text if name else None, "sm_count": sms}
            described.setdefault(device, {**row, "cc_major": major, "cc_minor": minor})
    return pa.Table.from_pylist([*described.values()], schema.DEVICES)


_CC = re.compile(r"(\d{1,2})[.,](\d)")


def _two_numbers(text: str) -> tuple[int | None, int | None]:
    match = _CC.fullmatch(text.strip())
    return (int(match[1]), int(match[2])) if match else (None, None)


_TOTALS = frozenset({"Grid Size", "launch__grid_size"})
TOTALS_ONLY = "this version of ncu wrote sizes of grids and blocks as totals: shown as N,1,1"
"""Warning about a file without the three sides of grids and blocks."""


def _warnings(profile: Profile, duration: pa.Array) -> Iterator[str]:
    kernels = profile.kernels
    yield (
        "ncu runs each kernel alone, with cold caches and, unless --clock-control none was given, "
        "at the base clock: times are of such runs, laid end to end"
    )
    if duration.null_count:
        yield (
            f"{duration.null_count:,} of {len(duration):,} kernels have no time; "
            "add gpu__time_duration.sum to ncu's --metrics"
        )
    sides = any("Grid Size" in k.described or "launch__grid_dim_x" in k.metrics for k in kernels)
    if not sides and any(_TOTALS & k.metrics.keys() for k in kernels):
        yield TOTALS_ONLY
    if any(kernel.calls is not None for kernel in kernels):
        yield "a summary (--print-summary): each kernel has the averages over the calls of its kind"
    yield from duplicate_warnings(profile.duplicates, "kernels")
    if profile.lost_lines:
        yield (
            f"lines lost because a quotation mark is missing: {profile.lost_lines:,}; export the "
            "CSV again"
        )
