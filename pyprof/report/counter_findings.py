"""What counters say against a capture, or against what is concluded from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.inputs.counters import with_counters
from pyprof.parse import parse
from pyprof.prof.table import Table
from pyprof.readers import settings
from pyprof.report.analysis.counter_totals import counter_totals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyprof.schema import Capture


def contradictions(capture: Capture) -> Iterator[str]:
    """Say what did not join, what contradicts names of kernels, and what held the clock down."""
    counted = capture.activities.column("counters")
    sampled = capture.samples.num_rows
    if counted.null_count == len(counted) and not sampled and not settings.counters():
        return
    records = parse(capture)
    joined = with_counters(records)
    yield from joined.warnings[len(records.warnings) :]
    table = Table(joined)
    totals = counter_totals(table, capture, np.ones(joined.rows, bool), None)
    if totals is None:
        return
    yield from (entry.text for entry in totals.disagreements)
    if totals.throttled:
        yield totals.throttled
    if sampled and not table.measured.any:
        yield (
            "metrics were sampled, but too few samples fall on any kernel: capture more steps, or "
            "sample more often"
        )
