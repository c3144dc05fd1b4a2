"""Validates a capture: sorts its work, drops duplicate rows and impossible times.

Tools write neither; files that were truncated, merged, edited or exported wrongly have both.
Nothing is guessed: of equal rows one is kept, and a row with an impossible time is kept without it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import MISSING, ints, set_column
from pyprof.errors import CaptureError
from pyprof.quantities import counted
from pyprof.readers import spans as times
from pyprof.readers.spans import LATEST_NS, LONGEST_NS, NO_TIME, Spans

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pyprof.arrays import Int64Array, Mask
    from pyprof.schema import Capture


_SORT_KEYS = ("start", "end", "device", "stream", "corr")


def in_order(activities: pa.Table) -> pa.Table:
    """Sort activities by their start, those without one first; if in order they are not copied."""
    start = ints(activities.column("start"))
    order, place = _equal_starts(start)
    rows = place if order is None else order[place]
    index = pa.array(rows)
    by = np.lexsort([ints(activities.column(name).take(index)) for name in reversed(_SORT_KEYS)])
    if order is None:
        if (by[1:] > by[:-1]).all():
            return activities
        order = np.arange(len(start))
    order[place] = rows[by]
    return activities.take(pa.array(order))


def _equal_starts(start: Int64Array) -> tuple[Int64Array | None, Int64Array]:
    """Return the order of starts, None if they are in order, and where equal ones stand in it."""
    # Tables of different kinds of work, each sorted, follow each other: merging runs is quick.
    order = np.argsort(start, kind="stable") if (start[1:] < start[:-1]).any() else None
    ordered = start if order is None else start[order]
    same = ordered[1:] == ordered[:-1]
    return order, np.flatnonzero(np.append(same, [False]) | np.append([False], same))


ints_or_unknown = partial(ints, absent=NO_TIME)
"""Integer columns as int64; a damaged file may contain -1, so null is NO_TIME."""

_STREAM = ("pid", "device", "stream")
STREAMED = (schema.KERNEL, schema.MEMCPY, schema.MEMSET)
"""Kinds of work that a stream runs one after the other."""

_NAMELESS = 0.5
"""If more than this share of rows has no name, names were lost."""


_EMPTY = (
    "{} of GPU work left out as empty (no time, stream or name): "
    "the file is damaged; export or capture again"
)
_INSTANTS = (
    "impossible times of {}, left without a duration and with nothing inside; "
    "export or capture again"
)
_ISOLATED = ("ncu",)
"""Tools that run each kernel alone: start times are not recorded, and durations may not be."""


_COPIES_APART = ("kineto", "rocpd")
"""Tools whose captures may be of AMD's GPUs."""


def plausible(capture: Capture, path: Path) -> Capture:
    """Sort activities, drop duplicates and impossible times, and add warnings.

    Raises CaptureError if no activity has a possible time.
    """
    if capture.tool in _ISOLATED:
        return replace(capture, activities=in_order(capture.activities))
    activities, blank = _drop_empty_rows(in_order(capture.activities))
    doubled = 0
    several_ranks = _is_of_several_ranks(capture)
    if not several_ranks:
        activities, doubled = drop_duplicates(activities, _ACTIVITY)
    spans = _spans(activities)
    wrong = times.invalid_intervals(spans, ints_or_unknown(capture.calls.column("start")))
    calls, ranges, doubled_of_host, instants = _host_side(capture)
    gone = any_of(wrong, activities.num_rows)
    if activities.num_rows and gone.all():
        raise CaptureError(no_valid_time_message(path, wrong, activities.num_rows))
    # Streams of several ranks have one number; copies of AMD's GPUs run outside streams.
    apart = capture.tool in _COPIES_APART
    checked = np.isin(ints(activities.column("kind")), schema.KERNEL if apart else STREAMED)
    checked &= ~gone & (not several_ranks)
    notes = (
        *([_EMPTY.format(counted(blank, "row"))] if blank else ()),
        *duplicate_warnings(doubled, "rows of GPU work"),
        *duplicate_warnings(doubled_of_host[0], "API calls"),
        *duplicate_warnings(doubled_of_host[1], "ranges"),
        *missing_time_warnings(wrong, activities.num_rows),
        *overlapping_on_stream(spans, checked),
        *(
            _INSTANTS.format(counted(count, what))
            for count, what in zip(instants, ("API call", "range"), strict=True)
            if count
        ),
        *_warn_nameless(activities),
    )
    return replace(
        capture,
        activities=without_times(activities, wrong),
        calls=calls,
        ranges=ranges,
        warnings=(*capture.warnings, *notes),
    )


def _host_side(capture: Capture) -> tuple[pa.Table, pa.Table, tuple[int, int], tuple[int, int]]:
    """Return valid calls and ranges; then the counts of duplicates and of invalid times of each.

    With clocks of microseconds a range may be as long as one inside it with the same name: only
    many equal ones are duplicates.
    """
    calls, doubled_calls = drop_duplicates(capture.calls, _CALL)
    calls, invalid_calls = _clear_impossible(calls)
    ranges, invalid_ranges = _clear_impossible(capture.ranges)
    kept, doubled_ranges = drop_duplicates(ranges, _RANGE)
    if doubled_ranges < _TWICE * ranges.num_rows:
        kept, doubled_ranges = ranges, 0
    return calls, kept, (doubled_calls, doubled_ranges), (invalid_calls, invalid_ranges)


_CONTENT = ("start", "end", "device", "stream", "corr", "bytes", "grid_x", "regs", "collective")
"""A row in which all of these are null, and which has no name, is empty."""
_NO_NAMES = ("", "unknown kernel", "[CUDA memcpy]", "[CUDA memset]")
"""Names that readers use for work without a name."""


def _drop_empty_rows(activities: pa.Table) -> tuple[pa.Table, int]:
    """Leave out empty rows, such as those of blanked pages of a database; count them."""
    if not all(activities.column(name).null_count for name in _CONTENT):
        return activities, 0
    names = activities.column("name").combine_chunks()
    nameless = np.flatnonzero(pc.is_in(names.dictionary, pa.array(_NO_NAMES)))
    blank = np.isin(ints(names.indices), [*nameless, MISSING])
    for name in _CONTENT:
        blank &= np.asarray(activities.column(name).is_null())
    count = int(blank.sum())
    return (activities.filter(pa.array(~blank)) if count else activities), count


_ACTIVITY = (
    *("end", "device", "stream", "corr", "pid", "kind", "name", "grid_x", "bytes", "graph_node"),
)
_CALL = ("end", "thread", "corr", "name")
_RANGE = ("end", "thread", "style", "text", "seq", "op_id")
"""Columns in which duplicates agree, besides the start."""
_TWICE = 0.25
"""From this share of duplicate ranges on, a table was written twice; fewer are chance."""


def _is_of_several_ranks(capture: Capture) -> bool:
    """Whether a trace holds several ranks, whose equal work may not be duplicates."""
    if capture.tool != "kineto" or not capture.calls.num_rows:
        return False
    used = pc.unique(capture.calls.column("thread"))
    return len(pc.unique(capture.threads.column("pid").take(used))) > 1


def drop_duplicates(table: pa.Table, columns: Sequence[str]) -> tuple[pa.Table, int]:
    """Keep one of the rows that agree in their start and in `columns`; count the others.

    Rounded to microseconds, two short pieces of work in a row may seem simultaneous: rows without
    length are duplicates only if most rows with length are.
    """
    start, end = ints_or_unknown(table.column("start")), ints_or_unknown(table.column("end"))
    repeated = _mark_repeated(table, start, columns)
    long = start != end
    if 2 * int((repeated & long).sum()) < int(long.sum()) or not long.any():
        repeated &= long
    count = int(repeated.sum())
    return (table.filter(pa.array(~repeated)) if count else table), count


def _mark_repeated(table: pa.Table, start: Int64Array, columns: Sequence[str]) -> Mask:
    """Mark all but the first of rows with equal values and a known start."""
    is_repeated = np.zeros(len(start), bool)
    order, place = _equal_starts(start)
    rows = place if order is None else order[place]
    rows = rows[start[rows] != NO_TIME]
    if not len(rows):
        return is_repeated
    keys = [start[rows], *(_codes(table.column(name), rows) for name in columns)]
    by = np.lexsort(keys[::-1])  # stable: of equal rows the first comes first
    equal = np.all([key[by][1:] == key[by][:-1] for key in keys], axis=0)
    is_repeated[rows[by[1:][equal]]] = True
    return is_repeated


def _codes(column: pa.ChunkedArray, rows: Int64Array) -> Int64Array:
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries().combine_chunks().indices
    taken = column.take(pa.array(rows))
    if not pa.types.is_integer(taken.type):  # records may also have lists and texts
        taken = pa.array(map(repr, taken.to_pylist()), pa.string()).dictionary_encode().indices
    return ints_or_unknown(taken)


def duplicate_warnings(count: int, what: str) -> Iterator[str]:
    """Warn of duplicate rows."""
    if count:
        yield (
            f"{counted(count, 'duplicate')} among {what} (same time, place and name): not counted "
            "again; a table was written twice: export it again"
        )


def _spans(activities: pa.Table) -> Spans:
    start, end, corr, kind = (
        ints_or_unknown(activities.column(name)) for name in ("start", "end", "corr", "kind")
    )
    stream = streams([activities.column(name) for name in _STREAM], len(start))
    return Spans(start, end, stream, corr, np.isin(kind, STREAMED))


def overlapping_on_stream(spans: Spans, looked_at: Mask) -> Iterator[str]:
    """Warn of checked rows that end after the next of their stream."""
    if count := int(times.overlapping_on_stream(spans, looked_at).sum()):
        yield (
            f"{count:,} of {int(looked_at.sum()):,} rows of GPU work end after the next in their "
            "stream, which is impossible: they are listed as recorded, and sums are too "
            "large; export or capture again"
        )


def streams(columns: Sequence[pa.Array | pa.ChunkedArray], rows: int) -> Int64Array:
    """Number the streams of all devices and processes."""
    number = np.zeros(rows, np.int64)
    for column in columns:
        combined = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        codes = combined.dictionary_encode(null_encoding="encode")
        number = number * len(codes.dictionary) + ints_or_unknown(codes.indices)
    few = int(number.max(initial=0)) < np.iinfo(np.int16).max
    return number.astype(np.int16) if few else number  # 16-bit integers sort quickly


def any_of(wrong: Mapping[str, Mask], rows: int) -> Mask:
    """Mark the rows for which some reason holds."""
    some_reason = np.zeros(rows, bool)
    for some in wrong.values():
        some_reason |= some
    return some_reason


def without_start(wrong: Mapping[str, Mask], rows: int) -> Mask:
    """Mark the rows whose start is as doubtful as their end."""
    return any_of({why: wrong[why] for why in times.START_IS_WRONG if why in wrong}, rows)


def without_times(table: pa.Table, wrong: Mapping[str, Mask]) -> pa.Table:
    """Clear the end of rows with impossible times, and the start where it is as doubtful."""
    if not wrong:
        return table
    both = without_start(wrong, table.num_rows), any_of(wrong, table.num_rows)
    for name, gone in zip(("start", "end"), both, strict=True):
        column = pc.if_else(pa.array(gone), pa.scalar(None, pa.int64()), table.column(name))
        table = set_column(table, name, column)
    return in_order(table)


def format_reasons(wrong: Mapping[str, Mask]) -> str:
    """Format the number of rows for each reason."""
    return ", ".join(f"{int(rows.sum()):,} {why}" for why, rows in wrong.items())


def no_valid_time_message(path: object, wrong: Mapping[str, Mask], rows: int) -> str:
    """Format the error that no row's time is known."""
    return (
        f"{path}: none of its {rows:,} rows of GPU work has a possible time "
        f"({format_reasons(wrong)}); the file is damaged: export or capture it again"
    )


def missing_time_warnings(wrong: Mapping[str, Mask], rows: int) -> Iterator[str]:
    """Warn of rows with impossible times."""
    if wrong:
        count = int(any_of(wrong, rows).sum())
        yield (
            f"{count:,} of {rows:,} rows of GPU work have impossible times "
            f"({format_reasons(wrong)}): they are listed without a time and left out of sums; "
            "export or capture again"
        )


def _clear_impossible(table: pa.Table) -> tuple[pa.Table, int]:
    """Clear the duration of rows that end before they begin, last over a day, or lack a start."""
    start, end = ints_or_unknown(table.column("start")), ints_or_unknown(table.column("end"))
    end = np.where(end == NO_TIME, start, end) if table.column("end").null_count else end
    placed = (start != NO_TIME) & (np.abs(start) < LATEST_NS)
    known = placed & (np.abs(end) < LATEST_NS)
    wrong = ~known | (end < start) | (np.where(known, end - start, 0) > LONGEST_NS)
    if not wrong.any():
        return table, 0
    instant = np.where(placed, start, start[placed].min() if placed.any() else 0)
    for name in ("start", "end"):
        column = pc.if_else(pa.array(wrong), pa.array(instant), table.column(name))
        table = set_column(table, name, column)
    return table, int(wrong.sum())


def _warn_nameless(activities: pa.Table) -> Iterator[str]:
    names = activities.column("name").combine_chunks()
    empty = pc.is_in(names.dictionary, pa.array(["", "unknown kernel"])).to_numpy(
        zero_copy_only=False
    )
    count = int(np.append(empty, [True])[ints_or_unknown(names.indices)].sum())
    if count > _NAMELESS * activities.num_rows:
        yield (
            f"{count:,} of {activities.num_rows:,} rows of GPU work have no name (is the table of "
            "strings missing?): what depends on names is unknown; export again"
        )
