"""Gains in words: intervals with one unit, upper bounds marked."""

import pytest

from pyprof.answers.gains import gain_of, likely_ns
from pyprof.answers.parts import PredictedGain, Suggestion


def _suggestion(
    gain_ns: int | None,
    interval: tuple[int, int] | None = None,
    step_ns: float | None = None,
    share: float | None = None,
) -> Suggestion:
    predicted = None
    if interval:
        low, high = interval
        predicted = PredictedGain(
            low_ns=low, expected_ns=(low + high) // 2, high_ns=high, validation="", code=""
        )
    return Suggestion(
        rule="r", title="t", action="a", gain_ns=gain_ns, gain_step_ns=step_ns, gain_share=share,
        predicted=predicted, evidence=(), once=False,
    )  # fmt: skip


@pytest.mark.parametrize(("entry", "words"), [
    (_suggestion(None), "unknown"),
    (_suggestion(2_000_000), "up to 2.00 ms"),
    (_suggestion(2_000_000, step_ns=1e6, share=0.25), "up to 1.00 ms a step (25 %)"),
    (_suggestion(4_000_000, (2_000_000, 4_000_000)), "2.00 to 4.00 ms"),
    (_suggestion(4_000_000, (400_000, 4_000_000)), "400 us to 4.00 ms"),
    (_suggestion(4_000_000, (4_000_000, 4_000_000)), "4.00 ms"),
    (_suggestion(4_000_000, (2_000_000, 4_000_000), 2e6, 0.3),
     "1.00 to 2.00 ms a step (15 to 30 %)"),
])  # fmt: skip
def test_gains_are_formatted_with_their_unit(entry: Suggestion, words: str) -> None:
    assert gain_of(entry).words == words


def test_the_likely_gain_is_the_middle_of_the_prediction() -> None:
    """Else the bound; None if it is unknown."""
    assert likely_ns(_suggestion(40, (20, 40))) == 30
    assert likely_ns(_suggestion(40)) == 40
    assert likely_ns(_suggestion(None)) == 0
