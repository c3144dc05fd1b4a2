"""Finds when the CPU ran the collectives that ops of torch.distributed handed to its threads.

Such an op returns at once. gloo's threads take collectives in the order in which they were handed
over, and put a range around each: it begins when this rank is ready, and ends when all were.

The ranges of sends and receives last until the script waits for them. Until then a receive may be
what holds it up; a send seldom is, so it keeps the time of its call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pyprof.arrays import ints, set_column

if TYPE_CHECKING:
    from pyprof.arrays import Int64Array
    from pyprof.readers.kineto.columns import Threads

_OP, _RANGE = "c10d::", "gloo:"
"""Prefixes of torch.distributed's ops, and of gloo's ranges."""
_KINDS = {
    **{kind: kind for kind in ("allgather", "alltoall", "barrier", "broadcast", "gather")},
    **{kind: kind for kind in ("allreduce", "reduce", "scatter", "recv")},
    "reducescatter": "allreduce",  # gloo reduces everything; a rank keeps its part
}
"""By name of a collective: the kind of range around it."""
_STREAM = 0
"""No thread has this number; which of gloo's takes which collective differs from rank to rank."""


def with_run_times(activities: pa.Table, ranges: pa.Table, threads: Threads) -> pa.Table:
    """Put collectives at the times when they ran, on a stream of their own.

    Collectives of a kind stay as they are if their ranges are not as many, as where a trace ends
    before they ran.
    """
    process = np.array([pid for pid, _ in threads.ids or [(0, 0)]], dtype=np.int64)
    begin, end = ints(ranges["start"]), ints(ranges["end"])
    runs = _group_by_kind(ranges["text"], _RANGE, process[ints(ranges["thread"])], begin)
    if not runs:
        return activities
    columns = {name: ints(activities[name]).copy() for name in ("start", "end", "stream")}
    start = columns["start"]
    for key, rows in _group_by_kind(
        activities["name"], _OP, ints(activities["pid"]), start
    ).items():
        ran = runs.get(key, rows[:0])
        ran = ran[begin[ran] >= start[rows[0]]]  # others were handed over before the recording
        if len(ran) == len(rows) and (begin[ran] >= start[rows]).all() and (end[ran] >= 0).all():
            columns["stream"][rows] = _STREAM
            columns["start"][rows], columns["end"][rows] = begin[ran], end[ran]
    for name, values in columns.items():
        activities = set_column(activities, name, pa.array(values))
    return activities


def _group_by_kind(
    texts: pa.ChunkedArray, prefix: str, process: Int64Array, start: Int64Array
) -> dict[tuple[int, str], Int64Array]:
    """Return the rows of each process and kind of collective, in the order of their starts."""
    coded = texts.combine_chunks()
    kinds = [_kind(text, prefix) for text in coded.dictionary.to_pylist()]
    known = np.array([kind is not None for kind in kinds], bool)
    index = ints(coded.indices)
    rows = np.flatnonzero(known[index]) if len(known) else np.zeros(0, np.int64)
    rows = rows[np.argsort(start[rows], kind="stable")]
    rows_of: dict[tuple[int, str], list[int]] = {}
    for row in rows.tolist():
        rows_of.setdefault((int(process[row]), str(kinds[index[row]])), []).append(row)
    return {key: np.array(same) for key, same in rows_of.items()}


def _kind(text: str, prefix: str) -> str | None:
    if not text.startswith(prefix):
        return None
    plain = text.removeprefix(prefix).replace("_", "")
    return _KINDS.get(max(filter(plain.startswith, _KINDS), key=len, default=""))
