"""Sorts activities by when the GPU started them, the order of the records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

_KEYS = ("start", "end", "device", "stream", "corr")


def in_order(activities: pa.Table) -> pa.Table:
    """Sort activities by their start, those without one first; if in order they are not copied."""
    start = _key(activities.column("start"))
    # Tables of different kinds of work, each sorted, follow each other: merging runs is quick.
    order = np.argsort(start, kind="stable") if (start[1:] < start[:-1]).any() else None
    ordered = start if order is None else start[order]
    same = ordered[1:] == ordered[:-1]
    place = np.flatnonzero(np.append(same, [False]) | np.append([False], same))
    rows = place if order is None else order[place]
    index = pa.array(rows)
    by = np.lexsort([_key(activities.column(name).take(index)) for name in reversed(_KEYS)])
    if order is None:
        if (by[1:] > by[:-1]).all():
            return activities
        order = np.arange(len(start))
    order[place] = rows[by]
    return activities.take(pa.array(order))


def _key(column: pa.ChunkedArray) -> NDArray[np.int64]:
    return np.asarray(pc.fill_null(column, -1))
