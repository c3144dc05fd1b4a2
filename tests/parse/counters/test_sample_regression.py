"""Rates and states of kinds of work, recovered from samples of planted ones."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.arrays import Floats, Int64Array
from pyprof.parse.counters import sample_regression

INTERVAL_NS = 100_000
FIRST = 7_777


class Planted(NamedTuple):
    start: Int64Array
    end: Int64Array
    kind: Int64Array
    rate: Floats


def _planted(
    seed: int, kinds: int = 5, rows: int = 3000, mean_ns: float = 20_000, streams: int = 1
) -> Planted:
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, kinds, rows)
    usual = rng.exponential(mean_ns, kinds) + 2_000
    length = (usual[kind] * rng.uniform(0.8, 1.2, rows)).astype(np.int64)
    gap = rng.integers(0, 10_000, rows)
    end = np.empty(rows, np.int64)
    for stream in range(streams):
        own = slice(stream, rows, streams)
        end[own] = FIRST + np.cumsum(length[own] + gap[own])
    return Planted(end - length, end, kind, rng.uniform(0, 100, kinds))


def _sampled(work: Planted, rates: Floats, rng: np.random.Generator | None = None) -> Floats:
    """Average over intervals by brute force: on a grid so fine that work hardly straddles it."""
    times = _times(work)
    values = np.zeros(len(times))
    for start, end, rate in zip(work.start, work.end, rates, strict=True):
        first, last = np.searchsorted(times, [start, end], "right")
        for sample in range(first, min(last + 1, len(times))):
            begins = times[sample] - INTERVAL_NS
            overlap = min(end, times[sample]) - max(start, begins)
            values[sample] += rate * max(overlap, 0) / INTERVAL_NS
    return values if rng is None else np.rint(values + rng.normal(0, 0.5, len(values)))


def _times(work: Planted) -> Int64Array:
    return np.arange(INTERVAL_NS, int(work.end.max()) + INTERVAL_NS, INTERVAL_NS)


def _estimate(
    work: Planted, values: Floats, *, whole_numbers: bool = False
) -> sample_regression.Estimate:
    samples = sample_regression.samples(_times(work), values)
    kinds = len(work.rate)
    shares = sample_regression.shares(samples, work.start, work.end, work.kind, kinds)
    return sample_regression.rates(samples.value, shares, whole_numbers=whole_numbers)


@pytest.mark.long
@given(st.integers(0, 1 << 30), st.integers(1, 3))
def test_short_kernels_are_separated(seed: int, streams: int) -> None:
    work = _planted(seed, streams=streams)
    estimate = _estimate(work, _sampled(work, work.rate[work.kind]))
    told = np.isfinite(estimate.value)
    assert told.all()
    assert estimate.value[told] == pytest.approx(work.rate[told], abs=1e-6)


@pytest.mark.parametrize("kinds", [3, 400])
@pytest.mark.parametrize("streams", [1, 3])
def test_both_ways_to_sum_products_agree(
    kinds: int, streams: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = _planted(kinds, kinds, rows=900, streams=streams)
    values = _sampled(work, work.rate[work.kind], np.random.default_rng(1))
    estimates = []
    for pair, at_once in ((1 << 40, 1 << 21), (0, 1 << 21), (0, 50)):
        monkeypatch.setattr(sample_regression, "_PAIR", pair)
        monkeypatch.setattr(sample_regression, "_AT_ONCE", at_once)
        estimates.append(_estimate(work, values))
    for estimate in estimates[1:]:
        for ours, theirs in zip(estimate, estimates[0], strict=True):
            assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-9, nan_ok=True)


@pytest.mark.slow
@pytest.mark.parametrize("streams", [1, 2])
def test_errors_are_standard_errors(streams: int) -> None:
    """Calls differ and values are rounded: about 68 % are within one error, nearly all in three."""
    within = []
    for seed in range(20):
        work = _planted(seed, rows=1500, streams=streams)
        rng = np.random.default_rng(seed)
        rates = work.rate[work.kind] * rng.normal(1, 0.1, len(work.kind))
        estimate = _estimate(work, _sampled(work, rates, rng), whole_numbers=True)
        kinds = np.bincount(work.kind, work.end - work.start, len(work.rate))
        mean = np.bincount(work.kind, (work.end - work.start) * rates, len(work.rate)) / kinds
        within += [*(np.abs(estimate.value - mean) / estimate.error)[np.isfinite(estimate.value)]]
    errors = np.array(within)
    assert len(errors) > 80
    assert (errors < 1).mean() > 0.6
    assert (errors < 3).mean() > 0.98


def test_long_kernels_have_the_mean_of_their_samples() -> None:
    work = _planted(3, rows=60, mean_ns=3_000_000)
    estimate = _estimate(work, _sampled(work, work.rate[work.kind]))
    assert estimate.value == pytest.approx(work.rate, abs=1e-6)


def test_kinds_in_too_few_samples_have_no_estimate() -> None:
    work = _planted(5, rows=400)
    kind = work.kind.copy()
    kind[kind == 0] = 1
    kind[7] = 0
    work = work._replace(kind=kind)
    estimate = _estimate(work, _sampled(work, work.rate[kind]))
    assert np.isnan(estimate.value[0])
    assert estimate.samples[0] < sample_regression.MIN_INTERVALS
    assert np.isfinite(estimate.value[1:4]).all()


def test_kinds_that_always_run_together_have_no_estimate() -> None:
    """Only the sum of the two kernels is known."""
    one = _planted(9, kinds=3, rows=900)
    both = Planted(
        np.concatenate([one.start, one.start[one.kind == 0]]),
        np.concatenate([one.end, one.end[one.kind == 0]]),
        np.concatenate([one.kind, np.full((one.kind == 0).sum(), 3)]),
        np.append(one.rate, 10.0),
    )
    estimate = _estimate(both, _sampled(both, both.rate[both.kind]))
    assert np.isnan(estimate.value[[0, 3]]).all()
    assert estimate.value[1:3] == pytest.approx(both.rate[1:3], abs=1e-6)


def test_idle_time_has_a_rate_of_its_own() -> None:
    work = _planted(11)
    idle = Planted(work.end[:-1], work.start[1:], work.kind[1:], work.rate)
    background = _sampled(idle, np.full(len(idle.start), 5.0))
    values = _sampled(work, work.rate[work.kind])
    values[: len(background)] += background
    samples = sample_regression.samples(_times(work), values)
    inside = samples.end < work.end[-1] - INTERVAL_NS
    kept = sample_regression.Samples(*(column[inside] for column in samples))
    shares = sample_regression.shares(kept, work.start, work.end, work.kind, len(work.rate))
    estimate = sample_regression.rates(kept.value, shares, whole_numbers=False)
    assert estimate.value == pytest.approx(work.rate, abs=1e-6)


def test_states_are_averaged() -> None:
    """Each kind has the mean clock that it saw: a slow half of the run lowers both alike."""
    work = _planted(13, kinds=2)
    times = _times(work)
    clock = np.where(times < times.mean(), 1400.0, 1000.0)
    samples = sample_regression.samples(times, clock)
    shares = sample_regression.shares(samples, work.start, work.end, work.kind, 2)
    estimate = sample_regression.states(samples.value, shares)
    for kind in range(2):
        own = work.kind == kind
        length = (work.end - work.start)[own]
        expected = np.average(
            np.where(work.end[own] < times.mean(), 1400.0, 1000.0), weights=length
        )
        assert abs(estimate.value[kind] - expected) < 3 * estimate.error[kind]


def test_pauses_are_not_samples() -> None:
    samples = sample_regression.samples(np.array([0, 100, 200, 5000, 5100]), np.arange(5.0))
    assert samples.start.tolist() == [0, 100, 4900, 5000]
    assert samples.value.tolist() == [1, 2, 3, 4]


def test_one_sample_or_no_time_is_not_a_measurement() -> None:
    """One sample has no length; none, no time."""
    for count in range(2):
        assert not len(sample_regression.samples(np.arange(count), np.zeros(count)).end)


def test_thousands_of_kinds_are_bounded() -> None:
    """The rarest share one column, for which there is no estimate."""
    work = _planted(17, kinds=700, rows=6000)
    estimate = _estimate(work, _sampled(work, work.rate[work.kind]))
    assert np.isfinite(estimate.value).sum() <= sample_regression._MAX_KINDS


@pytest.mark.parametrize(
    ("levels", "expected"),
    [([(200, 50)], [0]), ([(200, 50), (350, 7)], [0, 50]), ([(200, 5), (350, 4)], [0]),
     ([(200, 5), (350, 5)], [0, 5]),
     ([(200, 30), (350, 30), (200, 30)], [0, 30, 60]), ([(200, 50), (202, 50)], [0]), ([], [0])],
)  # fmt: skip
def test_phases_begin_where_the_level_changes(
    levels: list[tuple[float, int]], expected: list[int]
) -> None:
    """For at least five samples, and by more than noise and 2 %."""
    rng = np.random.default_rng(3)
    parts = [rng.normal(watts, 1.0, count) for watts, count in levels]
    assert sample_regression.phases(np.concatenate([np.zeros(0), *parts])).tolist() == expected


def test_phases_are_few() -> None:
    values = np.repeat(np.arange(1000) % 2 * 100 + 100.0, 10)
    assert len(sample_regression.phases(values)) <= 64
    assert sample_regression.phases(np.full(100, 0.0)).tolist() == [0]
