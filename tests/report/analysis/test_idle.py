"""Why the GPU idled: each cause where there is evidence of it, for as long as there is."""

from __future__ import annotations

import pytest

from pyprof.report.analysis.timeline import timeline
from tests.report.captures import US, Api, Work, capture, records

BEFORE = Work((0, 100 * US), (0, 5 * US))
"""Work after which the GPU idles."""


def _idle(late: Work, *api: Api) -> dict[str, int]:
    net = capture([BEFORE, late], api)
    found = timeline(records(net), net)
    assert found is not None
    (device,) = found.devices
    return {cause: held.total // US for cause, held in device.idle.items() if held.total}


def _late(begin: int, length: int = 5) -> Work:
    """Launch work `begin` us after the start; it runs 10 us after its call began."""
    called = begin * US
    return Work((called + 10 * US, called + 20 * US), (called, called + length * US))


CASES = {
    "queued before the gap: the GPU's own delay": (
        [Work((130 * US, 140 * US), (50 * US, 60 * US))],
        {"queue": 30},
    ),
    "launched late, after a short pause: launches too slow": (
        [_late(150), Api("cudaLaunchKernel", (95 * US, 99 * US))],
        {"launch": 60},
    ),
    "launched late, after a long pause: the host did something else": (
        [_late(500)],
        {"host": 400, "launch": 10},
    ),
    "while the host waited, and until it had caught up": (
        [_late(160), Api("cudaStreamSynchronize", (20 * US, 130 * US))],
        {"sync": 60, "launch": 10},
    ),
    "while the host copied": (
        [_late(160), Api("cudaMemcpy", (20 * US, 155 * US))],
        {"copy": 55, "launch": 15},
    ),
    "while the host allocated": (
        [_late(160), Api("cudaMalloc", (101 * US, 159 * US))],
        {"alloc": 58, "launch": 12},
    ),
    "while the host loaded kernels": (
        [Work((3000 * US, 3010 * US), (101 * US, 2990 * US))],
        {"load": 2899, "launch": 1},
    ),
    "a launch that is not in the capture": ([Work((130 * US, 140 * US))], {"unknown": 30}),
    "a launch that seems later than its work: clocks differ": (
        [Work((130 * US, 140 * US), (135 * US, 138 * US))],
        {"launch": 30},
    ),
}


@pytest.mark.parametrize(("events", "expected"), CASES.values(), ids=CASES.keys())
def test_cause(events: list[Work | Api], expected: dict[str, int]) -> None:
    """A gap of known length has the causes, in us, that the host's calls tell."""
    (late,) = (event for event in events if isinstance(event, Work))
    assert _idle(late, *(event for event in events if isinstance(event, Api))) == expected
