"""Formatted numbers can be read back within their digits."""

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyprof.render.text.layout.numbers import rounded, scaled
from tests.prof.shown_numbers import within_shown

_INTS = st.integers(-(2**62), 2**62) | st.integers(-2000, 2000)
_FLOATS = st.floats(1e-12, 1e12) | st.floats(-1e6, 1e6) | st.sampled_from([0.0, 9.9996, 999.96])


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [
        (4663063609344, "FLOP", "4.663T"),
        (603_000_000, "ns", "603.0ms"),
        (999_950, "byte", "1.000M"),
        (999_949, "byte", "999.9k"),
        (999, "byte", "999"),
        (1000, "byte", "1.000k"),
        (0, "FLOP", "0"),
        (24, "ns", "24ns"),
        (-1500, "ns", "-1.500us"),
        (12_345_000_000_000, "ns", "12345s"),
        (2**62, "FLOP", "4.612E"),
        (24.5, "ns", "24.50ns"),
        (0.25, "ns", "0.250ns"),
        (None, "ns", None),
    ],
)
def test_numbers_have_four_significant_digits_and_a_prefix(
    number: float | None, unit: str, text: str | None
) -> None:
    """Integers below 1000 are unchanged."""
    kind = pa.float64() if isinstance(number, float) else pa.int64()
    assert scaled(pa.array([number], kind), unit).to_pylist() == [text]


@given(st.lists(st.none() | _INTS, min_size=1), st.sampled_from(["ns", "FLOP"]))
def test_a_scaled_number_can_be_read_back(numbers: list[int | None], unit: str) -> None:
    """Within half of its last digit; unknown stays unknown."""
    texts = scaled(pa.array(numbers, pa.int64()), unit).to_pylist()
    for number, text in zip(numbers, texts, strict=True):
        assert (text is None) == (number is None)
        assert number is None or within_shown(text, number)


@given(st.lists(st.none() | _FLOATS, min_size=1))
@example([999_950_000_000.0])
@example([999.96, 9999.6])
def test_a_rounded_number_can_be_read_back(numbers: list[float | None]) -> None:
    """Within half of its last digit, with at least one digit."""
    values = pa.array(numbers, pa.float64())
    texts = rounded(values).to_pylist()
    for number, text in zip(numbers, texts, strict=True):
        assert (text is None) == (number is None)
        assert number is None or within_shown(text, number)
        assert not number or float(text) != 0


def test_four_digits_stay_four_when_rounding_carries() -> None:
    assert rounded(pa.array([9.9996, 999.96, 0.99999, 1e-9, 4e-10])).to_pylist() == [
        "10.00", "1000", "1.000", "0.000000001", "4.000e-10",
    ]  # fmt: skip
