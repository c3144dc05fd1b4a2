"""Whether a change leaves the losses as they were, judged by how well they repeat without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof.answers.try_answer import LossCheck

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.arrays import Floats

_NOISE_FACTOR = 2.0
"""Two or three runs show only a part of the noise."""
_ROUNDING = 1e-5
_TINY = 1e-30


@dataclass(frozen=True, kw_only=True)
class LossComparison:
    """Losses with a change beside those without it."""

    check: LossCheck
    first_not_finite: int | None
    """The number, from 0, of the first loss that is nan or infinite with the change only."""
    noise: float
    """The largest relative difference between runs without the change; 0 if they repeat exactly."""


def compare_losses(
    baselines: Sequence[Sequence[float]], changed: Sequence[Sequence[float]]
) -> LossComparison:
    """Compare the losses of runs, each in the order of its backward passes."""
    count = min(map(len, (*baselines, *changed)), default=0)
    if not count or not baselines or not changed:
        return LossComparison(check=LossCheck(count=0), first_not_finite=None, noise=0.0)
    before = np.array([losses[:count] for losses in baselines], float)
    after = np.array([losses[:count] for losses in changed], float)
    noise = np.maximum.accumulate(_largest_difference(before, before[0]))
    difference = np.min([_largest_difference(after, each) for each in before], axis=0)
    broken = np.flatnonzero(~np.isfinite(after).all(axis=0) & np.isfinite(before).all(axis=0))
    finite = bool(np.isfinite(difference).all())
    known = len(before) > 1
    within = bool((difference <= _NOISE_FACTOR * noise).all()) if finite else False
    return LossComparison(
        check=LossCheck(
            count=count,
            within_noise=within if known else None,
            as_by_rounding=known and not within and bool(difference.max() < _ROUNDING),
            largest_relative_difference=float(difference.max()) if finite else None,
            last=float(after[0, -1]),
            last_baseline=float(before[0, -1]),
        ),
        first_not_finite=int(broken[0]) if len(broken) else None,
        noise=float(noise[-1]) if np.isfinite(noise[-1]) else float("inf"),
    )


def _largest_difference(runs: Floats, reference: Floats) -> Floats:
    """Return the largest relative difference of each loss; equal values that are nan count as 0."""
    with np.errstate(invalid="ignore"):
        apart = np.abs(runs - reference) / np.maximum(np.abs(reference), _TINY)
    same = (runs == reference) | (np.isnan(runs) & np.isnan(reference))
    different = np.where(np.isnan(apart), np.inf, apart)
    largest: Floats = np.where(same, 0.0, different).max(axis=0)
    return largest
