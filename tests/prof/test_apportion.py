"""Dividing an integer by weights: integer shares that add up, 0 without weight."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.arrays import MISSING
from pyprof.prof.apportion import apportion, parts

CALLS = st.lists(
    st.tuples(
        st.integers(0, 2**62) | st.just(MISSING),  # the call's total
        st.lists(st.integers(0, 10**9), min_size=1, max_size=6).filter(any),  # its rows' weights
    ),
    min_size=1,
    max_size=5,
)


@given(calls=CALLS, random=st.randoms(use_true_random=False))
def test_shares_add_up_to_the_total_in_any_order_of_rows(
    calls: list[tuple[int, list[int]]], random: st.DrawFn
) -> None:
    """Exactly, for totals up to 2^62; unknown totals stay unknown; no share is negative."""
    rows = [(n, total, weight) for n, (total, weights) in enumerate(calls) for weight in weights]
    random.shuffle(rows)  # type: ignore[attr-defined]
    call, total, weight = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    found = apportion(total, weight, call)
    for number, (whole, _) in enumerate(calls):
        shares = found[call == number].tolist()
        if whole == MISSING:
            assert set(shares) == {MISSING}
        else:
            assert sum(shares) == whole
            assert min(shares) >= 0
            assert not any(found[(call == number) & (weight == 0)])


@given(weights=st.lists(st.integers(1, 1000), min_size=1, max_size=6))
def test_shares_are_in_proportion(weights: list[int]) -> None:
    count = len(weights)
    found = apportion(np.full(count, 10**6), np.array(weights), np.zeros(count, np.int64))
    for share, weight in zip(found.tolist(), weights, strict=True):
        assert abs(share - 10**6 * weight / sum(weights)) <= 1


@pytest.mark.parametrize(
    ("own", "total", "weights"),
    [
        ((10, MISSING, MISSING), 40, [10, 15, 15]),
        ((10, 20), 90, [10, 20]),
        ((50, MISSING), 40, [50, 1]),  # nothing is left: it still took part
        ((0, MISSING), 7, [1, 7]),
    ],
)
def test_rows_of_unknown_cost_share_what_the_others_leave(
    own: tuple[int, ...], total: int, weights: list[int]
) -> None:
    """Rows that take no part weigh nothing."""
    call = np.zeros(len(own) + 1, np.int64)
    takes_part = np.arange(len(own) + 1) < len(own)
    found = parts(np.array([*own, MISSING]), np.full(len(call), total), call, takes_part)
    assert found.tolist() == [*weights, 0]
