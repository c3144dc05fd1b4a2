"""Launches that have a kernel in a complete capture."""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pyprof import schema
from pyprof.readers.kernel_launches import kernel_launches, none_recorded, outermost
from tests.known import known


def _calls(*names: str) -> pa.Table:
    """Calls of five nanoseconds, ten apart, on one thread."""
    start = [10 * each for each in range(len(names))]
    columns = {
        "start": start,
        "end": [each + 5 for each in start],
        "thread": [0] * len(names),
        "corr": [*range(1, len(names) + 1)],
        "name": [*names],
    }
    return schema.table(schema.CALLS, columns)


def test_a_capture_without_launches_lost_none() -> None:
    assert none_recorded(_calls("cudaMemcpyAsync"), np.zeros(1, np.int64)) is None
    lost = known(none_recorded(_calls("cudaLaunchKernel"), np.zeros(1, np.int64)))
    assert "kernels were launched (1)" in lost


LAUNCH, BEGIN, END = "cudaLaunchKernel", "cudaStreamBeginCapture", "cudaStreamEndCapture"


@given(st.lists(st.tuples(st.sampled_from([LAUNCH, BEGIN, END]), st.integers(0, 1))))
def test_launches_while_a_graph_is_captured_have_no_kernel(
    calls: Sequence[tuple[str, int]],
) -> None:
    """Captures of one process may lie in one another; the first may begin before the file."""
    runs = []
    for process in (0, 1):
        own = [at for at, (_, of) in enumerate(calls) if of == process]
        change = [{BEGIN: 1, END: -1}.get(calls[at][0], 0) for at in own]
        depth = [*accumulate(change, initial=0)]
        before = -min(depth)
        runs += [
            at
            for at, within in zip(own, depth[1:], strict=True)
            if calls[at][0] == LAUNCH and within + before == 0
        ]
    found = kernel_launches(
        _calls(*(name for name, _ in calls)), np.array([of for _, of in calls], np.int64)
    )
    assert found.tolist() == sorted(runs)


spans = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 20), st.integers(1, 10)), min_size=1, unique=True
)


@given(spans)
def test_launches_share_a_number_with_those_around_them(
    spans: Sequence[tuple[int, int, int]],
) -> None:
    calls = schema.table(
        schema.CALLS,
        {
            "thread": [thread for thread, _, _ in spans],
            "start": [start for _, start, _ in spans],
            "end": [start + duration for _, start, duration in spans],
        },
    )
    number = outermost(calls, np.arange(len(spans)))
    groups: dict[int, list[int]] = {}
    end = 0
    group = -1
    thread_before = -1
    for at in sorted(range(len(spans)), key=lambda i: (spans[i][:2], -spans[i][2])):
        thread, start, duration = spans[at]
        if thread != thread_before or start >= end:
            group, end = group + 1, start + duration
        end, thread_before = max(end, start + duration), thread
        groups.setdefault(group, []).append(at)
    found = {frozenset(np.flatnonzero(number == each).tolist()) for each in np.unique(number)}
    assert found == {frozenset(each) for each in groups.values()}
