"""Strips of time: bins are exactly as busy as the GPU was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pyprof.report import source
from pyprof.report.intervals import union_of
from pyprof.report.overview import overview
from pyprof.report.page.strip import _elapsed, strip
from tests.report.captured import capture

if TYPE_CHECKING:
    from pathlib import Path

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=8)


@given(SPANS, st.lists(st.integers(-5, 90), min_size=1, max_size=5))
def test_elapsed_counts_each_instant_once(spans: list[tuple[int, int]], at: list[int]) -> None:
    """Before an instant lies as much of the set as there are instants of it: by counting them."""
    busy = union_of(
        np.array([start for start, _ in spans], np.int64),
        np.array([start + length for start, length in spans], np.int64),
    )
    inside = {t for start, length in spans for t in range(start, start + length)}
    expected = [len([t for t in inside if t < instant]) for instant in at]
    assert _elapsed(busy, np.array(at, float)).tolist() == expected


def test_bins_add_up_to_the_busy_time(tmp_path: Path) -> None:
    """Busy bins times their length are the time in which anything ran; the rest is idle."""
    loaded = source.load(str(capture(tmp_path / "net.sqlite")))
    found = strip(loaded, overview(loaded))
    assert found is not None
    busy = float((found.busy * (found.right_ns - found.left_ns)).sum())
    # 1000..1250 (a kernel and the copy that overlaps it), then 100, 300 and 50
    assert round(busy) == 250 + 100 + 300 + 50
    assert found.length_ns == [3450 - 1000]


def test_bins_say_what_ran(tmp_path: Path) -> None:
    """The kernels' bins are compute; where only the copy runs, copy."""
    loaded = source.load(str(capture(tmp_path / "net.sqlite")))
    found = strip(loaded, overview(loaded))
    assert found is not None
    kinds = dict(zip(found.left_ns.round(), found.sort, strict=True))
    assert kinds[0] == "compute"
    assert {kind for left, kind in kinds.items() if 110 < left < 240} == {"copy"}
    assert "copy" not in {kind for left, kind in kinds.items() if left > 260}
