"""The host's side of a recording: API calls, ROCTx ranges, and what each event is linked by."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import MISSING, ints, numbered
from pyprof.marker import templates
from pyprof.readers.rocpd.messages import messages
from pyprof.readers.rocpd.recording import Rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyprof.arrays import Int64Array, Mask
    from pyprof.readers.rocpd.recording import Recording

_NESTED = re.compile(r"roctx(?:ThreadRange|RangePush)")
"""Calls whose region is a range; ROCm 7 has the first name, 6.4 the second."""
_FREE = re.compile(r"roctx(?:ProcessRange|RangeStart)")
_NEITHER = re.compile(r"roctx(?:Mark|Range|Name|GetThreadId)")
"""Calls of ROCTx that are neither a range nor of interest."""
_TEXTS = ("MARKER_CORE_API", "MARKER_CORE_RANGE_API", "rocm_marker_api")
"""Categories of ranges. ROCm Systems Profiler names a range's region by its text."""
_INNER = re.compile(r"hsa_")
"""Calls that other calls make: what they launch counts as launched by the outer one."""
_DEEP = 64
"""Calls inside one another that are looked through."""

_CALL, _RANGE_NESTED, _RANGE_FREE, _OTHER = range(4)


@dataclass(frozen=True, slots=True)
class Host:
    """Calls and ranges in the tables of the schema, and the ids of events."""

    calls: pa.Table
    ranges: pa.Table
    threads: pa.Table
    link: Int64Array
    """Per event: what it has in common with its launch; MISSING without one."""
    events: Rows

    def links(self, event_ids: pa.ChunkedArray) -> pa.Array:
        """Return the correlation ids of work, by the ids of its events."""
        rows = self.events.rows(ints(event_ids))
        link = np.append(self.link, MISSING)[rows]
        return pa.array(link, mask=link == MISSING)


def read(recording: Recording, pid: Callable[[Int64Array], Int64Array]) -> Host:
    """Read a recording's calls and ranges; `pid` numbers the processes of its ids."""
    regions = recording.spans("region", "name_id")
    what = _kinds(recording, ints(regions.column("name_id")))
    is_range = (what == _RANGE_NESTED) | (what == _RANGE_FREE)
    event_of_region = ints(regions.column("event_id"))
    events, said = _events(recording, event_of_region[is_range])
    index = Rows(ints(events.column("id")))
    by_text = (what == _CALL) & _named_by_text(recording, events, index.rows(event_of_region))
    is_range |= by_text
    thread, threads = _threads(recording, regions, pid)
    link = _links(recording, events, index, regions)
    names = recording.strings.names(ints(regions.column("name_id")), "unknown call")
    calls, ranges = np.flatnonzero((what == _CALL) & ~by_text), np.flatnonzero(is_range)
    texts = said.of(event_of_region[ranges], names, ranges)
    called = _times(regions, calls)
    called["end"] = pc.coalesce(called["end"], called["start"])
    return Host(
        calls=schema.table(
            schema.CALLS,
            {
                **called,
                "thread": thread[calls],
                "corr": _linked(link, index.rows(event_of_region[calls])),
                "name": names.take(pa.array(calls)),
            },
        ),
        ranges=schema.table(
            schema.RANGES,
            {
                **_times(regions, ranges),
                "thread": thread[ranges],
                "style": np.where(what == _RANGE_FREE, schema.FREE, schema.NESTED)[ranges].astype(
                    np.int8
                ),
                **dict(zip(templates.NAMES, templates.split(texts).flatten(), strict=True)),
            },
        ),
        threads=threads,
        link=link,
        events=index,
    )


def _times(regions: pa.Table, rows: Int64Array) -> dict[str, pa.ChunkedArray]:
    taken = regions.select(["start", "end"]).take(pa.array(rows))
    return dict(zip(taken.column_names, taken.columns, strict=True))


def _linked(link: Int64Array, rows: Int64Array) -> pa.Array:
    taken = np.append(link, MISSING)[rows]
    return pa.array(taken, mask=taken == MISSING)


def _kinds(recording: Recording, name_ids: Int64Array) -> Int64Array:
    """Tell calls from ranges, by the name of each region."""
    names = recording.strings.names(name_ids, "")
    kinds = [_kind(name) for name in names.dictionary.to_pylist()]
    by_name: Int64Array = np.array([*kinds, _CALL], np.int64)
    return np.asarray(by_name[names.indices.to_numpy()])


def _kind(name: str) -> int:
    for pattern, kind in ((_NESTED, _RANGE_NESTED), (_FREE, _RANGE_FREE), (_NEITHER, _OTHER)):
        if pattern.match(name):
            return kind
    return _CALL


def _named_by_text(recording: Recording, events: pa.Table, rows: Int64Array) -> Mask:
    """Mark the regions in a category of ranges, whatever their names."""
    category = np.append(ints(events.column("category_id")), MISSING)[rows]
    used, place = numbered(category)
    is_text = np.array([name in _TEXTS for name in _categories(recording, used)], bool)
    return np.asarray(is_text[place])


def _categories(recording: Recording, ids: Int64Array) -> list[str]:
    """Name categories; schema 4 has a table of them."""
    if recording.columns("category"):
        rows = recording.read("category", {"id": int, "name": str})
        named = dict(zip(*(column.to_pylist() for column in rows.columns), strict=True))
        return [named.get(number) or "" for number in ids.tolist()]
    return [str(name) for name in recording.strings.names(ids, "").to_pylist()]


# --- events -------------------------------------------------------------------------------------


class _Said:
    """The texts of ranges, by the ids of their events."""

    def __init__(self, recording: Recording, rows: pa.Table) -> None:
        ids = ints(rows.column("id"))
        self._index = Rows(ids)
        texts = messages(rows.column("extdata"))
        if texts.null_count:
            texts = _from_arguments(recording, ids, texts)
        self._texts = pa.concat_arrays([texts, pa.nulls(1, pa.string())])

    def of(self, event_ids: Int64Array, names: pa.DictionaryArray, rows: Int64Array) -> pa.Array:
        """Return the text of each range; the name of its region if no event has one."""
        texts = self._texts.take(pa.array(self._index.rows(event_ids) % len(self._texts)))
        if not texts.null_count:
            return texts
        return pc.coalesce(texts, names.take(pa.array(rows)).cast(pa.string()))


def _events(recording: Recording, of_ranges: Int64Array) -> tuple[pa.Table, _Said]:
    """Read the events, and the texts of some."""
    columns: dict[str, type] = dict.fromkeys(
        ("id", "category_id", "stack_id", "parent_stack_id"), int
    )
    if not len(of_ranges):
        rows = recording.read("event", columns)
        nothing = pa.table({"id": pa.array([], pa.int64()), "extdata": pa.array([], pa.string())})
        return rows, _Said(recording, nothing)
    wanted = Rows(of_ranges)
    texts: list[pa.Table] = []

    def without_texts(rows: pa.Table) -> pa.Table:
        is_range = wanted.rows(ints(rows.column("id"))) != MISSING
        texts.append(rows.select(["id", "extdata"]).filter(pa.array(is_range)))
        return rows.drop_columns(["extdata"])

    rows = recording.read("event", {**columns, "extdata": str}, without_texts)
    return rows, _Said(recording, pa.concat_tables(texts))


def _from_arguments(recording: Recording, ids: Int64Array, texts: pa.Array) -> pa.Array:
    """Fill in the texts that are arguments of the call, as some versions keep them."""
    rows = recording.read("arg", {"event_id": int, "name": str, "value": str})
    rows = rows.filter(pc.equal(rows.column("name"), "message"))
    given = rows.column("value").combine_chunks()
    place = Rows(ints(rows.column("event_id"))).rows(ids)
    return pc.coalesce(texts, given.take(pa.array(place, mask=place == MISSING)))


# --- links --------------------------------------------------------------------------------------


def _links(recording: Recording, events: pa.Table, index: Rows, regions: pa.Table) -> Int64Array:
    """Return what each event has in common with its launch: the stack id of the outermost call.

    Calls of HSA lie inside those of HIP, and one of them may be what a kernel refers to.
    """
    stack, parent = (ints(events.column(name)) for name in ("stack_id", "parent_stack_id"))
    stack = np.where(stack > 0, stack, MISSING)
    names = recording.strings.names(ints(regions.column("name_id")), "")
    inner_names = [bool(_INNER.match(name)) for name in names.dictionary.to_pylist()]
    inner = np.flatnonzero(np.array([*inner_names, False])[names.indices.to_numpy()])
    if not len(inner):
        return stack
    rows = index.rows(ints(regions.column("event_id"))[inner])
    rows = rows[(rows != MISSING)]
    above = Rows(stack[rows])
    outer = np.where(parent[rows] > 0, parent[rows], stack[rows])
    link = stack.copy()
    for _ in range(_DEEP):
        place = above.rows(link)
        moved = np.where(place == MISSING, link, np.append(outer, MISSING)[place])
        if (moved == link).all():
            break
        link = moved
    return link


# --- threads ------------------------------------------------------------------------------------


def _threads(
    recording: Recording, regions: pa.Table, pid: Callable[[Int64Array], Int64Array]
) -> tuple[Int64Array, pa.Table]:
    """Number the threads of regions; return them as the schema's table, too."""
    ids, process = ints(regions.column("tid")), ints(regions.column("pid"))
    distinct, thread = numbered(ids)
    own_process = np.full(len(distinct), MISSING)
    own_process[thread] = process
    listed = recording.read("thread", {"id": int, "tid": int})
    numbers = np.append(ints(listed.column("tid")), MISSING)
    tid = numbers[Rows(ints(listed.column("id"))).rows(distinct)]
    tid = np.where(tid == MISSING, distinct, tid)  # rocprofv3 uses one number for both
    number = pid(own_process)
    columns = {
        "pid": pa.array(number, mask=number == MISSING),
        "tid": pa.array(tid, mask=tid == MISSING),
    }
    return thread.astype(np.int32), schema.table(schema.THREADS, columns)
