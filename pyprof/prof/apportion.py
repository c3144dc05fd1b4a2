"""A whole number shared by weights: whole shares that add up to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyprof.arrays import Ints


UNKNOWN = -1


def portions(total: Ints, weight: Ints, call: Ints) -> Ints:
    """Share each call's total by weight, in whole numbers that add up to it."""
    order = np.argsort(call, kind="stable")
    total, weight = total[order], weight[order]
    running = np.cumsum(weight)
    first = np.flatnonzero(np.diff(call[order], prepend=UNKNOWN))
    count = np.diff(first, append=len(call))
    base = running[first] - weight[first]
    whole = np.repeat(np.maximum(running[first + count - 1] - base, 1), count)
    running -= np.repeat(base, count)
    quotient, rest = np.divmod(np.maximum(total, 0), whole)
    share = _part(quotient, rest, running, whole) - _part(quotient, rest, running - weight, whole)
    shared = np.empty(len(call), np.int64)
    shared[order] = np.where(total == UNKNOWN, UNKNOWN, share)
    return shared


def parts(own: Ints, total: Ints, call: Ints, rows: NDArray[np.bool_]) -> Ints:
    """Weigh the rows of each call by what they cost on their own.

    A row of which that is not known has the rest of its call's total, in equal shares.
    """
    told, open_rows = np.zeros((2, int(call.max(initial=-1)) + 1), np.int64)
    known = rows & (own != UNKNOWN)
    np.add.at(told, call[known], own[known])
    np.add.at(open_rows, call[rows & ~known], 1)
    rest = np.maximum(total - told[call], 0) // np.maximum(open_rows[call], 1)
    return np.where(rows, np.maximum(np.where(known, own, rest), 1), 0)


def _part(quotient: Ints, rest: Ints, part: Ints, whole: Ints) -> Ints:
    """Give (quotient * whole + rest) * part / whole, rounded down, exact where part is whole."""
    return quotient * part + np.floor(rest * (part / whole)).astype(np.int64)
