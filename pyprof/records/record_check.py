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
    from pyprof.arrays import Mask


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
    records, twice = _drop_duplicates(replace(records, columns={**records.columns, **pieces}))
    ran, wrong = _check_times(records)
    gone = validate.any_of(wrong, records.rows)
    if records.rows and gone.all():
        raise RecordsError(validate.no_valid_time_message(source, wrong, records.rows))
    warnings = (
        *validate.duplicate_warnings(twice, "rows"),
        *validate.missing_time_warnings(wrong, records.rows),
        *validate.overlapping_on_stream(ran, ~gone & records.of_kind(schema.KERNEL)),
    )
    if not warnings:
        return records
    columns = {**records.columns}
    doubtful = validate.without_start(wrong, records.rows)
    for name, rows in (("kDuration", gone), ("end", gone), ("start", doubtful)):
        if name == "kDuration" or name in columns:
            nothing = pa.scalar(None, pa.int64())
            columns[name] = pc.if_else(pa.array(rows), nothing, records.arrow(name))
    return Records(records.rows, columns, records.devices, (*records.warnings, *warnings))


_SEVERAL_TIMES = ("start", "end", "kDuration", "pid", "device", "stream", "rank", "corrId")


def _drop_duplicates(records: Records) -> tuple[Records, int]:
    """Keep one of several equal rows; rows without a start are never equal."""
    if "start" not in records.columns:
        return records, 0
    keys = {name: _without_values(records, name) for name in ("start", *_KEYS) if name != "name"}
    table = pa.table({**keys, "name": records.dictionary("kLongName").index})
    distinct_rows, twice = validate.drop_duplicates(
        table.append_column("row", [np.arange(records.rows)]), _KEYS
    )
    return (records.take(np.asarray(distinct_rows.column("row"))) if twice else records), twice


def _without_values(records: Records, name: str) -> pa.Array:
    column = records.columns.get(name)
    return pa.array(column.index) if isinstance(column, DictionaryColumn) else records.arrow(name)


def _check_times(records: Records) -> tuple[Spans, dict[str, Mask]]:
    """Return when work ran, and the rows whose time is impossible, by the reason.

    Old files and merged lines have the duration alone.
    """
    start, end, duration = (
        validate.ints_or_unknown(records.arrow(name)) for name in ("start", "end", "kDuration")
    )
    timed = (start != NO_TIME) & (end != NO_TIME)
    with_length = duration != NO_TIME
    ran = Spans(
        np.where(timed | ~with_length, start, 1),
        np.where(
            with_length, np.where(timed, end, np.minimum(duration, 2 * LONGEST_NS) + 1), NO_TIME
        ),
        validate.streams([records.arrow(name) for name in _STREAM], records.rows),
        validate.ints_or_unknown(records.arrow("corrId")),
        timed & records.of_kind(*validate.STREAMED),
    )
    calls = records.arrow("launch").flatten().to_numpy(zero_copy_only=False)  # start, end, start
    wrong = spans.invalid_intervals(ran, np.asarray(calls[::2], np.int64))
    with np.errstate(over="ignore"):
        other = timed & with_length & (end - start != duration)
    beyond = _mark_sentinels(records, "start") | _mark_sentinels(records, "end")
    for why, rows in ((spans.TOO_LARGE, beyond), (_OTHER, other)):
        new = rows & ~validate.any_of(wrong, records.rows)
        if new.any():
            wrong[why] = wrong.get(why, False) | new
    return ran, wrong


def _mark_sentinels(records: Records, name: str) -> Mask:
    """Mark recorded times that equal the sentinel of an unknown time."""
    times = records.arrow(name)
    return np.asarray(pc.fill_null(pc.equal(times, NO_TIME), fill_value=False), bool)
