"""A capture without what cannot be: rows that are there twice, times that nothing has.

Tools write neither; files that were cut, merged, edited or exported wrongly hold both. Nothing is
guessed: of rows that are the same one is kept, a row whose time cannot be is kept without it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.errors import CaptureError
from pyprof.readers import spans as times
from pyprof.readers._order import in_order
from pyprof.readers.spans import LATEST_NS, LONGEST_NS, UNKNOWN, Spans

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pyprof.arrays import Ints, Mask
    from pyprof.schema import Capture

_STREAM = ("pid", "device", "stream")
STREAMED = (schema.KERNEL, schema.MEMCPY, schema.MEMSET)
"""Kinds of which a stream does one after the other."""

_NAMELESS = 0.5
"""From this share of rows without a name on, names were lost."""


def plausible(capture: Capture, path: Path) -> Capture:
    """Put activities in order, leave out what cannot be, and say so in the capture's warnings.

    Raises CaptureError where no activity has a time that can be.
    """
    activities, doubled = in_order(capture.activities), 0
    if not _merged(capture):
        activities, doubled = once(activities, _ACTIVITY)
    calls, doubled_calls = once(capture.calls, _CALL)
    wrong = impossible(activities, launch_times(capture))
    all_wrong = activities.num_rows and any_of(wrong, activities.num_rows).all()
    if all_wrong:
        raise CaptureError(none_left(path, wrong, activities.num_rows))
    calls, backward = _possible_calls(calls)
    ranges, misplaced = _possible_ranges(capture.ranges)
    said = (
        *twice(doubled, "rows of GPU work"),
        *twice(doubled_calls, "API calls"),
        *timeless(wrong, activities.num_rows),
        *_taken_as_instants(backward, "API calls"),
        *_taken_as_instants(misplaced, "ranges"),
        *_nameless(activities),
    )
    return replace(
        capture,
        activities=without_times(activities, wrong),
        calls=calls,
        ranges=ranges,
        warnings=(*capture.warnings, *said),
    )


# --- rows that are there twice --------------------------------------------------------------------

_ACTIVITY = ("end", "device", "stream", "corr", "pid", "kind", "name", "grid_x", "bytes")
_CALL = ("end", "thread", "corr", "name")


def _merged(capture: Capture) -> bool:
    """Tell whether a trace is of several ranks, whose work may be alike: it does not say whose."""
    if capture.tool != "kineto" or not capture.calls.num_rows:
        return False
    used = pc.unique(capture.calls.column("thread"))
    return len(pc.unique(capture.threads.column("pid").take(used))) > 1


def once(table: pa.Table, columns: Sequence[str]) -> tuple[pa.Table, int]:
    """Keep one of the rows that agree in their start and in `columns`; give the number of others.

    Rounded to microseconds, two short pieces of work in a row may begin and end alike: without
    length they count as the same only where every row with length is there twice.
    """
    start, end = ints(table.column("start")), ints(table.column("end"))
    repeated = _repeated(table, start, columns)
    long = start != end
    if 2 * int((repeated & long).sum()) < int(long.sum()) or not long.any():
        repeated &= long
    count = int(repeated.sum())
    return (table.filter(pa.array(~repeated)) if count else table), count


def _repeated(table: pa.Table, start: Ints, columns: Sequence[str]) -> Mask:
    """Mark all but the first of rows that have the same values, their start being known."""
    found = np.zeros(len(start), bool)
    order = np.argsort(start, kind="stable") if (start[1:] < start[:-1]).any() else None
    ordered = start if order is None else start[order]
    same = (ordered[1:] == ordered[:-1]) & (ordered[1:] != UNKNOWN)
    if not same.any():
        return found
    place = np.flatnonzero(np.append(same, [False]) | np.append([False], same))
    rows = place if order is None else order[place]
    keys = [start[rows], *(_codes(table.column(name), rows) for name in columns)]
    by = np.lexsort(keys[::-1])  # stable: of the same, the first row comes first
    equal = np.all([key[by][1:] == key[by][:-1] for key in keys], axis=0)
    found[rows[by[1:][equal]]] = True
    return found


def _codes(column: pa.ChunkedArray, rows: Ints) -> Ints:
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries().combine_chunks().indices
    taken = column.take(pa.array(rows))
    if not pa.types.is_integer(taken.type):  # lists and texts, of which records may be made
        taken = pa.array(map(repr, taken.to_pylist()), pa.string()).dictionary_encode().indices
    return ints(taken)


def twice(count: int, what: str) -> Iterator[str]:
    """Report duplicate rows that were left out."""
    if count:
        yield (
            f"{count:,} {what} are duplicates (same time, stream, id and name): each counts once; "
            "a table was written twice: export it again"
        )


# --- impossible times -----------------------------------------------------------------------------


def ints(column: pa.ChunkedArray | pa.Array, absent: int = UNKNOWN) -> Ints:
    """Give an integer column as int64, with `absent` for null."""
    if column.null_count:
        column = pc.fill_null(column.cast(pa.int64()), absent)
    return np.asarray(column.to_numpy()).astype(np.int64, copy=False)


class LaunchTimes:
    """When API calls began, by process and correlation id."""

    def __init__(self, start: Ints, pid: Ints, corr: Ints) -> None:
        self._start, self._pid, self._corr = start, pid, corr

    def bounds(self) -> tuple[int, int] | None:
        """Give when the first and the last began, of those within a day of most."""
        if not len(self._start):
            return None
        middle = int(np.median(self._start))
        near = self._start[np.abs(self._start - middle) < LONGEST_NS]
        return int(near.min()), int(near.max())

    def of(self, pid: Ints, corr: Ints) -> Ints:
        """Give when each of a few rows was launched; `UNKNOWN` where no call tells."""
        found = np.full(len(corr), UNKNOWN)
        rows = np.flatnonzero(np.isin(self._corr, corr[corr != UNKNOWN]))
        for row in rows.tolist():
            found[(corr == self._corr[row]) & (pid == self._pid[row])] = self._start[row]
        return found


def launch_times(capture: Capture) -> LaunchTimes:
    """Give those of a capture."""
    pid = ints(capture.threads.column("pid"))[ints(capture.calls.column("thread"))]
    start, corr = (ints(capture.calls.column(name)) for name in ("start", "corr"))
    return LaunchTimes(start, pid, corr)


def impossible(activities: pa.Table, launches: LaunchTimes) -> Mapping[str, Mask]:
    """Give the activities whose time cannot be, by the reason."""
    start, end, pid, corr = (
        ints(activities.column(name)) for name in ("start", "end", "pid", "corr")
    )
    streamed = np.isin(ints(activities.column("kind")), STREAMED)
    stream = streams([activities.column(name) for name in _STREAM], len(start))
    found = Spans(start, end, stream, corr, streamed)
    return times.impossible(
        found, launches.bounds(), lambda rows: launches.of(pid[rows], corr[rows])
    )


def streams(columns: Sequence[pa.Array | pa.ChunkedArray], rows: int) -> Ints:
    """Number the streams of all devices and processes, from the columns that tell them apart."""
    number = np.zeros(rows, np.int64)
    for column in columns:
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        codes = whole.dictionary_encode(null_encoding="encode")
        number = number * len(codes.dictionary) + ints(codes.indices)
    few = int(number.max(initial=0)) < np.iinfo(np.int16).max
    return number.astype(np.int16) if few else number  # which sort quickly


def any_of(wrong: Mapping[str, Mask], rows: int) -> Mask:
    """Mark the rows for which some reason holds."""
    found = np.zeros(rows, bool)
    for some in wrong.values():
        found |= some
    return found


def without_start(wrong: Mapping[str, Mask], rows: int) -> Mask:
    """Mark the rows whose start is as doubtful as their end."""
    return any_of({why: wrong[why] for why in times.START_IS_WRONG if why in wrong}, rows)


def without_times(table: pa.Table, wrong: Mapping[str, Mask]) -> pa.Table:
    """Take the end from rows whose time cannot be, and the start where that is as doubtful."""
    if not wrong:
        return table
    both = without_start(wrong, table.num_rows), any_of(wrong, table.num_rows)
    for name, gone in zip(("start", "end"), both, strict=True):
        place = table.schema.get_field_index(name)
        column = pc.if_else(pa.array(gone), pa.scalar(None, pa.int64()), table.column(name))
        table = table.set_column(place, table.schema.field(place), column)
    return in_order(table)


def spelt(wrong: Mapping[str, Mask]) -> str:
    """Say how many rows there are for each reason."""
    return ", ".join(f"{int(rows.sum()):,} {why}" for why, rows in wrong.items())


def none_left(path: object, wrong: Mapping[str, Mask], rows: int) -> str:
    """Say that nothing can be told of any row's time."""
    return (
        f"{path}: none of its {rows:,} rows of GPU work has a possible time ({spelt(wrong)}); "
        "the file is damaged: export or capture it again"
    )


def timeless(wrong: Mapping[str, Mask], rows: int) -> Iterator[str]:
    """Report rows with impossible times."""
    if wrong:
        count = int(any_of(wrong, rows).sum())
        yield (
            f"{count:,} of {rows:,} rows of GPU work have impossible times ({spelt(wrong)}): "
            "they are listed without a time and left out of sums; export or capture again"
        )


def _taken_as_instants(count: int, what: str) -> Iterator[str]:
    if count:
        yield (
            f"{count:,} {what} have impossible times: they have no duration and contain "
            "nothing; export or capture again"
        )


def _possible_calls(calls: pa.Table) -> tuple[pa.Table, int]:
    """Let calls that end before they begin, or a day later, take no time."""
    start, end = ints(calls.column("start")), ints(calls.column("end"))
    wrong = _backward_or_endless(start, end)
    return _with_times(calls, wrong, start, start), int(wrong.sum())


def _backward_or_endless(start: Ints, end: Ints) -> Mask:
    if not len(start):
        return np.zeros(0, bool)
    if start.min() > -LATEST_NS and end.max() < LATEST_NS:  # nearly always: nothing overflows
        length = end - start
        if length.min() >= 0 and length.max() <= LONGEST_NS:
            return np.zeros(len(start), bool)
    beyond = (start == UNKNOWN) | (np.abs(start) >= LATEST_NS) | (np.abs(end) >= LATEST_NS)
    return np.asarray(beyond | (end < start) | (np.where(beyond, 0, end - start) > LONGEST_NS))


def _possible_ranges(ranges: pa.Table) -> tuple[pa.Table, int]:
    """Let ranges that end before they begin, or a day later, or begin nowhere, hold nothing."""
    start, end = ints(ranges.column("start")), ints(ranges.column("end"))
    if ranges.column("end").null_count:
        end = np.where(end == UNKNOWN, start, end)
    wrong = _backward_or_endless(start, end)
    if not wrong.any():
        return ranges, 0
    known = (start != UNKNOWN) & (np.abs(start) < LATEST_NS)
    place = np.where(known, start, start[known].min() if known.any() else 0)
    return _with_times(ranges, wrong, place, place), int(wrong.sum())


def _with_times(table: pa.Table, rows: Mask, start: Ints, end: Ints) -> pa.Table:
    """Give some rows of a table another start and end."""
    if not rows.any():
        return table
    mask = pa.array(rows)
    for name, times_ in (("start", start), ("end", end)):
        place = table.schema.get_field_index(name)
        column = pc.if_else(mask, pa.array(times_), table.column(name))
        table = table.set_column(place, table.schema.field(place), column)
    return table


# --- names ----------------------------------------------------------------------------------------


def _nameless(activities: pa.Table) -> Iterator[str]:
    names = activities.column("name").combine_chunks()
    empty = pc.is_in(names.dictionary, pa.array(["", "unknown kernel"])).to_numpy(
        zero_copy_only=False
    )
    count = int(np.append(empty, [True])[ints(names.indices, -1)].sum())
    if count > _NAMELESS * activities.num_rows:
        yield (
            f"{count:,} of {activities.num_rows:,} rows of GPU work have no name (is the table of "
            "strings missing?): what depends on names is unknown; export again"
        )
