"""Each piece of GPU work finds its API call, by process and correlation id."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pyprof import schema
from pyprof.arrays import MISSING
from pyprof.parse.launches import Chains, first, last, launches, offsets
from pyprof.parse.steps.profiler_windows import RecordingWindows

IDS = st.none() | st.integers(0, 4) | st.sampled_from([7, 1 << 39])
CALLS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 1), IDS))
"""(start, length, thread, correlation id): ids recur, and some are far from the others."""
WORK = st.lists(st.tuples(st.sampled_from([None, 1, 2, 3]), IDS))
"""(process, correlation id)."""


@given(calls=CALLS, work=WORK, pids=st.sampled_from([(1, 1), (1, 2)]))
def test_work_is_launched_by_the_outermost_call_of_its_id(
    calls: list[tuple[int, int, int, int | None]],
    work: list[tuple[int | None, int | None]],
    pids: tuple[int, int],
) -> None:
    """In its process; of several calls with one id the first to begin, then the last to end."""
    capture = schema.Capture(
        "nsys",
        None,
        calls=schema.table(
            schema.CALLS,
            {
                "start": [start for start, *_ in calls],
                "end": [start + length for start, length, *_ in calls],
                "thread": [thread for *_, thread, _ in calls],
                "corr": [corr for *_, corr in calls],
            },
        ),
        threads=schema.table(schema.THREADS, {"pid": pids}),
    )
    activities = schema.table(
        schema.ACTIVITIES, {"pid": [pid for pid, _ in work], "corr": [corr for _, corr in work]}
    )
    launched = launches(capture, activities, RecordingWindows({})).tolist()
    expected = [
        min(
            (start, -length, row)
            for row, (start, length, thread, of_call) in [(-1, (9, 0, 0, None)), *enumerate(calls)]
            if row == MISSING or (corr is not None and (pids[thread], of_call) == (pid, corr))
        )[-1]
        for pid, corr in work
    ]
    assert launched == expected


@given(st.lists(st.lists(st.integers(0, 9), max_size=4)), st.sets(st.integers(0, 9)))
def test_first_and_last_are_the_outermost_and_the_innermost_that_are_wanted(
    lists: list[list[int]], wanted: set[int]
) -> None:
    chain = Chains(
        offsets(np.array([len(each) for each in lists], np.int64)),
        np.array([item for each in lists for item in each], np.int32),
    )
    mask = np.array([item in wanted for item in range(10)])
    left = [[item for item in each if item in wanted] for each in lists]
    assert first(chain).tolist() == [each[0] if each else MISSING for each in lists]
    assert last(chain).tolist() == [each[-1] if each else MISSING for each in lists]
    assert first(chain.within(mask)).tolist() == [each[0] if each else MISSING for each in left]
    assert last(chain.within(mask)).tolist() == [each[-1] if each else MISSING for each in left]
