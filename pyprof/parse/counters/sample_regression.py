"""What each kind of work did, from samples that each average over several pieces of work.

A sample is the mean over the time since the one before it. For a rate (a share of the peak), that
is the sum of what each kind of work contributed while it ran: with the shares of the sample's time
as coefficients, least squares over all samples give the rates, and the residuals their errors. A
state (clock, power) is the same for all work at that time: its mean is weighted by those shares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyprof.arrays import Floats, Int64Array, Mask

_GAP = 3.0
"""A gap of more intervals means that sampling was paused: the sample after it covers one."""
MIN_INTERVALS, MIN_SAMPLES = 3.0, 5
"""What an estimate of a kind of work needs: its time in samples, in intervals, and their number."""
_MAX_KINDS = 256
"""Maximum number of kinds of work, those with most time; all others are one more kind."""
_AT_ONCE = 1 << 21
"""Elements of a matrix of shares, or pairs of shares, that are processed at once."""
_PAIR = 100
"""Cost of a pair of shares, in multiplications of a matrix product."""
_TOLERANCE = 1e-9
"""Relative: a share or an eigenvalue that is this close to its bound differs by rounding only."""
_ESTIMABLE = 1e-3
"""With a larger part in directions that samples do not show, a column depends on others."""
_MAX_LEVERAGE = 0.99
"""Keeps errors finite: a sample that alone determines a column has a leverage of 1."""
_ROUNDING_ERROR = math.sqrt(1 / 12)
"""Standard deviation of the error of rounding to whole numbers."""


class Estimate(NamedTuple):
    """By kind of work; NaN where the samples do not determine it."""

    value: Floats
    error: Floats
    """Standard error."""
    samples: Floats
    """Time in samples, in intervals."""


class Samples(NamedTuple):
    """Samples of one metric in the order of their times."""

    start: Int64Array
    end: Int64Array
    value: Floats


def samples(time: Int64Array, value: Floats) -> Samples:
    """Return the interval that each sample covers, without the first one, which is unknown."""
    lengths = np.diff(time)
    usual = float(np.median(lengths)) if len(lengths) else 0.0
    lengths = np.where(lengths > _GAP * usual, round(usual), lengths)
    end = time[1:]
    return Samples(end - lengths, end, value[1:])


@dataclass(frozen=True)
class Shares:
    """The share of each sample's time that each kind of work took; by sample."""

    sample: Int64Array
    kind: Int64Array
    share: Floats
    busy: Floats
    """Share of each sample's time in which there was any work."""
    count: int
    """Number of kinds."""

    @cached_property
    def system(self) -> _System:
        """The normal equations of the shares, for all metrics that were sampled at once."""
        return _System(self)


def shares(
    taken: Samples, start: Int64Array, end: Int64Array, kind: Int64Array, count: int
) -> Shares:
    """Intersect samples with work, whose kinds are numbers below `count`; -1 is not a kind."""
    rows = np.flatnonzero((end > start) & (kind >= 0))
    first = np.searchsorted(taken.end, start[rows], "right")
    last = np.searchsorted(taken.start, end[rows], "left")
    number = np.maximum(last - first, 0)
    row = np.repeat(rows, number)
    sample = np.arange(len(row)) - np.repeat(np.cumsum(number) - number, number)
    sample += np.repeat(first, number)
    length = np.minimum(end[row], taken.end[sample]) - np.maximum(start[row], taken.start[sample])
    ran = length > 0
    key, index = np.unique(sample[ran] * count + kind[row[ran]], return_inverse=True)
    in_sample = np.bincount(index, length[ran], len(key))
    length_ns = (taken.end - taken.start).astype(np.float64)
    return Shares(
        key // count, key % count, in_sample / length_ns[key // count],
        _busy(taken, start[rows], end[rows]), count,
    )  # fmt: skip


def _busy(taken: Samples, start: Int64Array, end: Int64Array) -> Floats:
    """Share of each sample's interval in which anything ran."""
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(end[order])
    before = np.append([0], reach[:-1])[: len(start)]
    edges = np.maximum(start, before)
    worked = np.append([0], np.cumsum(np.maximum(reach - edges, 0)))

    def until(time: Int64Array) -> Floats:
        index = np.searchsorted(edges, time, "right")
        over = np.append([0], reach)[index] - time
        return worked[index] - np.maximum(over, 0)

    length_ns = (taken.end - taken.start).astype(np.float64)
    return np.clip((until(taken.end) - until(taken.start)) / length_ns, 0, 1)


def states(values: Floats, of_samples: Shares) -> Estimate:
    """Estimate the mean of a state while each kind of work ran."""
    kind, weight = of_samples.kind, of_samples.share
    seen = values[of_samples.sample]
    total, squares = (np.bincount(kind, w, of_samples.count) for w in (weight, weight**2))
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.bincount(kind, weight * seen, of_samples.count) / total
        spread = np.bincount(kind, weight * (seen - mean[kind]) ** 2, of_samples.count) / total
        several = total**2 / squares
        error = np.sqrt(spread / np.maximum(several - 1, 0))
    return _if_enough(mean, error, of_samples)


_SURE = 40.0
"""A change of level must explain this multiple of the variance from sample to sample."""
_MEDIAN_OFF = 0.6745
"""Half of normal noise is closer to the mean than this, in standard deviations."""
_MIN_CHANGE = 0.02
"""Minimum relative change of level."""
_MAX_PHASES = 64
"""Maximum number of phases; later changes of level are not looked for."""


def phases(values: Floats) -> Int64Array:
    """Return the indices at which samples of a state change their level; the first is 0.

    Each phase is split where that explains most of the variance, until no split explains enough.
    """
    starts, left = [0], [(0, len(values))]
    while left and len(starts) < _MAX_PHASES:
        first, last = left.pop(0)
        cut = _level_change(values[first:last])
        if cut is not None:
            starts.append(first + cut)
            left += [(first, first + cut), (first + cut, last)]
    return np.array(sorted(starts), np.int64)


def _level_change(values: Floats) -> int | None:
    """Return the index of the most significant change of level; None if none is significant."""
    count, least = len(values), MIN_SAMPLES
    if count < 2 * least:
        return None
    before = np.arange(least, count - least + 1)
    sums = np.cumsum(values)
    low, high = sums[before - 1] / before, (sums[-1] - sums[before - 1]) / (count - before)
    explained = before * (count - before) / count * (high - low) ** 2
    best = int(explained.argmax())
    # differences of neighbours have twice the variance of the values
    off = float(np.median(np.abs(np.diff(values)))) / _MEDIAN_OFF
    is_sure = explained[best] > _SURE * off**2 / 2
    is_worth = abs(high[best] - low[best]) > _MIN_CHANGE * max(low[best], high[best])
    return int(before[best]) if is_sure and is_worth else None


LONG_INTERVALS = 10
"""Work that lasts for this many intervals, alone, is measured by its own samples."""


def long_rows(taken: Samples, start: Int64Array, end: Int64Array) -> Int64Array:
    """Find the rows that last for many intervals, and beside which nothing else ran."""
    usual = float(np.median(taken.end - taken.start))
    order = np.argsort(start, kind="stable")
    reach = np.maximum.accumulate(end[order])
    before = np.append([np.iinfo(np.int64).min], reach[:-1])[: len(order)]
    after = np.append(start[order][1:], [np.iinfo(np.int64).max])[: len(order)]
    alone = (start[order] >= before) & (end[order] <= after)
    lasting = (end - start)[order] >= LONG_INTERVALS * usual
    return np.sort(order[alone & lasting])


def within(taken: Samples, start: Int64Array, end: Int64Array, *, whole_numbers: bool) -> Estimate:
    """Average, for each row that ran alone, the samples that lie entirely within it."""
    first = np.searchsorted(taken.start, start, "left")
    last = np.maximum(np.searchsorted(taken.end, end, "right"), first)
    number = (last - first).astype(np.float64)
    centred = taken.value - taken.value.mean()
    sums, squares = (np.append([0.0], np.cumsum(part)) for part in (centred, centred**2))
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (sums[last] - sums[first]) / number
        spread = np.maximum((squares[last] - squares[first]) / number - mean**2, 0.0)
        error = np.sqrt(spread / (number - 1))
    if whole_numbers:
        error = np.hypot(error, _ROUNDING_ERROR)
    enough = number >= MIN_SAMPLES
    value, error = (np.where(enough, part, math.nan) for part in (mean + taken.value.mean(), error))
    return Estimate(value, error, number)


def rates(values: Floats, of_samples: Shares, *, whole_numbers: bool) -> Estimate:
    """Estimate what each kind of work contributed while it ran.

    `whole_numbers`: the values were rounded to integers, an error that residuals do not show.
    """
    system = of_samples.system
    solution, error = system.solve(values)
    if whole_numbers:
        error = np.hypot(error, _ROUNDING_ERROR)
    kinds = system.of_kinds
    value, errors = (np.full(of_samples.count, math.nan) for _ in range(2))
    value[kinds], errors[kinds] = solution, error
    return _if_enough(value, errors, of_samples)


def _if_enough(value: Floats, error: Floats, of_samples: Shares) -> Estimate:
    """Set estimates to NaN if samples are too few."""
    weight = np.bincount(of_samples.kind, of_samples.share, of_samples.count).astype(np.float64)
    number = np.bincount(of_samples.kind, minlength=of_samples.count)
    enough = (weight >= MIN_INTERVALS) & (number >= MIN_SAMPLES)
    enough &= np.isfinite(value) & np.isfinite(error)
    return Estimate(np.where(enough, value, math.nan), np.where(enough, error, math.nan), weight)


class _System:
    """The normal equations of all samples: a column per kind, one for the rest, one for idling."""

    def __init__(self, of_samples: Shares) -> None:
        weight = np.bincount(of_samples.kind, of_samples.share, of_samples.count)
        used = np.flatnonzero(weight > 0)
        self.of_kinds = np.sort(used[np.argsort(-weight[used], kind="stable")][:_MAX_KINDS])
        rest, idle = len(self.of_kinds), len(self.of_kinds) + 1
        self.size = idle + 1
        index = np.full(of_samples.count, rest)
        index[self.of_kinds] = np.arange(rest)
        still = np.flatnonzero(of_samples.busy < 1 - _TOLERANCE)
        sample = np.concatenate([of_samples.sample, still])
        column = np.concatenate([index[of_samples.kind], np.full(len(still), idle)])
        share = np.concatenate([of_samples.share, 1 - of_samples.busy[still]])
        order = np.argsort(sample, kind="stable")
        self.sample, self.column, self.share = sample[order], column[order], share[order]
        self.samples = len(of_samples.busy)
        number = np.bincount(sample, minlength=self.samples)
        self.sparse = int((number**2).sum()) * _PAIR < self.samples * self.size**2
        self.inverse, self.dependent = _inverse(self._products(np.ones(self.samples)))
        self.leverage = np.minimum(self._leverage(), _MAX_LEVERAGE)

    def solve(self, values: Floats) -> tuple[Floats, Floats]:
        """Rate and standard error of each kind; the error is NaN if others always ran beside it."""
        right = np.bincount(self.column, self.share * values[self.sample], self.size)
        solution = self.inverse @ right
        fitted = np.bincount(self.sample, self.share * solution[self.column], self.samples)
        # Samples that have much influence hide their own errors (HC3).
        squares = ((values - fitted) / (1 - self.leverage)) ** 2
        covariance = self.inverse @ self._products(squares) @ self.inverse
        error = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        error[self.dependent] = math.nan
        kinds = slice(0, len(self.of_kinds))
        return solution[kinds], error[kinds]

    def _blocks(self) -> Iterator[tuple[int, Floats]]:
        """The shares of some thousand samples at a time as a matrix; the index of the first."""
        rows = max(_AT_ONCE // self.size, 1)
        bounds = np.searchsorted(self.sample, np.arange(0, self.samples + rows, rows))
        for block, (low, high) in enumerate(pairwise(bounds.tolist())):
            first = block * rows
            key = (self.sample[low:high] - first) * self.size + self.column[low:high]
            count = min(rows, self.samples - first)
            flat = np.bincount(key, self.share[low:high], count * self.size)
            yield first, flat.astype(np.float64, copy=False).reshape(count, self.size)

    def _pairs(self) -> Iterator[tuple[Int64Array, Int64Array]]:
        """All pairs of a sample's shares, by index, for many samples at a time."""
        number = np.bincount(self.sample, minlength=self.samples)
        first = np.append([0], np.cumsum(number))
        pairs = np.append([0], np.cumsum(number**2))
        bounds = np.searchsorted(pairs, np.arange(0, pairs[-1] + _AT_ONCE, _AT_ONCE), "right") - 1
        for low, high in pairwise(np.unique(np.append(bounds, self.samples)).tolist()):
            indices = np.arange(first[low], first[high])
            others = number[self.sample[indices]]
            one = np.repeat(indices, others)
            start = np.cumsum(others) - others - first[self.sample[indices]]
            yield one, np.arange(len(one)) - np.repeat(start, others)

    def _products(self, weight: Floats) -> Floats:
        """Add up the products of the shares of all pairs of columns, each sample weighted."""
        products = np.zeros((self.size, self.size))
        if self.sparse:
            for one, other in self._pairs():
                column = self.column[one] * self.size + self.column[other]
                both = self.share[one] * self.share[other] * weight[self.sample[one]]
                products += np.bincount(column, both, self.size**2).reshape(products.shape)
            return products
        for first, block in self._blocks():
            weighted = block * np.sqrt(weight[first : first + len(block), None])
            products += weighted.T @ weighted  # by itself, which takes half the time
        return products

    def _leverage(self) -> Floats:
        if self.sparse:
            leverage = np.zeros(self.samples)
            for one, other in self._pairs():
                both = self.share[one] * self.share[other]
                both *= self.inverse[self.column[one], self.column[other]]
                leverage += np.bincount(self.sample[one], both, self.samples)
            return leverage
        parts = [((block @ self.inverse) * block).sum(axis=1) for _, block in self._blocks()]
        return np.concatenate([np.zeros(0), *parts])


def _inverse(normal: Floats) -> tuple[Floats, Mask]:
    """Invert; also return which columns depend on others and so cannot be determined alone."""
    size = np.sqrt(np.maximum(np.diag(normal), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(normal / np.outer(size, size))
    good = values > _TOLERANCE * len(values) * max(float(values.max(initial=0)), _TOLERANCE)
    kept = vectors[:, good]
    inverse = (kept / values[good]) @ kept.T / np.outer(size, size)
    lost = 1 - (kept**2).sum(axis=1)
    return inverse, lost > _ESTIMABLE
