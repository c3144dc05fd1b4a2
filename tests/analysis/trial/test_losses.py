"""Losses with a change, compared with those of the baseline."""

import math

import pytest

from pyprof.analysis.trial.losses import compare_losses

A = [2.0, 1.5, 1.0]


def test_equal_losses_have_no_difference_even_without_noise() -> None:
    found = compare_losses([A, A], [A])
    assert (
        found.check.count,
        found.check.within_noise,
        found.check.largest_relative_difference,
    ) == (3, True, 0)


def test_a_loss_scaled_by_one_percent_is_reported() -> None:
    found = compare_losses([A, A], [[1.01 * loss for loss in A]])
    assert found.check.within_noise is False
    assert found.check.largest_relative_difference == pytest.approx(0.01)


def test_differences_between_baseline_runs_are_noise() -> None:
    found = compare_losses([A, [2.0, 1.52, 1.03]], [[2.0, 1.51, 0.99]])
    assert found.check.within_noise
    assert found.noise == pytest.approx(0.03)


def test_noise_late_in_a_run_does_not_hide_a_difference_at_its_start() -> None:
    found = compare_losses([A, [2.0, 1.5, 1.2]], [[2.1, 1.5, 1.1]])
    assert found.check.within_noise is False


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_is_reported_with_its_step(value: float) -> None:
    found = compare_losses([A, A], [[2.0, value, 1.0]])
    assert found.first_not_finite == 1
    assert (found.check.within_noise, found.check.largest_relative_difference) == (False, None)


def test_losses_that_are_nan_in_the_baseline_too_are_equal() -> None:
    found = compare_losses([[1.0, math.nan]] * 2, [[1.0, math.nan]])
    assert (found.check.within_noise, found.first_not_finite) == (True, None)


def test_one_baseline_run_has_no_noise() -> None:
    assert compare_losses([A], [A]).check.within_noise is None


def test_runs_of_different_length_are_compared_as_far_as_both_go() -> None:
    assert compare_losses([A, A], [A[:2]]).check.count == 2


def test_without_losses_there_is_no_comparison() -> None:
    found = compare_losses([[], []], [[]])
    assert (found.check.count, found.check.within_noise, found.check.last) == (0, None, None)
