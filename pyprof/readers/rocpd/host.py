"""The host's side of a recording: API calls, ROCTx ranges, their threads and events."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import MISSING, ints, or_null
from pyprof.marker import templates
from pyprof.readers.rocpd.recording import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyprof.arrays import Int64Array, Mask
    from pyprof.readers.rocpd.recording import Recording


_INNER = re.compile(r"hsa_")
"""Calls that other calls make: what they launch counts as launched by the outer one."""
_API = re.compile(r"(?:__)?p?(?:hip|hsa|nccl|rccl|roc|KFD)")
"""Names of calls and of ROCTx; others are classified by category."""
_DEEP = 64
"""Maximum depth of nested calls."""
_OF_RANGES = ("MARKER_CORE_API", "MARKER_CORE_RANGE_API", "rocm_marker_api")
"""Categories of ranges. ROCm Systems Profiler names a range's region by its text."""


class Events:
    """The events of a recording by their ids."""

    def __init__(
        self, recording: Recording, of_regions: Int64Array, names: pa.DictionaryArray, wanted: Mask
    ) -> None:
        """Read the events of regions of some names; `wanted` marks those whose texts are."""
        self._recording = recording
        self.of_regions = of_regions
        distinct = names.dictionary.to_pylist()
        inner_names = [_INNER.match(name) is not None for name in distinct]
        has_others = not all(map(_API.match, distinct))
        columns = ["id", "stack_id"]
        columns += ["parent_stack_id"] if any(inner_names) else []
        columns += ["category_id"] if has_others else []
        rows, texts = _read(recording, of_regions[wanted], columns)
        self._index = Rows(ints(rows.column("id")))
        self._category = ints(rows.column("category_id")) if has_others else None
        inner = np.array([*inner_names, False])[names.indices.to_numpy()]
        self._link = _links(rows, self._index, of_regions[inner])
        self._texts, self._text_of = texts, Rows(ints(texts.column("id")))

    def links(self, event_ids: Int64Array) -> pa.Array:
        """Return the correlation id that each event shares with its launch."""
        link = np.append(self._link, MISSING)[self._index.rows(event_ids)]
        return or_null(link)

    def texts(self, event_ids: Int64Array, otherwise: pa.DictionaryArray) -> pa.Table:
        """Return the texts of ranges, in the columns of `templates.NAMES`.

        Some versions keep them as arguments of the call; a range without either gets `otherwise`.
        """
        place = self._text_of.rows(event_ids)
        stated = self._texts.select([*templates.NAMES])
        texts = stated.take(or_null(place))
        without = np.flatnonzero(texts.column("text").is_null())
        if not len(without):  # nearly always
            return texts
        given = _arguments(self._recording, event_ids[without])
        names = otherwise.take(pa.array(without)).cast(pa.string())
        others = pa.table(templates.columns(pc.coalesce(given, names)))
        index = np.arange(len(event_ids))
        index[without] = len(event_ids) + np.arange(len(without))
        both = pa.concat_tables([texts, others]).unify_dictionaries().combine_chunks()
        return both.take(pa.array(index))

    def are_ranges(self) -> Mask:
        """Mark the regions in a category of ranges, whatever their names."""
        if self._category is None:  # nearly always
            return np.zeros(len(self.of_regions), bool)
        rows = self._index.rows(self.of_regions)
        used, index = np.unique(np.append(self._category, MISSING)[rows], return_inverse=True)
        if self._recording.columns("category"):  # a table since schema 4
            listed = self._recording.read("category", {"id": int, "name": str})
            named = dict(zip(*(column.to_pylist() for column in listed.columns), strict=True))
            names = [named.get(number) for number in used.tolist()]
        else:
            names = self._recording.strings.names(used, "").to_pylist()
        return np.asarray(np.array([name in _OF_RANGES for name in names], bool)[index])


def _read(
    recording: Recording, of_ranges: Int64Array, names: Sequence[str]
) -> tuple[pa.Table, pa.Table]:
    """Read some columns of the events, and the documents with the texts of some."""
    columns: dict[str, type] = dict.fromkeys(names, int)
    nothing = templates.columns(pa.array([], pa.string()))
    parts = [pa.table({"id": pa.array([], pa.int64()), **nothing})]
    if not len(of_ranges):
        return recording.read("event", columns), parts[0]
    wanted = Rows(of_ranges)

    def without_texts(rows: pa.Table) -> pa.Table:
        is_range = wanted.rows(ints(rows.column("id"))) != MISSING
        said = rows.select(["id", "extdata"]).filter(pa.array(is_range))
        texts = messages(said.column("extdata"))  # some at a time, as they are read
        parts.append(pa.table({"id": said.column("id"), **templates.columns(texts)}))
        return rows.drop_columns(["extdata"])

    rows = recording.read("event", {**columns, "extdata": str}, without_texts)
    return rows, pa.concat_tables(parts).unify_dictionaries().combine_chunks()


def _arguments(recording: Recording, ids: Int64Array) -> pa.StringArray:
    """Return the texts that are arguments of calls, by the ids of events; null without one."""
    rows = recording.read("arg", {"event_id": int, "name": str, "value": str})
    rows = rows.filter(pc.equal(rows.column("name"), "message"))
    given = rows.column("value").combine_chunks()
    index = Rows(ints(rows.column("event_id"))).rows(ids)
    return given.take(or_null(index))


def _links(events: pa.Table, index: Rows, inner: Int64Array) -> Int64Array:
    """Return the id that each event shares with its launch: the stack id of the outermost call.

    Calls of HSA lie inside those of HIP, and one of them may be what a kernel refers to: `inner`.
    """
    stack = ints(events.column("stack_id"))
    stack = np.where(stack > 0, stack, MISSING)
    if not len(inner):
        return stack
    parent = ints(events.column("parent_stack_id"))
    rows = index.rows(inner)
    rows = rows[rows != MISSING]
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


_BEGIN = re.compile(rb'\{\s*"message"\s*:\s*"')
_END = re.compile(rb'"\s*\}\s*$')


def messages(documents: pa.ChunkedArray) -> pa.StringArray:
    """Return the `message` of each JSON object; null without one."""
    encoded = documents.combine_chunks().dictionary_encode()  # most texts repeat
    texts, is_plain = _cut_messages(encoded.dictionary)
    others = encoded.dictionary.filter(pa.array(~is_plain))
    if len(others):
        stated = (schema.json_object(text).get("message") for text in others.to_pylist())
        decoded = [text if isinstance(text, str) else None for text in stated]
        texts = pc.replace_with_mask(texts, pa.array(~is_plain), pa.array(decoded, pa.string()))
    return texts.take(encoded.indices)


def _cut_messages(documents: pa.StringArray) -> tuple[pa.StringArray, Mask]:
    """Cut the texts out of objects with nothing else in them, and mark those objects.

    Cutting bytes takes a tenth of the time of parsing; texts with backslashes are left to that.
    """
    raw = documents.cast(pa.binary())
    first = raw[0].as_py() if len(raw) else b""
    begin, end = _BEGIN.match(first), _END.search(first)
    if begin is None or end is None:
        return pa.nulls(len(raw), pa.string()), np.zeros(len(raw), bool)
    texts = pc.binary_slice(raw, len(begin[0]), -len(end[0]))
    is_plain = pc.and_(pc.starts_with(raw, begin[0]), pc.ends_with(raw, end[0]))
    is_plain = pc.and_not(is_plain, pc.match_substring_regex(texts, rb'["\\]'))
    long_enough = pc.greater_equal(pc.binary_length(raw), len(begin[0]) + len(end[0]))
    plain = pc.and_(is_plain, long_enough)
    return pc.if_else(plain, texts, None).cast(pa.string()), np.asarray(plain)


_CALL, _NESTED, _FREE, _OTHER = range(4)
_KINDS = (
    # the first name of each kind is from ROCm 7, the second from 6.4
    (re.compile(r"roctx(?:ThreadRange|RangePush)"), _NESTED),
    (re.compile(r"roctx(?:ProcessRange|RangeStart)"), _FREE),
    (re.compile(r"roctx(?:Mark|Range|Name|GetThreadId)"), _OTHER),
)
"""Kinds of regions by their names; any other region is a call."""


@dataclass(frozen=True, slots=True)
class Host:
    """Calls, ranges and threads in the tables of the schema, and the events of the recording."""

    calls: pa.Table
    ranges: pa.Table
    threads: pa.Table
    events: Events
    pid: Callable[[Int64Array], Int64Array]
    """Returns the numbers of the processes of its ids."""


def read(recording: Recording, pid: Callable[[Int64Array], Int64Array]) -> Host:
    """Read a recording's calls and ranges; `pid` numbers the processes of its ids."""
    regions = recording.spans("region", "name_id")
    names = recording.strings.names(ints(regions.column("name_id")), "unknown call")
    kind = _kinds(names)
    event_ids = ints(regions.column("event_id"))
    events = Events(recording, event_ids, names, np.isin(kind, (_NESTED, _FREE)))
    kind = np.where((kind == _CALL) & events.are_ranges(), _NESTED, kind)
    thread, threads = _threads(recording, regions, pid)
    listed = regions.select(["start", "end"]).append_column("thread", pa.array(thread))
    is_call, is_range = kind == _CALL, np.isin(kind, (_NESTED, _FREE))
    calls, ranges = listed.filter(pa.array(is_call)), listed.filter(pa.array(is_range))
    texts = events.texts(events.of_regions[is_range], names.filter(pa.array(is_range)))
    columns = {
        **{name: calls.column(name) for name in ("start", "thread")},
        "end": pc.coalesce(calls.column("end"), calls.column("start")),
        "corr": events.links(events.of_regions[is_call]),
        "name": names.filter(pa.array(is_call)),
    }
    style = np.where(kind[is_range] == _FREE, schema.FREE, schema.NESTED).astype(np.int8)
    named = {name: table.column(name) for table in (ranges, texts) for name in table.column_names}
    return Host(
        schema.table(schema.CALLS, columns),
        schema.table(schema.RANGES, {**named, "style": style}),
        threads,
        events,
        pid,
    )


def _kinds(names: pa.DictionaryArray) -> Int64Array:
    kinds = [
        next((kind for pattern, kind in _KINDS if pattern.match(name)), _CALL)
        for name in names.dictionary.to_pylist()
    ]
    by_name = np.array([*kinds, _CALL], np.int64)
    return np.asarray(by_name[names.indices.to_numpy()])


def _threads(
    recording: Recording, regions: pa.Table, pid: Callable[[Int64Array], Int64Array]
) -> tuple[Int64Array, pa.Table]:
    """Number the threads of regions; return them as the schema's table, too."""
    ids, process = ints(regions.column("tid")), ints(regions.column("pid"))
    distinct, thread = np.unique(ids, return_inverse=True)
    own_process = np.full(len(distinct), MISSING)
    own_process[thread] = process
    columns = {
        "pid": or_null(pid(own_process)),
        "tid": or_null(thread_numbers(recording, distinct)),
    }
    return thread.astype(np.int32), schema.table(schema.THREADS, columns)


def thread_numbers(recording: Recording, ids: Int64Array) -> Int64Array:
    """Return the system's number of each thread; its id where that is not recorded."""
    listed = recording.read("thread", {"id": int, "tid": int})
    numbers = np.append(ints(listed.column("tid")), MISSING)
    number = numbers[Rows(ints(listed.column("id"))).rows(ids)]
    return np.where(number == MISSING, ids, number)  # rocprofv3 uses one number for both
