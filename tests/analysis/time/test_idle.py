"""Causes of idle time on the GPU."""

from dataclasses import replace
from typing import Any

import pytest

from pyprof import schema
from pyprof.analysis.time.timeline import timeline
from pyprof.arrays import MISSING
from tests.analysis.captures import US, Api, Work, capture, records
from tests.known import known

BEFORE = Work((0, 100 * US), (0, 5 * US))
"""Work after which the GPU idles."""


def _idle(late: Work, *api: Api, with_capture: bool = True) -> dict[str, int]:
    net = capture([BEFORE, late], api)
    (device,) = known(timeline(records(net), net if with_capture else None)).devices
    return {cause: held.total // US for cause, held in device.idle.items() if held.total}


def _launched(begin: int, end: int, called: int, returned: int, **more: Any) -> Work:  # noqa: ANN401 - of Work
    return Work((begin * US, end * US), (called * US, returned * US), **more)


def _late(begin: int) -> Work:
    """Launch work `begin` us after the start; it runs 10 us after its call began."""
    return _launched(begin + 10, begin + 20, begin, begin + 5)


CASES: dict[str, tuple[list[Work | Api], dict[str, int]]] = {
    "queued before the gap: the GPU's own delay": (
        [_launched(130, 140, 50, 60)], {"queue": 30}),
    "launched late, after a short pause: launches too slow": (
        [_late(150), Api("cudaLaunchKernel", (95 * US, 99 * US))], {"launch": 55, "queue": 5}),
    "launched late, after a long pause: the host did something else": (
        [_late(500)], {"host": 400, "launch": 5, "queue": 5}),
    "while the host waited, and until it had caught up": (
        [_late(160), Api("cudaStreamSynchronize", (20 * US, 130 * US))],
        {"sync": 60, "launch": 5, "queue": 5}),
    "while the host copied": (
        [_late(160), Api("cudaMemcpy", (20 * US, 155 * US))],
        {"copy": 55, "launch": 10, "queue": 5}),
    "while the host allocated": (
        [_late(160), Api("cudaMalloc", (101 * US, 159 * US))],
        {"alloc": 58, "launch": 7, "queue": 5}),
    "while the host loaded kernels": (
        [_launched(3000, 3010, 101, 2990)], {"load": 2889, "launch": 1, "queue": 10}),
    "launched in time, and began late: the GPU's own delay": (
        [_launched(600, 610, 101, 106)], {"launch": 6, "queue": 494}),
    "held up in the copy that ended the gap: no kernel is loaded": (
        [_launched(2000, 3010, 101, 3000, kind=schema.MEMCPY, api="cudaMemcpyAsync")],
        {"copy": 1899, "launch": 1}),
    "held up in a copy before": (
        [_late(3000), Api("cudaMemcpyAsync", (101 * US, 2995 * US))],
        {"copy": 2894, "launch": 11, "queue": 5}),
    "a graph's launch took long: its kernels were loaded before": (
        [_launched(1710, 1720, 101, 1701, api="cudaGraphLaunch")], {"launch": 1601, "queue": 9}),
    "another graph's launch took long": (
        [_late(2000), Api("cudaGraphLaunch", (101 * US, 1995 * US))],
        {"launch": 1905, "queue": 5}),
    "a launch that waited for its own kernel, which is long": (
        [_launched(110, 4990, 101, 5000)], {"launch": 10}),
    "a fill's launch took long": (
        [_launched(1710, 1720, 101, 1701, kind=schema.MEMSET, api="cudaMemsetAsync")],
        {"launch": 1601, "queue": 9}),
    "a launch that is not in the capture": ([Work((130 * US, 140 * US))], {"unknown": 30}),
    "a launch that seems later than its work: clocks differ": (
        [_launched(130, 140, 135, 138)], {"launch": 30}),
}  # fmt: skip


@pytest.mark.parametrize(("events", "expected"), CASES.values(), ids=CASES)
def test_each_gap_has_its_cause(events: list[Work | Api], expected: dict[str, int]) -> None:
    """Of known length, in us, by the calls of the host."""
    (late,) = (event for event in events if isinstance(event, Work))
    assert _idle(late, *(event for event in events if isinstance(event, Api))) == expected


@pytest.mark.parametrize(
    ("late", "expected"),
    [(work[0], expected) for work, expected in CASES.values() if len(work) == 1],
    ids=[name for name, (work, _) in CASES.items() if len(work) == 1],
)
def test_records_give_the_same_causes_for_launching_calls(
    late: Work, expected: dict[str, int]
) -> None:
    """Without the capture only calls that launched work are known."""
    assert _idle(late, with_capture=False) == expected


@pytest.mark.parametrize(
    ("pid", "late_on", "expected"),
    [(1, 0, {"queue": 40, "peer": 60}), (2, 0, {"queue": 100}), (1, MISSING, {"queue": 100})],
    ids=["of the process", "of another process", "maybe the same GPU"],
)
def test_a_delay_while_another_gpu_works(pid: int, late_on: int, expected: dict[str, int]) -> None:
    other = Work((100 * US, 160 * US), (6 * US, 9 * US), device=1, pid=pid)
    late = _launched(200, 210, 50, 60, device=late_on)
    net = capture([replace(BEFORE, device=late_on), other, late], pids=2)
    device, _ = known(timeline(records(net), net)).devices
    assert {
        cause: held.total // US for cause, held in device.idle.items() if held.total
    } == expected
