"""The share of time with a known cost, in words."""

import pytest

from pyprof.answers.parts import KnownCost, UnknownCost
from pyprof.render.text.known_cost_text import sentence, without_copies


def _known(share: float, of_kernels: float | None, *unknown: UnknownCost) -> KnownCost:
    return KnownCost("GPU", 1000, share, of_kernels, unknown)


def test_what_is_unknown_has_its_reasons_with_their_share_and_rows() -> None:
    assert sentence(_known(1.0, 1.0)) == "cost known for 100.0 % of GPU time"
    known = _known(0.75, None, UnknownCost("no marker", 200, 3), UnknownCost("no shapes", 50, 1))
    assert sentence(known) == (
        "cost known for 75.0 % of GPU time; unknown for 4 rows: "
        "no marker (20.0 % in 3), no shapes (5.0 % in 1)"
    )


@pytest.mark.parametrize(
    ("share", "of_kernels", "expected"),
    [
        (0.9, 0.5, ", of kernels alone 50.0 %"),
        (0.9, 0.895, ""),  # copies make too little of it
        (0.005, 0.001, ", of kernels alone 0.1 %"),  # but most of what is known
        (0.9, None, ""),
    ],
)
def test_the_share_of_kernels_is_added_if_copies_raise_it(
    share: float, of_kernels: float | None, expected: str
) -> None:
    assert without_copies(_known(share, of_kernels)) == expected
