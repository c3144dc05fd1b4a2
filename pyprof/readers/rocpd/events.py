"""The events of a recording: what links work to its launch, and the texts of ranges."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.arrays import MISSING, ints, numbered
from pyprof.marker import templates
from pyprof.readers.rocpd.messages import messages
from pyprof.readers.rocpd.recording import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.arrays import Int64Array, Mask
    from pyprof.readers.rocpd.recording import Recording

_INNER = re.compile(r"hsa_")
"""Calls that other calls make: what they launch counts as launched by the outer one."""
_API = re.compile(r"(?:__)?p?(?:hip|hsa|nccl|rccl|roc|KFD)")
"""Names of calls and of ROCTx: with others, categories say what they are."""
_DEEP = 64
"""Calls inside one another that are looked through."""
_OF_RANGES = ("MARKER_CORE_API", "MARKER_CORE_RANGE_API", "rocm_marker_api")
"""Categories of ranges. ROCm Systems Profiler names a range's region by its text."""


class Events:
    """The events of a recording by their ids."""

    def __init__(self, recording: Recording, regions: pa.Table, is_range: Mask) -> None:
        """Read the events; `is_range` marks the regions whose texts are wanted."""
        self._recording = recording
        self.of_regions = ints(regions.column("event_id"))
        names = recording.strings.names(ints(regions.column("name_id")), "").dictionary.to_pylist()
        columns = ["id", "stack_id"]
        columns += ["parent_stack_id"] if any(map(_INNER.match, names)) else []
        self._has_others = not all(map(_API.match, names))
        columns += ["category_id"] if self._has_others else []
        rows, texts = _read(recording, self.of_regions[is_range], columns)
        self._index = Rows(ints(rows.column("id")))
        self._category = ints(rows.column("category_id")) if self._has_others else None
        self._link = _links(recording, rows, self._index, regions)
        self._texts, self._text_of = texts, Rows(ints(texts.column("id")))

    def links(self, event_ids: Int64Array) -> pa.Array:
        """Return what each event has in common with its launch, the correlation id."""
        link = np.append(self._link, MISSING)[self._index.rows(event_ids)]
        return pa.array(link, mask=link == MISSING)

    def texts(self, event_ids: Int64Array, otherwise: pa.DictionaryArray) -> pa.Table:
        """Return the texts of ranges, in the columns of `templates.NAMES`.

        Some versions keep them as arguments of the call; a range without either gets `otherwise`.
        """
        place = self._text_of.rows(event_ids)
        stated = self._texts.select([*templates.NAMES])
        texts = stated.take(pa.array(place, mask=place == MISSING))
        without = np.flatnonzero(texts.column("text").is_null())
        if not len(without):  # nearly always
            return texts
        given = _arguments(self._recording, event_ids[without])
        others = _numbered(pc.coalesce(given, otherwise.take(pa.array(without)).cast(pa.string())))
        index = np.arange(len(event_ids))
        index[without] = len(event_ids) + np.arange(len(without))
        both = pa.concat_tables([texts, others]).unify_dictionaries().combine_chunks()
        return both.take(pa.array(index))

    def are_ranges(self) -> Mask:
        """Mark the regions in a category of ranges, whatever their names."""
        if self._category is None:  # nearly always
            return np.zeros(len(self.of_regions), bool)
        rows = self._index.rows(self.of_regions)
        used, place = numbered(np.append(self._category, MISSING)[rows])
        names = _categories(self._recording, used)
        return np.asarray(np.array([name in _OF_RANGES for name in names], bool)[place])


def _read(
    recording: Recording, of_ranges: Int64Array, names: Sequence[str]
) -> tuple[pa.Table, pa.Table]:
    """Read some columns of the events, and the documents with the texts of some."""
    columns: dict[str, type] = dict.fromkeys(names, int)
    nothing = pa.table({"id": pa.array([], pa.int64())})
    parts = [pa.table({**_columns(nothing), **_columns(_numbered(pa.array([], pa.string())))})]
    if not len(of_ranges):
        return recording.read("event", columns), parts[0]
    wanted = Rows(of_ranges)

    def without_texts(rows: pa.Table) -> pa.Table:
        is_range = wanted.rows(ints(rows.column("id"))) != MISSING
        said = rows.select(["id", "extdata"]).filter(pa.array(is_range))
        split = _numbered(messages(said.column("extdata")))  # some at a time, as they are read
        parts.append(pa.table({"id": said.column("id"), **_columns(split)}))
        return rows.drop_columns(["extdata"])

    rows = recording.read("event", {**columns, "extdata": str}, without_texts)
    return rows, pa.concat_tables(parts).unify_dictionaries().combine_chunks()


def _numbered(texts: pa.StringArray) -> pa.Table:
    return pa.table(dict(zip(templates.NAMES, templates.split(texts).flatten(), strict=True)))


def _columns(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    return dict(zip(table.column_names, table.columns, strict=True))


def _categories(recording: Recording, ids: Int64Array) -> list[str]:
    """Name categories; schema 4 has a table of them."""
    if recording.columns("category"):
        rows = recording.read("category", {"id": int, "name": str})
        named = dict(zip(*(column.to_pylist() for column in rows.columns), strict=True))
        return [named.get(number) or "" for number in ids.tolist()]
    return [str(name) for name in recording.strings.names(ids, "").to_pylist()]


def _arguments(recording: Recording, ids: Int64Array) -> pa.StringArray:
    """Return the texts that are arguments of calls, by the ids of events; null without one."""
    rows = recording.read("arg", {"event_id": int, "name": str, "value": str})
    rows = rows.filter(pc.equal(rows.column("name"), "message"))
    given = rows.column("value").combine_chunks()
    place = Rows(ints(rows.column("event_id"))).rows(ids)
    return given.take(pa.array(place, mask=place == MISSING))


def _links(recording: Recording, events: pa.Table, index: Rows, regions: pa.Table) -> Int64Array:
    """Return what each event has in common with its launch: the stack id of the outermost call.

    Calls of HSA lie inside those of HIP, and one of them may be what a kernel refers to.
    """
    stack = ints(events.column("stack_id"))
    stack = np.where(stack > 0, stack, MISSING)
    names = recording.strings.names(ints(regions.column("name_id")), "")
    inner_names = [bool(_INNER.match(name)) for name in names.dictionary.to_pylist()]
    inner = np.flatnonzero(np.array([*inner_names, False])[names.indices.to_numpy()])
    if not len(inner):
        return stack
    parent = ints(events.column("parent_stack_id"))
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
