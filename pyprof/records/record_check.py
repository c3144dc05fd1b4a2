"""Drops duplicates and impossible times from records, as `readers.validate` does for captures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.errors import RecordsError
from pyprof.readers import spans, validate
from pyprof.readers.spans import LONGEST_NS, NO_TIME, Spans
from pyprof.records.records import DictionaryColumn, Records

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyprof.arrays import Int64Array, Mask


_OTHER = "take another time than from start to end"
_STREAM = ("rank", "pid", "device", "stream")
_KEYS = ("end", "device", "stream", "corrId", "pid", "kind", "name", "rank", "bytes")


def plausible_records(source: str, records: Records) -> Records:
    """Drop duplicate rows and impossible times, with warnings.

    Raises RecordsError if no row has a possible time. Kernels that ncu ran alone are not checked:
    it may have measured no times.
    """
    # whether ncu measured each row in a run of its own, judged by the first row
    first = records.slice(0, 1).dictionary("counters").at(0) if records.rows else None
    times = (records.arrow(name) for name in ("start", "end", "kDuration"))
    untimed = records.rows > 0 and all(column.null_count == records.rows for column in times)
    if (bool(first) and '"source":"ncu"' in str(first)) or untimed:
        return records
    # combine the chunks of columns that are used several times
    pieces = {
        name: records.arrow(name)
        for name in _SEVERAL_TIMES
        if isinstance(records.columns.get(name), pa.ChunkedArray)
    }
    records, twice = _once(replace(records, columns={**records.columns, **pieces}))
    ran = _spans(records)
    wrong = _impossible(records, ran)
    gone = validate.any_of(wrong, records.rows)
    if records.rows and gone.all():
        raise RecordsError(validate.no_valid_time_message(source, wrong, records.rows))
    warnings = (
        *validate.duplicate_warnings(twice, "rows"),
        *validate.missing_time_warnings(wrong, records.rows),
        *validate.overlapping_on_stream(ran, ~gone & _of_kinds(records, (schema.KERNEL,))),
    )
    if not warnings:
        return records
    columns = _without_times(records, wrong, gone)
    return Records(records.rows, columns, records.devices, (*records.warnings, *warnings))


_SEVERAL_TIMES = ("start", "end", "kDuration", "pid", "device", "stream", "rank", "corrId")


def _once(records: Records) -> tuple[Records, int]:
    """Keep one of several equal rows; rows without a start are never equal."""
    if "start" not in records.columns:
        return records, 0
    keys = {name: _plain(records, name) for name in ("start", *_KEYS) if name != "name"}
    table = pa.table({**keys, "name": records.dictionary("kLongName").index})
    distinct_rows, twice = validate.drop_duplicates(
        table.append_column("row", [np.arange(records.rows)]), _KEYS
    )
    return (records.take(np.asarray(distinct_rows.column("row"))) if twice else records), twice


def _plain(records: Records, name: str) -> pa.Array:
    column = records.columns.get(name)
    return pa.array(column.index) if isinstance(column, DictionaryColumn) else records.arrow(name)


def _spans(records: Records) -> Spans:
    """Start, end and duration of work; old files and merged lines have the duration alone."""
    start, end, duration = (
        validate.ints_or_unknown(records.arrow(name)) for name in ("start", "end", "kDuration")
    )
    timed = (start != NO_TIME) & (end != NO_TIME)
    with_length = duration != NO_TIME
    return Spans(
        np.where(timed | ~with_length, start, 1),
        np.where(
            with_length, np.where(timed, end, np.minimum(duration, 2 * LONGEST_NS) + 1), NO_TIME
        ),
        validate.streams([records.arrow(name) for name in _STREAM], records.rows),
        validate.ints_or_unknown(records.arrow("corrId")),
        timed & _of_kinds(records, validate.STREAMED),
    )


def _impossible(records: Records, plain: Spans) -> Mapping[str, Mask]:
    start, end, duration = (
        validate.ints_or_unknown(records.arrow(name)) for name in ("start", "end", "kDuration")
    )
    known = (start != NO_TIME) & (end != NO_TIME) & (duration != NO_TIME)
    with np.errstate(over="ignore"):
        other = known & (end - start != duration)
    launched = _launched(records)
    nothing = np.zeros(0, np.int64)
    bounds = validate.LaunchTimes(launched[launched != NO_TIME], nothing, nothing).bounds()
    wrong = {**spans.invalid_intervals(plain, bounds, lambda rows: launched[rows])}
    beyond = _written_unknown(records, "start") | _written_unknown(records, "end")
    for why, rows in ((spans.TOO_LARGE, beyond), (_OTHER, other)):
        new = rows & ~validate.any_of(wrong, records.rows)
        if new.any():
            wrong[why] = wrong.get(why, False) | new
    return wrong


def _written_unknown(records: Records, name: str) -> Mask:
    """Mark recorded times that equal the sentinel of an unknown time."""
    times = records.arrow(name)
    written: Mask = np.asarray(times.is_valid(), bool)
    written &= validate.ints_or_unknown(times) == NO_TIME
    return written


def _of_kinds(records: Records, kinds: Sequence[int]) -> Mask:
    kind = records.dictionary("kind")
    names = [schema.KINDS[number] for number in kinds]
    return np.array([*(value in names for value in kind.values), False]).take(kind.index)


def _launched(records: Records) -> Int64Array:
    """When each row was launched; `NO_TIME` if no call is recorded."""
    launch = records.arrow("launch")  # pairs, or null
    start = np.asarray(launch.flatten().to_numpy(zero_copy_only=False)[::2], np.int64)
    if not launch.null_count:
        return start
    launch_start = np.full(records.rows, NO_TIME)
    launch_start[np.asarray(launch.is_valid())] = start
    return launch_start


def _without_times(records: Records, wrong: Mapping[str, Mask], gone: Mask) -> dict[str, object]:
    columns = {**records.columns, "kDuration": _blank(records, "kDuration", gone)}
    if "end" in columns:
        columns["end"] = _blank(records, "end", gone)
    if "start" in columns:
        columns["start"] = _blank(records, "start", validate.without_start(wrong, records.rows))
    return columns


def _blank(records: Records, name: str, gone: Mask) -> pa.Array:
    return pc.if_else(pa.array(gone), pa.scalar(None, pa.int64()), records.arrow(name))
