"""The host's side of a recording: API calls, ROCTx ranges, and their threads."""

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
from pyprof.readers.rocpd.events import Events
from pyprof.readers.rocpd.recording import Rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyprof.arrays import Int64Array, Mask
    from pyprof.readers.rocpd.recording import Recording

_CALL, _NESTED, _FREE, _OTHER = range(4)
_KINDS = (
    # ROCm 7 has the first name of each kind, 6.4 the second
    (re.compile(r"roctx(?:ThreadRange|RangePush)"), _NESTED),
    (re.compile(r"roctx(?:ProcessRange|RangeStart)"), _FREE),
    (re.compile(r"roctx(?:Mark|Range|Name|GetThreadId)"), _OTHER),
)
"""What a region is, by its name; any other is a call."""


@dataclass(frozen=True, slots=True)
class Host:
    """Calls, ranges and threads in the tables of the schema, and the events of the recording."""

    calls: pa.Table
    ranges: pa.Table
    threads: pa.Table
    events: Events


def read(recording: Recording, pid: Callable[[Int64Array], Int64Array]) -> Host:
    """Read a recording's calls and ranges; `pid` numbers the processes of its ids."""
    regions = recording.spans("region", "name_id")
    names = recording.strings.names(ints(regions.column("name_id")), "unknown call")
    kind = _kinds(names)
    events = Events(recording, regions, np.isin(kind, (_NESTED, _FREE)))
    kind = np.where((kind == _CALL) & events.are_ranges(), _NESTED, kind)
    thread, threads = _threads(recording, regions, pid)
    columns = {"start": regions.column("start"), "end": regions.column("end"), "thread": thread}
    listed = pa.table({**columns, "name": names, "event": events.of_regions})
    calls = listed.filter(pa.array(kind == _CALL))
    ranges = listed.filter(pa.array(np.isin(kind, (_NESTED, _FREE))))
    is_free = kind[np.isin(kind, (_NESTED, _FREE))] == _FREE
    return Host(_calls(calls, events), _ranges(ranges, is_free, events), threads, events)


def _kinds(names: pa.DictionaryArray) -> Int64Array:
    kinds = [
        next((kind for pattern, kind in _KINDS if pattern.match(name)), _CALL)
        for name in names.dictionary.to_pylist()
    ]
    by_name = np.array([*kinds, _CALL], np.int64)
    return np.asarray(by_name[names.indices.to_numpy()])


def _calls(calls: pa.Table, events: Events) -> pa.Table:
    start = calls.column("start")
    return schema.table(
        schema.CALLS,
        {
            "start": start,
            "end": pc.coalesce(calls.column("end"), start),
            "thread": calls.column("thread"),
            "corr": events.links(ints(calls.column("event"))),
            "name": calls.column("name"),
        },
    )


def _ranges(ranges: pa.Table, is_free: Mask, events: Events) -> pa.Table:
    names = ranges.column("name").combine_chunks()
    texts = events.texts(ints(ranges.column("event")), names)
    return schema.table(
        schema.RANGES,
        {
            "start": ranges.column("start"),
            "end": ranges.column("end"),
            "thread": ranges.column("thread"),
            "style": np.where(is_free, schema.FREE, schema.NESTED).astype(np.int8),
            **{name: texts.column(name) for name in templates.NAMES},
        },
    )


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
