"""What a trace hides or distorts, in sentences for the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyprof.readers.kineto.stream import Trace


def warnings(trace: Trace, activities: pa.Table, calls: pa.Table, untimed: int) -> Iterator[str]:
    """Yield the sentences that this trace deserves."""
    if trace.cut:
        yield (
            "the file ends before the trace does (a killed job?): what was written is shown; "
            "capture again, and let the job end"
        )
    if trace.lost:
        yield f"{trace.lost} events are not valid JSON and are left out"
    if untimed:
        yield f"{untimed} events have no time and are left out"
    if not activities.num_rows:
        yield "no GPU work and no ops that took time in this trace"
    elif activities["kind"][0].as_py() == schema.CPU:
        yield "no GPU work was captured: rows are CPU ops, timed on the CPU"
    else:
        yield from _orphans(activities, calls)


def _orphans(activities: pa.Table, calls: pa.Table) -> Iterator[str]:
    launched = pc.is_in(activities["corr"], value_set=pc.drop_null(calls["corr"].combine_chunks()))
    orphans = activities.num_rows - (pc.sum(launched).as_py() or 0)
    if orphans:
        yield (
            f"{orphans} of {activities.num_rows} pieces of GPU work have no launch in the trace "
            "(launched before it began): they have no op; add warm-up steps to the schedule"
        )
