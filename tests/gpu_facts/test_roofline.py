"""Tests of the roofline: worked numbers, and None for whatever is not known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.gpu.roofline import achieved, bound, efficiency, least_ns

PEAK, BANDWIDTH = 1e15, 1e12  # 1 PFLOP/s, 1 TB/s: the ridge is at 1000 FLOP a byte

number = st.none() | st.just(0.0) | st.floats(min_value=1e-3, max_value=1e15)


def test_achieved_rates() -> None:
    """2e9 FLOP and 1e6 bytes in 10 us are 2e14 FLOP/s, 1e11 bytes/s and 2000 FLOP a byte."""
    assert achieved(2e9, 1e6, 10_000) == pytest.approx((2e14, 1e11, 2000))


def test_achieved_unknown() -> None:
    """What is not known stays None, alone."""
    assert achieved(None, 1e6, 1000) == (None, 1e12, None)
    assert achieved(2e9, None, 1000) == (2e15, None, None)
    assert achieved(2e9, 1e6, 0) == (None, None, 2000)
    assert achieved(2e9, 0, None) == (None, None, None)


@pytest.mark.parametrize(
    ("flops", "moved", "duration_ns", "share"),
    [
        # 1e10 / 1e15 s = 10 us of arithmetic, 1e6 / 1e12 s = 1 us of memory, took 20 us
        (1e10, 1e6, 20_000, 0.5),
        # 1 us of arithmetic, 10 us of memory, took 40 us
        (1e9, 1e7, 40_000, 0.25),
        # a copy: no FLOPs, 10 us of memory, took 12.5 us
        (0, 1e7, 12_500, 0.8),
    ],
)
def test_efficiency(flops: float, moved: float, duration_ns: float, share: float) -> None:
    """Efficiency is the larger of the two shares of peak."""
    found = efficiency(flops, moved, duration_ns, PEAK, BANDWIDTH)
    assert found is not None
    assert found.value == pytest.approx(share)
    assert not found.above_peak


def test_above_the_peak_is_flagged_not_clipped() -> None:
    """More than the peak is shown as it is: emulation and caches do that."""
    found = efficiency(2e10, 1e6, 10_000, PEAK, BANDWIDTH)
    assert found is not None
    assert found.value == pytest.approx(2.0)
    assert found.above_peak


@pytest.mark.parametrize(
    "arguments",
    [
        (None, 1e6, 1000, PEAK, BANDWIDTH),
        (1e9, None, 1000, PEAK, BANDWIDTH),
        (1e9, 1e6, None, PEAK, BANDWIDTH),
        (1e9, 1e6, 0, PEAK, BANDWIDTH),
        (1e9, 1e6, 1000, None, BANDWIDTH),
        (1e9, 1e6, 1000, PEAK, None),
        (0, 0, 1000, PEAK, BANDWIDTH),
        (1e9, 1e6, 1000, 0, BANDWIDTH),
    ],
)
def test_efficiency_unknown(arguments: tuple[float | None, ...]) -> None:
    """A missing cost, time or needed peak makes the efficiency unknown, never 0."""
    assert efficiency(*arguments) is None


def test_a_copy_needs_no_flop_peak() -> None:
    """Without FLOPs the arithmetic's peak does not matter."""
    found = efficiency(0, 1e7, 20_000, None, BANDWIDTH)
    assert found is not None
    assert found.value == pytest.approx(0.5)
    assert bound(0, 1e7, 20_000, None, BANDWIDTH) == "memory"


@pytest.mark.parametrize(
    ("expected", "flops", "moved", "duration_ns", "blocks"),
    [
        ("compute", 1e10, 1e6, 20_000, None),
        ("memory", 1e9, 1e7, 40_000, None),
        # far from both roofs in 3 us: that is the launch
        ("latency", 1e6, 1e5, 3_000, None),
        # 2 us, but at the roof: short and good
        ("memory", 1e6, 1.9e6, 2_000, None),
        # 8 blocks on 100 SMs, far from the roofs
        ("latency", 1e9, 1e6, 40_000, 8),
        ("compute", 1e9, 1e5, 40_000, 800),
        # few blocks but at the roof
        ("compute", 3e10, 1e6, 40_000, 8),
    ],
)
def test_bound(
    expected: str, flops: float, moved: float, duration_ns: float, blocks: int | None
) -> None:
    """Short or idle kernels far from the roofs are latency-bound; others by the nearer roof."""
    found = bound(flops, moved, duration_ns, PEAK, BANDWIDTH, blocks=blocks, sm_count=100)
    assert found == expected


@given(flops=number, moved=number, duration=number, peak=number, bandwidth=number)
def test_known_together(
    flops: float | None,
    moved: float | None,
    duration: float | None,
    peak: float | None,
    bandwidth: float | None,
) -> None:
    """An efficiency is positive, implies a bound, and is the share of the least time."""
    found = efficiency(flops, moved, duration, peak, bandwidth)
    if found is not None:
        assert found.value > 0
        assert bound(flops, moved, duration, peak, bandwidth) in {"compute", "memory", "latency"}
        least = least_ns(flops, moved, peak, bandwidth)
        assert least is not None
        assert duration is not None
        assert found.value * duration == pytest.approx(max(least))
