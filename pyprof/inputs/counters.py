"""Counters measured by Nsight Compute in another run, joined to the kernels of a capture.

ncu runs each kernel many times, so its file comes from a separate run: `counter_alignment` finds
the counterparts.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyprof import readers, schema
from pyprof.arrays import MISSING, ints
from pyprof.errors import CaptureError
from pyprof.gpu.kernel_names import demangle, short_name
from pyprof.inputs.counter_alignment import Launches, Matches, match_launches
from pyprof.parse.counters.counters_json import join_counters
from pyprof.parse.launches import launch_bounds
from pyprof.quantities import counted
from pyprof.readers import settings
from pyprof.records.records import DictionaryColumn, distinct, number_combinations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyprof.arrays import Int64Array
    from pyprof.records.records import Records

_JOINED, _REPEATED = "joined", "repeated"
"""Sources of counters: the profiled run of this launch, or of an equal one."""
_SHOWN = 3
"""Names that a message lists."""


def with_counters(records: Records) -> Records:
    """Join the user's file of counters, if any; warn about what did not join."""
    file = settings.counters()
    if not file:
        return records
    path = Path(file)
    before = readers.stamp(path)
    profiled = _read(file, before)
    # order rows by launch, as ncu profiles them; unchanged if a launch time is missing
    rows = np.flatnonzero(records.of_kind(schema.KERNEL, None))
    begin = launch_bounds(records)[0][rows]
    kernels = rows if (begin == MISSING).any() else rows[np.argsort(begin, kind="stable")]
    # launches of a capture, with the sizes that the profiled ones have
    sizes = [
        _sizes_along(records.dictionary(axis.of).take(kernels), axis.dimension)
        for axis in profiled.axes
    ]
    lane = _lanes(*(records.numpy(name)[kernels] for name in ("device", "pid")))
    ours = Launches(records.dictionary("kLongName").take(kernels), tuple(sizes), lane)
    matches = match_launches(ours, profiled.launches)
    column, notes = _column(records, kernels, matches, profiled)
    columns = {**records.columns, "counters": column}
    changed = (f"{path.name}: {text}" for text in readers.changed(path, before))
    unjoined = _describe_unjoined(profiled, matches, path.name)
    return replace(
        records, columns=columns, warnings=(*records.warnings, *changed, *notes, *unjoined)
    )


class _Axis(NamedTuple):
    """A size of a grid or block."""

    of: str
    dimension: int | None
    """Index of the axis; None for the product of all three."""


_EVERY_AXIS = [_Axis(of, dimension) for of in ("grid", "block") for dimension in range(3)]


@dataclass(frozen=True, slots=True)
class _Profiled:
    launches: Launches
    texts: list[str | None]
    """Counters of each launch, as JSON."""
    axes: tuple[_Axis, ...]
    """The sizes that the file records."""


@lru_cache(maxsize=4)
def _read(path: str, stamp: tuple[int, ...]) -> _Profiled:
    from pyprof.readers.ncu import TOTALS_ONLY  # noqa: PLC0415 - nearly no run needs it

    del stamp  # a file that changed is another one
    capture = readers.read(Path(path))
    rows = capture.activities
    if capture.tool != "ncu":
        raise CaptureError(
            f"{path}: counters are the CSV of Nsight Compute (ncu --csv --page raw); "
            f"this is a capture of {capture.tool}"
        )
    if rows.column("counters").null_count == rows.num_rows:
        raise CaptureError(
            f"{path}: no counter that pyprof knows; profile with --set full, or with the --metrics "
            "of docs/capture.md"
        )
    names = rows.column("name").unify_dictionaries().combine_chunks()
    totals = [_Axis("grid", None), _Axis("block", None)]
    axes = totals if TOTALS_ONLY in capture.warnings else _EVERY_AXIS
    sizes = {axis: ints(rows.column(f"{axis.of}_{'xyz'[axis.dimension or 0]}")) for axis in axes}
    sizes = {axis: size for axis, size in sizes.items() if (size != MISSING).any()}
    launches = Launches(
        DictionaryColumn(ints(names.indices), names.dictionary.to_pylist()),
        tuple(sizes.values()),
        _lanes(ints(rows.column("device")), ints(rows.column("pid"))),
    )
    return _Profiled(launches, rows.column("counters").to_pylist(), tuple(sizes))


def _lanes(device: Int64Array, pid: Int64Array) -> Int64Array:
    """Number the devices of processes: by device, then by first use."""
    number = number_combinations(device, pid)
    first, _ = distinct(number)
    lane = np.empty(len(first), np.int64)
    lane[np.lexsort((first, device[first]))] = np.arange(len(first))
    return lane[number]


def _sizes_along(sizes: DictionaryColumn, dimension: int | None) -> Int64Array:
    """Return the size along an axis, or the product of all three."""

    def length(sides: list[int] | None) -> int:
        if dimension is None:
            value = math.prod(sides) if sides else MISSING
        else:
            value = sides[dimension] if sides and dimension < len(sides) else MISSING
        return value if value < 1 << 62 else MISSING

    return sizes.numpy(length, MISSING)


def _column(
    records: Records, kernels: Int64Array, matches: Matches, profiled: _Profiled
) -> tuple[DictionaryColumn, list[str]]:
    """Return the counters of each row: the profiled ones, and others recorded in the capture."""
    count = len(profiled.texts)
    values = [
        text and text.replace('"source":"ncu"', f'"source":"{source}"', 1)
        for source in (_JOINED, _REPEATED)
        for text in profiled.texts
    ]
    index = np.full(records.rows, MISSING)
    hit = matches.row != MISSING
    index[kernels[hit]] = (matches.row + count * matches.repeated)[hit]
    column = join_counters(records.dictionary("counters"), DictionaryColumn(index, values))
    repeated = int(matches.repeated.sum())
    if not repeated:
        return column, []
    alike = counted(repeated, "kernel")
    return column, [f"{alike} with the counters of others: ncu profiled one repetition"]


def _describe_unjoined(profiled: _Profiled, matches: Matches, file: str) -> Iterator[str]:
    """Report what has no counterpart on the other side."""
    names = profiled.launches.names
    unused = names.index[~matches.used].tolist()
    if unused:
        counts = Counter(short_name(demangle(names.values[index])) for index in unused)
        shown = [f"{name} ({count:,})" for name, count in counts.most_common(_SHOWN)]
        shown += ["..."] * (len(counts) > _SHOWN)
        yield (
            f"{file}: {len(unused):,} of {len(names):,} kernels did not join, for the capture has "
            f"none, or fewer, of that name, grid and block: {', '.join(shown)}"
        )
    without = int((matches.row == MISSING).sum())
    if without:
        yield f"{without:,} of {len(matches.row):,} kernels of the capture have no counters"
