"""The rules' stated errors are those of the back-test."""

import pytest

from pyprof.analysis.back_test import Tried, results, tried
from pyprof.analysis.whatif import batching, fusion, other_gpu, precision

_RULES = (
    *(precision.TF32, precision.HALF_OUTCOMES, fusion.ATTENTION, fusion.POINTWISE),
    *(batching.OPTION, batching.LIMITED),
    *(other_gpu.OPTION, other_gpu.LIMITED, other_gpu.STAND_IN),
)


def test_each_rule_has_outcomes_once() -> None:
    """They are where its interval comes from."""
    assert sorted(results()) == sorted(_RULES)


@pytest.mark.parametrize("change", _RULES)
def test_intervals_hold_most_outcomes_and_are_wider_than_noise(change: str) -> None:
    """Nominally 90 %, at least 85 %; two runs of one program differ by 2 %."""
    outcomes = tried(change)
    assert outcomes.covered >= 0.85
    assert outcomes.low <= 0.98
    assert outcomes.high >= 1.02


def test_a_text_has_the_errors() -> None:
    """The 90th percentile only for twenty or more."""
    few = Tried(
        on="3 pairs", outcomes=3, models=1, mean_error=0.051, nine_in_ten=0.3, largest_error=0.07,
        within_15_percent=1.0, low=0.9, high=1.1, covered=1.0,
    )  # fmt: skip
    assert few.text == "3 pairs: mean error 5.1 %, largest 7.0 %; 100 % in the interval"
    assert "90 % within ±" in tried(other_gpu.LIMITED).text
