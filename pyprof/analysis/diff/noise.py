"""Whether a change is more than noise: steps, or else ranks, are samples of what a step takes.

Welch's t interval of the difference of two means, because the runs differ in length and have few
samples: with 3 to 10 steps a bootstrap's percentiles are too narrow, while a t interval keeps its
level. It errs on the safe side: both runs are assumed to vary as much as the one that varies more,
since the other may just have had no slow step. Steps that resemble their neighbours count for less
(AR(1)); that is estimated from steps, and from means of two, four or more in a row, and the
estimate with most doubt counts, since slow drift under noise shows in means only. A rank's steps
wait for the other ranks', so ranks are samples only in captures of a single step. What differs from
run to run (clocks, temperature, placement) is in neither run's steps, and no test on them can find
it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from pyprof import student_t

if TYPE_CHECKING:
    from pyprof.arrays import Floats, Int64Array

LEVEL = 0.95
"""Confidence level of the intervals; a change is significant if p is below 1 - `LEVEL`."""
Unit: TypeAlias = Literal["steps", "ranks"]
STEPS: Literal["steps"] = "steps"
RANKS: Literal["ranks"] = "ranks"
"""What the samples are."""

_MAX_APART, _BATCHES = 64, 32
"""More samples than the first number are averaged in batches, at most the second number."""
_MIN_BATCHES = 8
"""Batches are joined in pairs as long as at least this many are left."""
FEW = 8
"""With fewer steps than this, only large changes stand out."""
_ALIKE_OF_FEW = 0.75
"""The assumed correlation of neighbours for fewer samples, which are too few to estimate it.

Of runs of 3 to 7 steps without any change, 3 to 4 % differ significantly if neighbours correlate by
0.9; changes by 10 to 16 standard deviations of a step are found (80 % of them).
"""
_SOME, _ALIKE_OF_SOME = 16, 0.65
"""The least correlation assumed for fewer samples than this, which underestimate it.

Of runs of 8 to 15 steps 1 to 4 % differ if neighbours correlate by 0.8 (6 to 8 % by 0.9); changes
by 3 to 6 standard deviations are found. From 16 on it is estimated: changes by 2 standard
deviations are found.
"""
_MAX_ALIKE, _MIN_EFFECTIVE, _MIN_FREEDOM = 0.99, 1.3, 1.0
"""Bounds that keep the variance finite where all samples resemble their neighbours: a change is
then in doubt, whatever its size."""
_MEDIAN = np.sqrt(np.pi / 2)
"""Ratio of a median's standard error to that of the mean, for normal noise. Outliers raise
the mean's, so that the ratio is then too large: on the safe side."""


class Interval(NamedTuple):
    """The interval of a change at `LEVEL`, in its unit; None if noise is unknown."""

    low: float | None = None
    high: float | None = None
    p: float | None = None
    """Probability of a change at least as large by chance; corrected where many are tested."""
    significant: bool | None = None
    """Whether the change is more than chance."""
    half: float | None = None
    """Half the width of the interval."""


@dataclass(frozen=True, slots=True)
class Estimates:
    """Estimates of what several things take, from samples; one entry for each."""

    value: Floats
    variance: Floats
    """Variance of a sample; larger where samples that resemble their neighbours count for less."""
    weight: float
    """The variance of `value` is `variance * weight / samples`."""
    samples: int
    """Number of samples of each."""
    freedom: Floats
    """Degrees of freedom of `variance`."""


def estimates(
    thing: Int64Array, sample: Int64Array, values: Floats, shape: tuple[int, int], resolution: float
) -> Estimates:
    """Return the mean of each of `shape[0]` things over `shape[1]` samples.

    `values` are what each thing took in a sample, 0 if it has none there; `resolution` is what
    the clock rounds to: nothing measured varies by less.
    """
    things, count = shape
    sums = np.bincount(thing, values, things)
    variance, freedom, doubt = np.zeros(things), np.ones(things), np.full(things, -1.0)
    # into how many batches to divide consecutive samples: the finest first
    counts = [count if count <= _MAX_APART else _BATCHES]
    while counts[-1] // 2 >= _MIN_BATCHES:
        counts.append(counts[-1] // 2)
    for batches in counts:
        batch = np.arange(count) * batches // count
        sizes = np.bincount(batch, minlength=batches)
        number = thing * batches + batch[sample]
        means = np.bincount(number, values, things * batches).reshape(things, batches) / sizes
        long_run, free = _long_run(means, count, resolution)
        long_run *= count / batches
        half = student_t.quantile(LEVEL, free) * np.sqrt(long_run)
        wider = half > doubt
        variance, freedom, doubt = (
            np.where(wider, new, old)
            for new, old in ((long_run, variance), (free, freedom), (half, doubt))
        )
    return Estimates(sums / count, variance, 1.0, count, freedom)


def _long_run(means: Floats, samples: int, resolution: float) -> tuple[Floats, Floats]:
    """Return the variance of the mean of batches of samples, times their number, and its freedom.

    Both follow from the correlation of neighbours (AR(1)): the samples are worth `effective`
    independent ones. As their own mean is subtracted, few samples underestimate both: the
    correlation by about (1 + 3 r) / count (Marriott and Pope 1954), the variance by a share of
    1 / effective.
    """
    count = means.shape[1]
    off = means - means.mean(axis=1, keepdims=True)
    square = (off**2).sum(axis=1)
    if count < FEW:
        alike, effective = np.full(len(means), _ALIKE_OF_FEW), np.full(len(means), float(count))
    else:
        both = (off[:, 1:] * off[:, :-1]).sum(axis=1)
        alike = np.divide(both, square, out=np.zeros(len(means)), where=square > 0)
        least = _ALIKE_OF_SOME if samples < _SOME else 0.0
        alike = np.clip(alike + (1 + 3 * np.maximum(alike, 0)) / count, least, _MAX_ALIKE)
        effective = np.maximum(count * (1 - alike) / (1 + alike), _MIN_EFFECTIVE)
    variance = np.maximum(square / count / (1 - 1 / effective), resolution**2 / 12)
    freedom = count * (1 - alike**2) / (1 + alike**2) - 1
    return variance * (1 + alike) / (1 - alike), np.maximum(freedom, _MIN_FREEDOM)


def totals(
    thing: Int64Array, values: Floats, shape: tuple[int, int], resolution: float
) -> Estimates:
    """Return the sum of each thing over samples that are not consecutive."""
    things, count = shape
    sums, squares = (np.bincount(thing, part, things).astype(float) for part in (values, values**2))
    variance = np.maximum(squares - sums**2 / count, 0.0) / (count - 1)
    variance = np.maximum(variance, resolution**2 / 12)
    return Estimates(sums, variance, count**2, count, np.full(things, count - 1.0))


def welch(a: Estimates, b: Estimates, *, medians: bool = False) -> tuple[Floats, Floats]:
    """Return the half-width of the interval of each difference, and its p-value.

    `medians`: the values were replaced by medians of the same samples.
    """
    factor = _MEDIAN**2 if medians else 1.0
    variance = factor * np.maximum(a.variance, b.variance)
    parts = [variance * side.weight / side.samples for side in (a, b)]
    error = np.sqrt(parts[0] + parts[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = [part**2 / side.freedom for part, side in zip(parts, (a, b), strict=True)]
        freedom = np.where(error > 0, error**4 / (shares[0] + shares[1]), 1.0)
        t = np.where(error > 0, np.abs(b.value - a.value) / error, np.inf)
    p = np.where((error == 0) & (a.value == b.value), 1.0, student_t.two_sided_p(t, freedom))
    return student_t.quantile(LEVEL, freedom) * error, p


def intervals(change: Floats, half: Floats, p: Floats) -> list[Interval]:
    """Return the interval of each change from its half-width and p-value."""
    columns = change - half, change + half, p, p < 1 - LEVEL, half
    return [Interval(*row) for row in zip(*(each.tolist() for each in columns), strict=True)]


def corrected(p: Floats, weight: Floats) -> Floats:
    """Correct p-values for multiple testing (Benjamini and Hochberg, weighted by Genovese et al.).

    At most 5 % of significant changes are chance, and if nothing changed, 5 % of comparisons show a
    change. Ops are weighted by `weight`, their share of the time of both: with equal weights a
    change of the longest op would be lost among hundreds of small ones.
    """
    share = weight / max(weight.sum(), 1e-300)
    with np.errstate(divide="ignore", invalid="ignore"):
        raised = np.where(share > 0, p / (share * len(p)), 1.0)
    order = np.argsort(raised, kind="stable")
    ranked = raised[order] * len(p) / np.arange(1, len(p) + 1)
    values = np.empty(len(p))
    values[order] = np.minimum(np.minimum.accumulate(ranked[::-1])[::-1], 1.0)
    return values
