"""Counters of another run, of Nsight Compute, joined to the kernels of a capture.

ncu runs a kernel many times over, so its file is of a run of its own: its kernels are found in the
capture by name, grid, block and order of occurrence. Tools spell names differently: what is
compared is the path, and the words and numbers of the template arguments.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pyprof import readers, schema
from pyprof.arrays import NONE, ints
from pyprof.errors import CaptureError
from pyprof.gpu.kernel_names import demangle, short_name, split
from pyprof.parse.records import Coded, distinct, number_combinations
from pyprof.readers import settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from pyprof.arrays import Ints, Mask
    from pyprof.parse.records import Records

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
    kernels = np.flatnonzero(_is_kernel(records))
    matches = _matched(_launches_of(records, kernels), profiled.launches)
    column, notes = _column(records, kernels, matches, profiled)
    columns = {**records.columns, "counters": column}
    changed = (f"{path.name}: {text}" for text in readers.changed(path, before))
    unjoined = _unjoined(profiled, matches, path.name)
    return replace(
        records, columns=columns, warnings=(*records.warnings, *changed, *notes, *unjoined)
    )


@dataclass(frozen=True, slots=True)
class _Launches:
    """Kernels in the order of their launches."""

    names: Coded
    blocks: Ints
    """Of the grid; NONE where not known, as `threads`."""
    threads: Ints


@dataclass(frozen=True, slots=True)
class _Profiled:
    launches: _Launches
    texts: list[str | None]
    """Their counters."""


@lru_cache(maxsize=4)
def _read(path: str, stamp: tuple[int, ...]) -> _Profiled:
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
    launches = _Launches(
        Coded(ints(names.indices), names.dictionary.to_pylist()), _size(rows, "grid"),
        _size(rows, "block"),
    )  # fmt: skip
    return _Profiled(launches, rows.column("counters").to_pylist())


def _size(rows: pa.Table, side: str) -> Ints:
    axes = [ints(rows.column(f"{side}_{axis}")) for axis in "xyz"]
    sized = np.all([axis != NONE for axis in axes], axis=0)
    return np.where(sized, axes[0] * axes[1] * axes[2], NONE)


def _is_kernel(records: Records) -> Mask:
    kind = records.coded("kind")
    kernel = schema.KINDS[schema.KERNEL]
    return np.array([*(value in (None, kernel) for value in kind.values), True])[kind.index]


def _launches_of(records: Records, rows: Ints) -> _Launches:
    sizes = [_products(records.coded(name).take(rows)) for name in ("grid", "block")]
    return _Launches(records.coded("kLongName").take(rows), *sizes)


def _products(sizes: Coded) -> Ints:
    products = [math.prod(value) if value else NONE for value in sizes.values]
    return np.array([*(v if v < 1 << 62 else NONE for v in products), NONE])[sizes.index]


# --- matching -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Matches:
    """For each kernel of the capture the profiled one that it is, or is like."""

    row: Ints
    """Of the profiled; NONE where there is none."""
    repeated: Mask
    used: Mask
    """Which of the profiled found a kernel."""


def _matched(ours: _Launches, theirs: _Launches) -> _Matches:
    """Match by whole names first, then by function alone: ncu may have been asked to write that."""
    row = np.full(len(ours.blocks), NONE)
    repeated = np.zeros(len(row), bool)
    used = np.zeros(len(theirs.blocks), bool)
    for spell in (_words, _function):
        left, unused = np.flatnonzero(row == NONE), np.flatnonzero(~used)
        key, other = _keys(ours, left, theirs, unused, spell)
        place, again = _by_order(key, other)
        hit = place != NONE
        row[left[hit]] = unused[place[hit]]
        repeated[left[hit]] = again[hit]
        used[unused[np.unique(place[hit])]] = True
    return _Matches(row, repeated, used)


def _keys(
    ours: _Launches, left: Ints, theirs: _Launches, unused: Ints, spell: Callable[[str], object]
) -> tuple[Ints, Ints]:
    """Number what the launches of both have in common."""
    numbers: dict[object, int] = {}
    codes = []
    for launches, rows in ((ours, left), (theirs, unused)):
        code = [numbers.setdefault(spell(name), len(numbers)) for name in launches.names.values]
        names = np.array([*code, NONE])[launches.names.index[rows]]
        codes.append((names, launches.blocks[rows], launches.threads[rows]))
    key = number_combinations(*(np.concatenate(pair) for pair in zip(*codes, strict=True)))
    return key[: len(left)], key[len(left) :]


def _by_order(key: Ints, other: Ints) -> tuple[Ints, Mask]:
    """Match the n-th of a key here to the n-th there.

    Where here are a whole number of times as many, what was profiled was one of several
    repetitions: they take its numbers in turn.
    """
    count = int(max(key.max(initial=NONE), other.max(initial=NONE))) + 1
    here, there = (np.bincount(keys, minlength=count) for keys in (key, other))
    nth, order = _nth(key), np.argsort(other, kind="stable")
    first = np.concatenate([np.zeros(1, np.int64), np.cumsum(there)])[:-1]
    repeats = (there > 0) & (here > there) & (here % np.maximum(there, 1) == 0)
    turn = np.where(repeats[key], nth % np.maximum(there[key], 1), nth)
    hit = turn < there[key]
    place = np.full(len(key), NONE)
    place[hit] = order[(first[key] + turn)[hit]]
    return place, hit & (nth >= there[key])


def _nth(key: Ints) -> Ints:
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
    """Give what all tools write of a name."""
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
    records: Records, kernels: Ints, matches: _Matches, profiled: _Profiled
) -> tuple[Coded, list[str]]:
    """Give each row its counters: the profiled ones, else those that it had."""
    own = records.coded("counters")
    count = len(profiled.texts)
    values = [*_of_source(profiled, _JOINED), *_of_source(profiled, _REPEATED), *own.values]
    index = np.where(own.index == NONE, NONE, own.index + 2 * count)
    hit = matches.row != NONE
    index[kernels[hit]] = (matches.row + count * matches.repeated)[hit]
    if any(text is None for text in values):
        index = np.where(np.array([*(text is None for text in values), True])[index], NONE, index)
    repeated = int(matches.repeated.sum())
    if not repeated:
        return Coded(index, values), []
    note = f"{repeated:,} kernels take the counters of ones alike: ncu profiled one repetition"
    return Coded(index, values), [note]


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
            f"none of that name, grid and block: {_listed(names.take(unused))}"
        )
    without = int((matches.row == NONE).sum())
    if without:
        yield f"{without:,} of {len(matches.row):,} kernels of the capture have no counters"


def _listed(names: Coded) -> str:
    counts = Counter(short_name(demangle(names.values[place])) for place in names.index.tolist())
    shown = [f"{name} ({count:,})" for name, count in counts.most_common(_SHOWN)]
    return ", ".join([*shown, "..."] if len(counts) > _SHOWN else shown)
