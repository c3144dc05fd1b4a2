"""Times of steps by rank."""

from functools import reduce
from pathlib import Path

import numpy as np

from pyprof.analysis.summary.overview import summary
from pyprof.inputs import source
from pyprof.records.merging import merge_sums
from pyprof.render.page.content import summarise_page
from tests.analysis.captured import capture
from tests.render.page import shown_parts


def test_steps_by_rank_are_those_of_each_alone(tmp_path: Path) -> None:
    """A slower rank has its own row; the trend is the slower one's in each step."""
    files = [
        str(capture(tmp_path / f"rank{rank}.sqlite", steps=3, slower=slower))
        for rank, slower in enumerate((1, 4))
    ]
    alone = [summarise_page(source.load(file)) for file in files]
    steps = shown_parts.shown(reduce(merge_sums, alone))["steps"]
    times = steps["heat"]["measures"]
    assert times["step"] == [[*summary(found.summary).steps.duration_ns] for found in alone]
    assert times["computing"] == [[200 + 300 + 50] * 3, [4 * 200 + 300 + 50] * 3]
    assert steps["trend"]["longest"].tolist() == np.max(times["step"], axis=0).tolist()
    assert shown_parts.shown(alone[0])["steps"]["heat"] is None
