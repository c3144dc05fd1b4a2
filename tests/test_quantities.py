"""Times and shares have three significant digits."""

from collections.abc import Callable
from functools import partial

import pytest

from pyprof.quantities import amount, change, counted, duration, number, percent, significant, spans


def test_unknown_numbers_are_a_dash() -> None:
    assert (duration(None), number(None), amount(None, "B"), change(None)) == ("-",) * 4


DURATIONS = {
    0: "0 ns", 0.25: "0.25 ns", 999.4: "999 ns", 999.6: "1.00 us", 7_560_000: "7.56 ms",
    84_040_000: "84.0 ms", 999_999_999: "1.00 s", -2_500: "-2.50 us", 4e12: "4,000 s",
}  # fmt: skip
RATES = {0.0: "0", 0.01234: "0.0123", 1.234: "1.23", 99.94: "99.9", 1234.5: "1,234"}
NUMBERS = {
    2796.456: "2,796", 99.96: "100", 9.996: "10.0", 1: "1.00", 0.0123: "0.012", 0: "0.000",
}  # fmt: skip
SHARES = {
    0.838: "84 %", 0.0361: "3.6 %", 0.998: "99.8 %", 1: "100 %", 0: "0 %", 0.9999: "100 %",
    0.0004: "<0.1 %", 0.0005: "0.1 %",
}  # fmt: skip
AMOUNTS = {0: "0 B", 999: "999 B", 1000: "1 kB", -2.5e9: "-2.5 GB"}


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        pytest.param(duration, DURATIONS, id="a duration in the largest unit of 1 or more"),
        pytest.param(number, RATES, id="a rate with three significant digits"),
        pytest.param(significant, NUMBERS, id="a number with all digits before the point"),
        pytest.param(percent, SHARES, id="a share in whole percent except near 0 and 100"),
        pytest.param(partial(amount, unit="B"), AMOUNTS, id="an amount with a decimal prefix"),
    ],
)
def test_numbers_are_formatted_for_people(
    form: Callable[[float], str], expected: dict[float, str]
) -> None:
    assert {value: form(value) for value in expected} == expected


def test_one_thing_has_no_plural() -> None:
    assert [counted(count, "row") for count in (0, 1, 4350)] == ["0 rows", "1 row", "4,350 rows"]
    assert [counted(count, "activity") for count in (1, 2)] == ["1 activity", "2 activities"]
    assert [counted(2, noun) for noun in ("box", "process")] == ["2 boxes", "2 processes"]


def test_ranks_are_formatted_as_ranges() -> None:
    sets = ([3], [0, 4], [2, 3, 4], [0, 8, 16], list(range(0, 40, 2)))
    assert [spans(ranks) for ranks in sets] == [
        "rank 3", "ranks 0 and 4", "ranks 2 to 4", "ranks 0 8 16", "ranks 0 2 4 6 8 10 12 14 ...",
    ]  # fmt: skip
