"""The answer that is made of the sums of captures whose steps are of several kinds."""

import pytest

from pyprof import schema
from pyprof.analysis.summary.composition import summary
from pyprof.analysis.summary.overview import SummarySums, summarise
from pyprof.inputs.source import Source
from pyprof.parse import parse
from pyprof.prof.table import Table
from pyprof.records.merging import merge_sums
from tests.analysis import captures as built
from tests.analysis.captures import US, Work

NONE = built.capture([Work((5 * US, 9 * US), (0, 2 * US), "other")])
"""Nothing marks or suggests steps."""


def _sums(net: schema.Capture) -> SummarySums:
    return summarise(Source(Table(parse(net)), net))


@pytest.mark.parametrize("other", [built.optimized(), NONE], ids=["optimizer", "none"])
def test_times_per_step_are_of_the_captures_with_the_surest_steps(other: schema.Capture) -> None:
    marked = _sums(built.training(4))
    merged, alone = summary(merge_sums(_sums(other), marked)), summary(marked)
    assert merged.steps.origin == 'ranges "step N"'
    assert sum(op.step_ns or 0 for op in merged.ops) == sum(op.step_ns or 0 for op in alone.ops)
    assert merged.layers[0].step_ns == alone.layers[0].step_ns
    assert sum(op.time_ns for op in merged.ops) == merged.known_cost.total_ns
