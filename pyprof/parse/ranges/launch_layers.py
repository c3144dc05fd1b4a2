"""The layers around each launch: nested ranges, and start/end ranges, which nest in nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import MISSING
from pyprof.parse.ranges import range_names
from pyprof.parse.ranges.nesting import bounds_of
from pyprof.records.records import DictionaryColumn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.arrays import IntArray
    from pyprof.parse.launch_sites import Sites
    from pyprof.schema import Capture


def layers(
    of_path: Sequence[Sequence[str]], path: IntArray, free: dict[int, list[str]]
) -> DictionaryColumn:
    """Name the layers around each row, outermost first; start/end layers before nested ones."""
    nested = DictionaryColumn(path, [*map(list, of_path)])
    return _combine(nested, free) if free else nested


def free(capture: Capture, site: Sites, most: int) -> dict[int, list[str]]:
    """Find the start/end layers around each row's site, on the thread that started them.

    Of more than `most`, those that were started last.
    """
    ranges = capture.ranges.filter(pc.equal(capture.ranges.column("style"), schema.FREE))
    if not len(ranges):
        return {}
    ranges = ranges.filter(pa.array(range_names.named(ranges))).sort_by("start")
    rows = np.flatnonzero(site.row != MISSING) if len(ranges) else np.zeros(0, np.int64)
    thread, start, end = (part[site.row[rows]] for part in (site.thread, site.start, site.end))
    order = np.lexsort((start, thread))
    rows, thread, start, end = rows[order], thread[order], start[order], end[order]
    layers: dict[int, list[str]] = {}
    room = np.full(len(rows), most)
    for entry in reversed(ranges.select(["start", "end", "thread", "text"]).to_pylist()):
        first, last = bounds_of(thread, entry["thread"])
        low = first + int(np.searchsorted(start[first:last], entry["start"]))
        until = entry["end"] if entry["end"] is not None else np.iinfo(np.int64).max
        high = first + int(np.searchsorted(start[first:last], until, side="right"))
        inside = low + np.flatnonzero((end[low:high] <= until) & (room[low:high] > 0))
        room[inside] -= 1
        for row in rows[inside].tolist():
            layers.setdefault(row, []).append(range_names.name(entry["text"]))
    return {row: names[::-1] for row, names in layers.items()}


def _combine(nested: DictionaryColumn, free: dict[int, list[str]]) -> DictionaryColumn:
    index, values = nested.index.copy(), list(nested.values)
    places: dict[tuple[str, ...], int] = {}
    for row, names in free.items():
        combined = (*names, *values[nested.index[row]])
        if combined not in places:
            places[combined] = len(values)
            values.append(list(combined))
        index[row] = places[combined]
    return DictionaryColumn(index, values)
