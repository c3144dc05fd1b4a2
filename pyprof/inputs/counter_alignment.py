"""Aligns kernels profiled in another run with those of a capture: by name, sizes and launch order.

Each device of each process is aligned by itself. Tools write names differently: the path and the
words and numbers of the template arguments are compared.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from pyprof.arrays import MISSING
from pyprof.gpu.kernel_names import demangle, short_name, split
from pyprof.records.records import distinct, number_combinations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyprof.arrays import Int64Array, Mask
    from pyprof.records.records import DictionaryColumn


@dataclass(frozen=True, slots=True)
class Launches:
    """Kernels in launch order."""

    names: DictionaryColumn
    sizes: tuple[Int64Array, ...]
    """Sizes along some axes of grid and block; MISSING if unknown."""
    lane: Int64Array
    """Index of the device of a process, from 0."""


@dataclass(frozen=True, slots=True)
class Matches:
    """For each kernel of the capture, the profiled kernel that it is or resembles."""

    row: Int64Array
    """Row of the profiled kernel; MISSING if there is none."""
    repeated: Mask
    used: Mask
    """Whether each profiled kernel has a counterpart."""


def match_launches(ours: Launches, theirs: Launches) -> Matches:
    """Match by whole names first, then by function name: ncu can be told to write only that.

    First within a lane, then across lanes: of two processes ncu may have profiled one.
    """
    row = np.full(len(ours.lane), MISSING)
    repeated = np.zeros(len(row), bool)
    used = np.zeros(len(theirs.lane), bool)
    spellings: tuple[Callable[[str], object], ...] = (_words, _function)
    for in_lanes, spell in product((1, 0), spellings):
        left, unused = np.flatnonzero(row == MISSING), np.flatnonzero(~used)
        # number the distinct combinations of name and sizes, across both sides
        numbers: dict[object, int] = {}
        codes = []
        for launches, rows in ((ours, left), (theirs, unused)):
            code = [numbers.setdefault(spell(name), len(numbers)) for name in launches.names.values]
            names = np.array([*code, MISSING])[launches.names.index[rows]]
            codes.append((names, *(size[rows] for size in launches.sizes)))
        both = map(np.concatenate, zip(*codes, strict=True))
        key, other = np.split(number_combinations(*both).astype(np.int64), [len(left)])
        lanes = ours.lane[left] * in_lanes, theirs.lane[unused] * in_lanes
        index, again = _by_order(key, other, *lanes)
        hit = index != MISSING
        row[left[hit]] = unused[index[hit]]
        repeated[left[hit]] = again[hit]
        used[unused[np.unique(index[hit])]] = True
    return Matches(row, repeated, used)


def _by_order(
    key: Int64Array, other: Int64Array, lane: Int64Array, other_lane: Int64Array
) -> tuple[Int64Array, Mask]:
    """Match the n-th launch of a key in a lane to the n-th there, reusing lanes if there are fewer.

    If one side begins later (--launch-skip), earlier launches on the other do not count. If a key
    occurs a whole multiple as often here, one of several repetitions was profiled: they reuse its
    launches in turn.
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
    nth = _count_earlier(mine) - _count_skipped(key, other, lane, other_lane)
    order = np.argsort(code_there, kind="stable")
    repeats = (there > 0) & (here > there) & (here % np.maximum(there, 1) == 0)
    turn = np.where(repeats, nth % np.maximum(there, 1), nth)
    hit = (turn >= 0) & (turn < there)
    place = np.full(len(key), MISSING)
    place[hit] = order[(first + turn)[hit]]
    return place, hit & ((turn != nth) | (lane != partner))


def _count_skipped(
    key: Int64Array, other: Int64Array, lane: Int64Array, other_lane: Int64Array
) -> Int64Array:
    """Return, for each launch here, how many of its key precede the first one profiled.

    Negative if the capture begins later.
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


_ANCHOR, _MIN_ANCHOR = 32, 8
"""Length of the sequences of launches that are searched on the other side."""
_MAX_SHIFTS = 64
"""Maximum number of places at which a sequence is found."""


def _shift(ours: Int64Array, theirs: Int64Array) -> int:
    """Return the smallest shift of theirs that makes most launches equal.

    Candidates are positions where a sequence of launches of one side occurs on the other.
    """
    shifts = {0, *_candidates(ours, theirs), *(-shift for shift in _candidates(theirs, ours))}
    return max(shifts, key=lambda shift: (_count_equal(ours, theirs, shift), -abs(shift), shift))


def _candidates(long: Int64Array, short: Int64Array) -> Iterator[int]:
    """Yield positions in one sequence at which parts of the other begin."""
    size = np.dtype(np.int64).itemsize
    text, count = np.ascontiguousarray(long, np.int64).tobytes(), len(short)
    for begin in dict.fromkeys((0, count // 4, count // 2, 3 * count // 4)):
        part = short[begin : begin + _ANCHOR]
        if not len(part) or (len(part) < _MIN_ANCHOR and len(part) < count):
            continue
        sought = np.ascontiguousarray(part, np.int64).tobytes()
        at = text.find(sought)
        for _ in range(_MAX_SHIFTS):
            if at < 0:
                break
            if at % size == 0:
                yield at // size - begin
            at = text.find(sought, at + 1)


def _count_equal(ours: Int64Array, theirs: Int64Array, shift: int) -> int:
    """Count the equal launches if theirs begin `shift` later than ours."""
    one, other = ours[max(shift, 0) :], theirs[max(-shift, 0) :]
    count = min(len(one), len(other))
    return int((one[:count] == other[:count]).sum())


def _count_earlier(key: Int64Array) -> Int64Array:
    """Count, for each launch, the earlier ones of its key."""
    order = np.argsort(key, kind="stable")
    starts, _ = distinct(key[order])
    nth = np.empty(len(key), np.int64)
    run = np.zeros(len(key), np.int64)
    run[starts] = starts
    nth[order] = np.arange(len(key)) - np.maximum.accumulate(run)
    return nth


_WORD = re.compile(r"[A-Za-z_]\w*|\d+")
_OPTIONAL_WORDS = frozenset(
    """
    void const volatile unsigned signed int long short char bool lambda instance anonymous namespace
    unnamed operator type std size_t uint32_t int32_t int64_t uint64_t
    """.split()  # noqa: SIM905 - a list of words
)
"""Words that not all tools write: casts of numbers, and placeholders for missing names."""
_TRUTH = {"true": "1", "false": "0"}
_PLACEHOLDER = re.compile(r"T\d+|function_traits|_\d+")


@lru_cache(maxsize=1 << 16)
def _words(name: str) -> tuple[str, ...]:
    """Return the parts of a name that all tools write: path and template arguments."""
    path, rest = split(demangle(name))
    depth = 0
    for match in re.finditer(r"[<>(\[]", rest):
        if match[0] == "(" and not depth:
            rest = rest[: match.start()]  # parameters follow
            break
        depth += {"<": 1, ">": -1}.get(match[0], 0) if rest[match.start() - 1] != "-" else 0
    words = (_TRUTH.get(word, word) for word in _WORD.findall(rest))
    return path, *(w for w in words if w not in _OPTIONAL_WORDS and not _PLACEHOLDER.fullmatch(w))


def _function(name: str) -> str:
    return short_name(demangle(name)).rpartition("::")[2]
