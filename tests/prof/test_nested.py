"""Products inside products are charged once."""

from __future__ import annotations

import numpy as np

from pyprof.prof.nested import UNKNOWN, inside, without_inner

OUTER, INNER = 7, 9  # ids of calls; ids ascend inward


def test_the_outer_call_is_charged_less() -> None:
    """Two gradients in one call of 20, one of which has a call of its own of 8: the other is 12."""
    # row 0: inside both calls, works for the inner; row 1: in the outer alone
    offsets, members = np.array([0, 2, 3]), np.array([OUTER, INNER, OUTER])
    chosen, call = np.array([INNER, OUTER]), np.array([1, 0])
    pairs = inside(offsets, members, chosen, call, np.array([True, True]))
    assert pairs.tolist() == [[1, 0]]
    assert without_inner(np.array([8, 20]), call, pairs).tolist() == [8, 12]
    assert without_inner(np.array([8, UNKNOWN]), call, pairs).tolist() == [8, UNKNOWN]
    assert without_inner(np.array([30, 20]), call, pairs).tolist() == [30, 0]


def test_what_is_no_product_stays_out() -> None:
    """A copy inside a convolution costs what it costs, and so does the convolution."""
    offsets, members = np.array([0, 2, 3]), np.array([OUTER, INNER, OUTER])
    chosen, call = np.array([INNER, OUTER]), np.array([1, 0])
    assert not len(inside(offsets, members, chosen, call, np.array([False, True])))


def test_an_outer_call_that_nothing_is_charged_to_is_no_matter() -> None:
    """Calls around a product that no kernel works for have no cost to be lessened."""
    pairs = inside(
        np.array([0, 2]),
        np.array([OUTER, INNER]),
        np.array([INNER]),
        np.array([0]),
        np.array([True]),
    )
    assert not len(pairs)
