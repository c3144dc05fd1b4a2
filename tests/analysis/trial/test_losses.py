"""Losses with a change, compared with those of the baseline."""

import math

import pytest

from pyprof.analysis.trial.losses import compare_losses

A = [2.0, 1.5, 1.0]
OTHER = [2.0, 1.52, 1.03]
NAN = [1.0, math.nan]
CASES = {
    # runs without the change and one with it: how many losses are compared, whether they differ by
    # no more than noise, by how much at most, and the first that only the change makes not finite
    "equal losses, without noise": ([A, A], A, 3, True, 0, None),
    "scaled by one percent": ([A, A], [1.01 * loss for loss in A], 3, False, 0.01, None),
    "as far apart as the baselines": ([A, OTHER], [2.0, 1.51, 0.99], 3, True, 0.01, None),
    "noise late in a run, a difference at its start": (
        [A, [2.0, 1.5, 1.2]], [2.1, 1.5, 1.1], 3, False, 0.1 / 1.2, None),
    "nan": ([A, A], [2.0, math.nan, 1.0], 3, False, None, 1),
    "infinite": ([A, A], [2.0, math.inf, 1.0], 3, False, None, 1),
    "nan in the baseline, too": ([NAN, NAN], NAN, 2, True, 0, None),
    "one baseline, so noise is unknown": ([A], A, 3, None, 0, None),
    "shorter than the baseline": ([A, A], A[:2], 2, True, 0, None),
    "no losses": ([[], []], [], 0, None, None, None),
}  # fmt: skip


@pytest.mark.parametrize(
    ("baselines", "changed", "count", "within_noise", "difference", "first_not_finite"),
    CASES.values(),
    ids=CASES,
)
def test_losses_are_compared_with_those_of_the_baselines(
    baselines: list[list[float]],
    changed: list[float],
    count: int,
    *,
    within_noise: bool | None,
    difference: float | None,
    first_not_finite: int | None,
) -> None:
    found = compare_losses(baselines, [changed])
    assert (found.check.count, found.check.within_noise) == (count, within_noise)
    assert found.check.largest_relative_difference == (difference and pytest.approx(difference))
    assert (found.check.last is None) == (not count)
    assert found.first_not_finite == first_not_finite


def test_a_tiny_difference_is_as_by_rounding() -> None:
    """If noise is known, and smaller."""
    for baselines, factor, expected in (
        ([A, A], 1 + 1e-6, True),
        ([A, A], 1 + 1e-4, False),
        ([A, A], 1, False),
        ([A, OTHER], 1 + 1e-6, False),
        ([A], 1 + 1e-6, False),
        ([A, A], math.nan, False),
    ):
        changed = [A[0], *(factor * loss for loss in A[1:])]
        assert compare_losses(baselines, [changed]).check.as_by_rounding == expected


def test_noise_is_the_largest_difference_between_baselines() -> None:
    assert compare_losses([A, OTHER], [A]).noise == pytest.approx(0.03)
