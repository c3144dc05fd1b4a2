"""Replaying a capture's order with other kernel times."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.analysis.time import host_api
from pyprof.analysis.whatif.replay import Recording, recording, replayed
from pyprof.parse import parse
from pyprof.parse.launches import launch_bounds
from tests.analysis.captures import US, Api, Work, capture


def _recorded(work: list[Work], *api: Api) -> Recording:
    net = capture(work, api)
    records = parse(net)
    found = recording(records, launch_bounds(records), host_api.calls(records, net), 1)
    assert found is not None
    return found


def _spans(recorded: Recording, factor: float) -> tuple[float, float]:
    """Return the span as recorded, and with kernels that take `factor` times as long, us."""
    start, end = replayed(
        recorded, ((recorded.end_ns - recorded.start_ns) * factor).astype(np.float64)
    )
    span = recorded.end_ns.max() - recorded.start_ns.min()
    return float(span) / US, float(end.max() - start.min()) / US


def queued(count: int) -> list[Work]:
    """Return kernels of 100 us that are launched long before they can begin."""
    return [Work(((20 + 100 * i) * US, (120 + 100 * i) * US), ((10 + i) * US, (11 + i) * US))
            for i in range(count)]  # fmt: skip


def launched_slowly(count: int) -> list[Work]:
    """Return kernels of 10 us, one launched every 100 us."""
    return [Work(((110 + 100 * i) * US, (120 + 100 * i) * US), ((100 + 100 * i) * US,
                 (101 + 100 * i) * US)) for i in range(count)]  # fmt: skip


@pytest.mark.parametrize(
    ("work", "expected_us"),
    [
        pytest.param(queued(10), 500, id="the GPU has work: all of it is won"),
        pytest.param(launched_slowly(10), 905, id="the host launches: only the last kernel is"),
    ],
)
def test_kernels_of_half_the_time(work: list[Work], expected_us: float) -> None:
    assert _spans(_recorded(work), 0.5)[1] == pytest.approx(expected_us, rel=0.01)


def test_the_host_continues_when_its_wait_ends() -> None:
    """A kernel of 100 us, a wait, 50 us of host work, twice: each saves 50 us."""
    work = [Work((20 * US, 120 * US), (10 * US, 12 * US)),
            Work((180 * US, 280 * US), (170 * US, 172 * US))]  # fmt: skip
    waits = Api("cudaDeviceSynchronize", (13 * US, 120 * US))
    recorded_us, half_us = _spans(_recorded(work, waits), 0.5)
    assert recorded_us == pytest.approx(260)
    assert half_us == pytest.approx(160)


def test_a_kernel_waits_for_another_stream() -> None:
    """It was launched early on a free stream, and began as the other stream ended."""
    first = Work((20 * US, 220 * US), (10 * US, 12 * US))
    second = Work((221 * US, 321 * US), (13 * US, 14 * US), stream=20)
    assert _spans(_recorded([first, second]), 0.5)[1] == pytest.approx(150, rel=0.02)


@given(st.lists(st.tuples(st.integers(1, 90), st.integers(0, 200)), min_size=1, max_size=30))
def test_an_unchanged_capture_takes_the_same_time(steps: list[tuple[int, int]]) -> None:
    """Kernels begin 10 us after their launch, or as the one before ends."""
    work, at, free = [], 0, 0
    for length, pause in steps:
        at += pause + 2
        begin = max(at + 10, free)
        free = begin + length
        work.append(Work((begin * US, free * US), (at * US, (at + 1) * US)))
    recorded_us, same_us = _spans(_recorded(work), 1)
    assert same_us == pytest.approx(recorded_us)


def test_without_launches_there_is_no_replay() -> None:
    net = capture([Work((20 * US, 120 * US), None)])
    records = parse(net)
    bounds = np.full(1, -1), np.full(1, -1)
    assert recording(records, bounds, host_api.calls(records, net), 1) is None
