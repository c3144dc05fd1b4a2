"""The roofline: worked examples, and unknown results from unknown inputs."""

from math import nan
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.gpu.roofline import LIMITS, rates, roofline

PEAK, BANDWIDTH = 1e15, 1e12  # 1 PFLOP/s, 1 TB/s: the ridge is at 1000 FLOP a byte
SM_COUNT = 100

number = st.just(nan) | st.just(0.0) | st.floats(min_value=1e-3, max_value=1e15)
peak = st.just(nan) | st.floats(min_value=1e-3, max_value=1e15)


def _one(
    flops: float, moved: float, ns: float, *, peaks: tuple[float, float] = (PEAK, BANDWIDTH),
    blocks: int = SM_COUNT, open_unit: bool = False,
) -> Any:  # noqa: ANN401 - the fields of a Roofline, each of one kernel  # fmt: skip
    arrays = (np.array([value]) for value in (flops, moved, ns, *peaks))
    found = roofline(*arrays, open_unit=np.array([open_unit]), idle=np.array([blocks < SM_COUNT]))
    one = {name: values[0] for name, values in found._asdict().items()}
    return SimpleNamespace(**one, bound=[*LIMITS, None][one.pop("limit")])


def _rates_of_one(flops: float, moved: float, ns: float) -> list[float]:
    return [float(rate[0]) for rate in rates(*(np.array([each]) for each in (flops, moved, ns)))]


def test_achieved_rates() -> None:
    """2e9 FLOPs and 1e6 bytes in 10 us are 2e14 FLOP/s, 1e11 bytes/s and 2000 FLOPs per byte."""
    assert _rates_of_one(2e9, 1e6, 10_000) == pytest.approx([2e14, 1e11, 2000])


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        ((nan, 1e6, 1000), (nan, 1e12, nan)),
        ((2e9, nan, 1000), (2e15, nan, nan)),
        ((2e9, 1e6, 0), (nan, nan, 2000)),
        ((2e9, 0, nan), (nan, nan, nan)),
    ],
)
def test_only_rates_that_need_an_unknown_value_are_unknown(
    work: tuple[float, float, float], expected: tuple[float, float, float]
) -> None:
    """A rate needs its cost and the time, an intensity both costs."""
    assert _rates_of_one(*work) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("work", "peaks"),
    [
        ((nan, 1e6, 1000), (PEAK, BANDWIDTH)),
        ((1e9, nan, 1000), (PEAK, BANDWIDTH)),
        ((1e9, 1e6, nan), (PEAK, BANDWIDTH)),
        ((1e9, 1e6, 0), (PEAK, BANDWIDTH)),
        ((1e9, 1e6, 1000), (nan, BANDWIDTH)),
        ((1e9, 1e6, 1000), (PEAK, nan)),
        ((0, 0, 10_000), (PEAK, BANDWIDTH)),
    ],
)
def test_an_unknown_share(work: tuple[float, float, float], peaks: tuple[float, float]) -> None:
    """A missing cost, time or needed peak makes share and bound unknown, never 0."""
    found = _one(*work, peaks=peaks)
    assert np.isnan(found.share)
    assert found.bound is None


def test_a_copy_needs_no_flop_peak() -> None:
    found = _one(0, 1e7, 20_000, peaks=(nan, BANDWIDTH))
    assert found.share == pytest.approx(0.5)
    assert found.bound == "memory"


def test_an_unknown_unit_matters_only_if_arithmetic_limits() -> None:
    """If memory takes longer with either peak, the share is known."""
    assert np.isnan(_one(1e10, 1e6, 20_000, open_unit=True).share)
    assert _one(1e9, 1e7, 40_000, open_unit=True).share == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("expected", "flops", "moved", "duration_ns", "blocks"),
    [
        ("compute", 1e10, 1e6, 20_000, 800),
        ("memory", 1e9, 1e7, 40_000, 800),
        # far from both roofs in 3 us: that is the launch
        ("latency", 1e6, 1e5, 3_000, 800),
        # 2 us, but at the roof: short and good
        ("memory", 1e6, 1.9e6, 2_000, 800),
        # 8 blocks on 100 SMs, far from the roofs
        ("latency", 1e9, 1e6, 40_000, 8),
        ("compute", 1e9, 1e5, 40_000, 800),
        # few blocks but at the roof
        ("compute", 3e10, 1e6, 40_000, 8),
    ],
)
def test_the_bound_is_the_nearer_roof(
    expected: str, flops: float, moved: float, duration_ns: float, blocks: int
) -> None:
    """Short or idle kernels far from both are latency-bound."""
    assert _one(flops, moved, duration_ns, blocks=blocks).bound == expected


@given(flops=number, moved=number, duration=number, peaks=st.tuples(peak, peak))
def test_known_together(
    flops: float, moved: float, duration: float, peaks: tuple[float, float]
) -> None:
    found = _one(flops, moved, duration, peaks=peaks)
    if not np.isnan(found.share):
        assert found.share > 0
        assert found.bound in LIMITS
        least = [work / rate for work, rate in zip((flops, moved), peaks, strict=True) if work]
        assert found.share * duration / 1e9 == pytest.approx(max(least))
