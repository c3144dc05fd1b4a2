"""Strips of time: bins are as busy as the GPU."""

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pyprof.analysis.report.strips import StripSums, _elapsed, strip_sums
from pyprof.analysis.summary.overview import overview
from pyprof.analysis.time.intervals import union_of
from pyprof.answers.page.report_answer import KINDS_OF_WORK, StripRow
from pyprof.answers.summary_answer import StepTimes
from pyprof.inputs import source
from pyprof.records.merging import merge_sums
from pyprof.render.page import figures
from tests.analysis.answered import answered
from tests.analysis.captured import STEP_NS, TWO_WINDOWS, capture
from tests.builders import Work, nsys_db
from tests.known import known


def cut(file: Path) -> tuple[StripSums, StepTimes]:
    loaded = source.load(str(file))
    return known(strip_sums(loaded.table.records, overview(loaded))), answered(loaded).steps


def rows(file: Path) -> tuple[StripRow, ...]:
    sums, steps = cut(file)
    ((_, shown),) = sums.shown(steps).rows
    return shown


SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=8)


@given(SPANS, st.lists(st.integers(-5, 90), min_size=1, max_size=5))
def test_elapsed_counts_each_instant_once(spans: list[tuple[int, int]], at: list[int]) -> None:
    """Compared with counting the instants before each one."""
    busy = union_of(
        np.array([start for start, _ in spans], np.int64),
        np.array([start + length for start, length in spans], np.int64),
    )
    inside = {t for start, length in spans for t in range(start, start + length)}
    expected = [len([t for t in inside if t < instant]) for instant in at]
    assert _elapsed(busy, np.array(at, float)).tolist() == expected


def test_bins_add_up_to_the_busy_time(tmp_path: Path) -> None:
    """Busy bins times their length are the time in which anything ran; the rest is idle."""
    (row,) = rows(capture(tmp_path / "net.sqlite"))
    left, right, share, _ = row.bins
    # 1000..1250 (a kernel and the copy that overlaps it), then 100, 300 and 50
    assert round((share * (right - left)).sum()) == 250 + 100 + 300 + 50
    assert row.length_ns == 3450 - 1000


def test_a_step_begins_where_the_one_before_ended(tmp_path: Path) -> None:
    """Waiting for a step's first kernel is at its left."""
    shown = rows(capture(tmp_path / "net.sqlite", steps=3))
    assert [row.length_ns for row in shown] == [3450 - 1000, STEP_NS, STEP_NS]
    first = [row.bins[0].min() for row in shown]
    waited = 1000 + STEP_NS - 3450
    assert first[0] == 0
    assert all(waited - STEP_NS / 600 < left <= waited for left in first[1:])


def test_bins_have_the_kind_of_their_work(tmp_path: Path) -> None:
    """Compute if a kernel runs, copy if only a copy does."""
    (row,) = rows(capture(tmp_path / "net.sqlite"))
    left, right, _, kind = row.bins
    bins = list(zip(left, right, kind, strict=True))
    at = {ns: [KINDS_OF_WORK[kind] for left, right, kind in bins if left <= ns < right]
          for ns in (50, 200, 600, 1050, 2200)}  # fmt: skip
    assert at == {50: ["compute"], 200: ["copy"], 600: [], 1050: ["compute"], 2200: ["compute"]}


def test_a_pause_of_the_profiler_is_not_drawn(tmp_path: Path) -> None:
    """Without steps each window of a capture has a row, from its first start to its last end."""
    shown = rows(nsys_db(tmp_path / "net.sqlite", TWO_WINDOWS))
    assert [(row.recording, row.length_ns) for row in shown] == [(0, 250), (1, 400)]


def test_devices_of_one_name_have_rows_of_their_own(tmp_path: Path) -> None:
    """Process 7 on GPU 0 of two hosts."""
    work = [Work(at=(1000, 1250), call=(900, 910), pid=7)]
    sums, steps = cut(nsys_db(tmp_path / "net.sqlite", work))
    both = figures.strip(merge_sums(sums, sums).shown(steps))
    assert both["names"] == ["GPU 0, process 7: all", "GPU 0, process 7 (2): all"]
