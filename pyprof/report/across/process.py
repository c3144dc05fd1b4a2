"""One rank of a capture in which several processes were recorded."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from pyprof.schema import Capture


def of_process(capture: Capture, pid: int) -> Capture:
    """Keep the GPU work, calls and ranges of one process; threads keep their numbers."""
    threads = pa.array(np.flatnonzero(np.asarray(pc.equal(capture.threads.column("pid"), pid))))
    return replace(
        capture,
        activities=capture.activities.filter(pc.equal(capture.activities.column("pid"), pid)),
        **{
            name: table.filter(pc.is_in(table.column("thread"), threads.cast(pa.int32())))
            for name, table in (("calls", capture.calls), ("ranges", capture.ranges))
        },
    )
