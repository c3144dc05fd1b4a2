"""Counters of another run, of Nsight Compute, joined to the kernels of a capture.

ncu runs a kernel many times over, so its file is of a run of its own: its kernels are found in the
capture by name, grid, block and order of launch, on each device of each process by itself. Tools
spell names differently: what is compared is the path, and the words and numbers of the template
arguments.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyprof import readers, schema
from pyprof.arrays import MISSING, ints
from pyprof.errors import CaptureError
from pyprof.gpu.kernel_names import demangle, short_name, split
from pyprof.parse.counters.counters_json import together
from pyprof.parse.launches import launch_bounds
from pyprof.readers import settings
from pyprof.records.records import DictionaryColumn, distinct, number_combinations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from pyprof.arrays import Int64Array, Mask
    from pyprof.records.records import Records

_JOINED, _REPEATED = "joined", "repeated"
_SHOWN = 3
"""Names that a message lists."""


def with_counters(records: Records) -> Records:
    """Join what the user's file of counters measured, if there is one; say what did not join."""
    file = settings.counters()
    if not file:
        return records
    path = Path(file)
    before = readers.stamp(path)
    profiled = _read(file, before)
    kernels = _in_order_of_launch(records, np.flatnonzero(_is_kernel(records)))
    ours = _launches_of(records, kernels, profiled.axes)
    matches = _matched(ours, profiled.launches)
    column, notes = _column(records, kernels, matches, profiled)
    columns = {**records.columns, "counters": column}
    changed = (f"{path.name}: {text}" for text in readers.changed(path, before))
    unjoined = _unjoined(profiled, matches, path.name)
    return replace(
        records, columns=columns, warnings=(*records.warnings, *changed, *notes, *unjoined)
    )


class _Axis(NamedTuple):
    """What is known of a grid or a block."""

    of: str
    place: int | None
    """Of the axis; None for the product of all three."""


_EVERY_AXIS = [_Axis(of, place) for of in ("grid", "block") for place in range(3)]


@dataclass(frozen=True, slots=True)
class _Launches:
    """Kernels in the order of their launches."""

    names: DictionaryColumn
    sizes: tuple[Int64Array, ...]
    """Along some axes of grid and block; MISSING if unknown."""
    lane: Int64Array
    """Number of the device of a process, from 0."""


@dataclass(frozen=True, slots=True)
class _Profiled:
    launches: _Launches
    texts: list[str | None]
    """Their counters."""
    axes: tuple[_Axis, ...]
    """The sizes that the file tells."""


@lru_cache(maxsize=4)
def _read(path: str, stamp: tuple[int, ...]) -> _Profiled:
    from pyprof.readers.ncu import TOTALS_ONLY  # noqa: PLC0415 - nearly no run needs it

    del stamp  # a file that changed is another one
    capture = readers.read(Path(path))
    rows = capture.activities
    if capture.tool != "ncu":
        raise CaptureError(
            f"{path}: --counters takes the CSV of Nsight Compute (ncu --csv --page raw); "
            f"this is a capture of {capture.tool}"
        )
    if rows.column("counters").null_count == rows.num_rows:
        raise CaptureError(
            f"{path}: no counter that pyprof knows; profile with --set full, or with the --metrics "
            "of docs/counters.md"
        )
    names = rows.column("name").unify_dictionaries().combine_chunks()
    sizes = _sizes(rows, totals_only=TOTALS_ONLY in capture.warnings)
    launches = _Launches(
        DictionaryColumn(ints(names.indices), names.dictionary.to_pylist()),
        tuple(sizes.values()),
        _lanes(ints(rows.column("device")), ints(rows.column("pid"))),
    )
    return _Profiled(launches, rows.column("counters").to_pylist(), tuple(sizes))


def _sizes(rows: pa.Table, *, totals_only: bool) -> dict[_Axis, Int64Array]:
    """Give the sizes of grids and blocks that a file of ncu tells, each by what it is."""
    axes = [_Axis("grid", None), _Axis("block", None)] if totals_only else _EVERY_AXIS
    sizes = {axis: ints(rows.column(f"{axis.of}_{'xyz'[axis.place or 0]}")) for axis in axes}
    return {axis: size for axis, size in sizes.items() if (size != MISSING).any()}


def _lanes(device: Int64Array, pid: Int64Array) -> Int64Array:
    """Number the devices of processes: by device, then by which process came first."""
    number = number_combinations(device, pid)
    first, _ = distinct(number)
    lane = np.empty(len(first), np.int64)
    lane[np.lexsort((first, device[first]))] = np.arange(len(first))
    return lane[number]


def _is_kernel(records: Records) -> Mask:
    kind = records.dictionary("kind")
    kernel = schema.KINDS[schema.KERNEL]
    return np.array([*(value in (None, kernel) for value in kind.values), True]).take(kind.index)


def _in_order_of_launch(records: Records, rows: Int64Array) -> Int64Array:
    """Order rows by when they were launched, as ncu profiles them; as they are if not all tell."""
    begin = launch_bounds(records)[0][rows]
    return rows if (begin == MISSING).any() else rows[np.argsort(begin, kind="stable")]


def _launches_of(records: Records, rows: Int64Array, axes: tuple[_Axis, ...]) -> _Launches:
    """Give launches of a capture, with the sizes that the profiled ones have."""
    sizes = [_along(records.dictionary(axis.of).take(rows), axis.place) for axis in axes]
    lane = _lanes(*(records.numpy(name)[rows] for name in ("device", "pid")))
    return _Launches(records.dictionary("kLongName").take(rows), tuple(sizes), lane)


def _along(sizes: DictionaryColumn, place: int | None) -> Int64Array:
    """Give the size along an axis, or the product of all three."""
    values = [_size(value, place) if value else MISSING for value in sizes.values]
    return np.array([*(v if v < 1 << 62 else MISSING for v in values), MISSING], np.int64).take(
        sizes.index
    )


def _size(sides: Sequence[int], place: int | None) -> int:
    if place is None:
        return math.prod(sides)
    return sides[place] if place < len(sides) else MISSING


# --- matching -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Matches:
    """For each kernel of the capture, the profiled kernel that it is or resembles."""

    row: Int64Array
    """Row of the profiled kernel; MISSING if there is none."""
    repeated: Mask
    used: Mask
    """Which profiled kernels have a counterpart."""


def _matched(ours: _Launches, theirs: _Launches) -> _Matches:
    """Match by whole names first, then by function alone: ncu may have been asked to write that.

    What its own device does not have may be another's: of two processes ncu may have seen one.
    """
    row = np.full(len(ours.lane), MISSING)
    repeated = np.zeros(len(row), bool)
    used = np.zeros(len(theirs.lane), bool)
    spellings: tuple[Callable[[str], object], ...] = (_words, _function)
    for in_lanes, spell in product((1, 0), spellings):
        left, unused = np.flatnonzero(row == MISSING), np.flatnonzero(~used)
        key, other = _keys(ours, left, theirs, unused, spell)
        lanes = ours.lane[left] * in_lanes, theirs.lane[unused] * in_lanes
        place, again = _by_order(key, other, *lanes)
        hit = place != MISSING
        row[left[hit]] = unused[place[hit]]
        repeated[left[hit]] = again[hit]
        used[unused[np.unique(place[hit])]] = True
    return _Matches(row, repeated, used)


def _keys(
    ours: _Launches,
    left: Int64Array,
    theirs: _Launches,
    unused: Int64Array,
    spell: Callable[[str], object],
) -> tuple[Int64Array, Int64Array]:
    """Number what the launches of both have in common."""
    numbers: dict[object, int] = {}
    codes = []
    for launches, rows in ((ours, left), (theirs, unused)):
        code = [numbers.setdefault(spell(name), len(numbers)) for name in launches.names.values]
        names = np.array([*code, MISSING])[launches.names.index[rows]]
        codes.append((names, *(size[rows] for size in launches.sizes)))
    both = (np.concatenate(pair) for pair in zip(*codes, strict=True))
    key = number_combinations(*both).astype(np.int64)
    return key[: len(left)], key[len(left) :]


def _by_order(
    key: Int64Array, other: Int64Array, lane: Int64Array, other_lane: Int64Array
) -> tuple[Int64Array, Mask]:
    """Match the n-th of a key in a lane here to the n-th there; of fewer lanes, each several times.

    If one side begins later (--launch-skip), what the other has before that does not count. Where
    here are a whole number of times as many, what was profiled was one of several repetitions:
    they take its numbers in turn.
    """
    partner = lane % (other_lane.max(initial=0) + 1)
    codes = number_combinations(
        np.concatenate([key, key, other]), np.concatenate([lane, partner, other_lane])
    ).astype(np.int64)
    mine, its, code_there = np.split(codes, [len(key), 2 * len(key)])
    count = int(codes.max(initial=MISSING)) + 1
    here = np.bincount(mine, minlength=count)[mine]
    there = np.bincount(code_there, minlength=count)
    first = np.concatenate([np.zeros(1, np.int64), np.cumsum(there)])[its]
    there = there[its]
    nth = _nth(mine) - _skipped(key, other, lane, other_lane)
    order = np.argsort(code_there, kind="stable")
    repeats = (there > 0) & (here > there) & (here % np.maximum(there, 1) == 0)
    turn = np.where(repeats, nth % np.maximum(there, 1), nth)
    hit = (turn >= 0) & (turn < there)
    place = np.full(len(key), MISSING)
    place[hit] = order[(first + turn)[hit]]
    return place, hit & ((turn != nth) | (lane != partner))


def _skipped(
    key: Int64Array, other: Int64Array, lane: Int64Array, other_lane: Int64Array
) -> Int64Array:
    """Return, for each launch here, how many of its key came before the first one profiled.

    Negative if it is the capture that begins later.
    """
    skipped = np.zeros(len(key), np.int64)
    for number in np.unique(lane):
        rows = np.flatnonzero(lane == number)
        theirs = other[other_lane == number % (other_lane.max(initial=0) + 1)]
        ours = key[rows]
        shared = ours[np.isin(ours, theirs)], theirs[np.isin(theirs, ours)]
        shift = _shift(*shared)
        before = shared[0][:shift] if shift > 0 else shared[1][:-shift]
        counts = np.bincount(before, minlength=int(key.max(initial=0)) + 1)
        skipped[rows] = np.sign(shift) * counts[ours]
    return skipped


_ANCHOR, _LEAST_ANCHOR = 32, 8
"""Launches in a row that are looked for on the other side."""
_MOST_SHIFTS = 64


def _shift(ours: Int64Array, theirs: Int64Array) -> int:
    """Return by how many launches to shift theirs so that most are equal; the least shift of these.

    Candidates are where a few launches in a row of one side occur on the other.
    """
    shifts = {0, *_candidates(ours, theirs), *(-shift for shift in _candidates(theirs, ours))}
    return max(shifts, key=lambda shift: (_equal(ours, theirs, shift), -abs(shift), shift))


def _candidates(long: Int64Array, short: Int64Array) -> Iterator[int]:
    """Find where in one sequence parts of the other begin, or the whole of it."""
    size = np.dtype(np.int64).itemsize
    text, count = np.ascontiguousarray(long, np.int64).tobytes(), len(short)
    for begin in dict.fromkeys((0, count // 4, count // 2, 3 * count // 4)):
        part = short[begin : begin + _ANCHOR]
        if not len(part) or (len(part) < _LEAST_ANCHOR and len(part) < count):
            continue
        sought = np.ascontiguousarray(part, np.int64).tobytes()
        at = text.find(sought)
        for _ in range(_MOST_SHIFTS):
            if at < 0:
                break
            if at % size == 0:
                yield at // size - begin
            at = text.find(sought, at + 1)


def _equal(ours: Int64Array, theirs: Int64Array, shift: int) -> int:
    """Count the launches that are equal if theirs begin so many later than ours."""
    one, other = ours[max(shift, 0) :], theirs[max(-shift, 0) :]
    count = min(len(one), len(other))
    return int((one[:count] == other[:count]).sum())


def _nth(key: Int64Array) -> Int64Array:
    """Count, for each, how many of its key came before."""
    order = np.argsort(key, kind="stable")
    starts, _ = distinct(key[order])
    nth = np.empty(len(key), np.int64)
    run = np.zeros(len(key), np.int64)
    run[starts] = starts
    nth[order] = np.arange(len(key)) - np.maximum.accumulate(run)
    return nth


_WORD = re.compile(r"[A-Za-z_]\w*|\d+")
_SPELLING = frozenset(
    [
        "void",
        "const",
        "volatile",
        "unsigned",
        "signed",
        "int",
        "long",
        "short",
        "char",
        "bool",
        "lambda",
        "instance",
        "anonymous",
        "namespace",
        "unnamed",
        "operator",
        "type",
        "std",
        "size_t",
        "uint32_t",
        "int32_t",
        "int64_t",
        "uint64_t",
    ]
)
"""Words that tools write or not: casts of numbers, and names of what has none."""
_TRUTH = {"true": "1", "false": "0"}
_PLACEHOLDER = re.compile(r"T\d+|function_traits|_\d+")


@lru_cache(maxsize=1 << 16)
def _words(name: str) -> tuple[str, ...]:
    """Give the part of a name that all tools write."""
    path, rest = split(demangle(name))
    words = (_TRUTH.get(word, word) for word in _WORD.findall(_arguments(rest)))
    return path, *(w for w in words if w not in _SPELLING and not _PLACEHOLDER.fullmatch(w))


def _arguments(rest: str) -> str:
    """Leave out the parameters, which follow the template arguments."""
    depth = 0
    for match in re.finditer(r"[<>(\[]", rest):
        mark = match[0]
        if mark == "(" and not depth:
            return rest[: match.start()]
        depth += {"<": 1, ">": -1}.get(mark, 0) if rest[match.start() - 1] != "-" else 0
    return rest


def _function(name: str) -> str:
    return short_name(demangle(name)).rpartition("::")[2]


# --- what came of it ----------------------------------------------------------------------------


def _column(
    records: Records, kernels: Int64Array, matches: _Matches, profiled: _Profiled
) -> tuple[DictionaryColumn, list[str]]:
    """Give each row its counters: the profiled ones, and what else was measured of it."""
    count = len(profiled.texts)
    values = [*_of_source(profiled, _JOINED), *_of_source(profiled, _REPEATED)]
    index = np.full(records.rows, MISSING)
    hit = matches.row != MISSING
    index[kernels[hit]] = (matches.row + count * matches.repeated)[hit]
    column = together(records.dictionary("counters"), DictionaryColumn(index, values))
    repeated = int(matches.repeated.sum())
    if not repeated:
        return column, []
    note = f"{repeated:,} kernels take the counters of ones alike: ncu profiled one repetition"
    return column, [note]


def _of_source(profiled: _Profiled, source: str) -> Iterator[str | None]:
    for text in profiled.texts:
        yield text and text.replace('"source":"ncu"', f'"source":"{source}"', 1)


def _unjoined(profiled: _Profiled, matches: _Matches, file: str) -> Iterator[str]:
    """Say what has no counterpart on the other side."""
    names = profiled.launches.names
    unused = np.flatnonzero(~matches.used)
    if len(unused):
        yield (
            f"{file}: {len(unused):,} of {len(names):,} kernels did not join, for the capture has "
            f"none, or fewer, of that name, grid and block: {_listed(names.take(unused))}"
        )
    without = int((matches.row == MISSING).sum())
    if without:
        yield f"{without:,} of {len(matches.row):,} kernels of the capture have no counters"


def _listed(names: DictionaryColumn) -> str:
    counts = Counter(short_name(demangle(names.values[place])) for place in names.index.tolist())
    shown = [f"{name} ({count:,})" for name, count in counts.most_common(_SHOWN)]
    return ", ".join([*shown, "..."] if len(counts) > _SHOWN else shown)
