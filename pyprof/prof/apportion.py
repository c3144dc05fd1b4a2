"""A whole number shared by weights: whole shares that add up to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.arrays import MISSING

if TYPE_CHECKING:
    from pyprof.arrays import Int64Array, IntArray, Mask


def apportion(total: Int64Array, weight: Int64Array, call: IntArray) -> Int64Array:
    """Share each call's total by weight, in whole numbers that add up to it."""
    weighs = weight > 0
    number = np.bincount(call[weighs], minlength=int(call.max(initial=-1)) + 1)
    several = np.flatnonzero((number > 1)[call])
    shared = np.where(weighs | (total == MISSING), total, 0)
    shared[several] = _shares(total[several], weight[several], call[several])
    return shared


def _shares(total: Int64Array, weight: Int64Array, call: IntArray) -> Int64Array:
    order = np.argsort(call, kind="stable")
    total, weight = total[order], weight[order]
    cumulative = np.cumsum(weight)
    first = np.flatnonzero(np.diff(call[order], prepend=MISSING))
    count = np.diff(first, append=len(call))
    base = cumulative[first] - weight[first]
    call_weight = np.repeat(np.maximum(cumulative[first + count - 1] - base, 1), count)
    cumulative -= np.repeat(base, count)
    quotient, rest = np.divmod(np.maximum(total, 0), call_weight)
    share = _part(quotient, rest, cumulative, call_weight) - _part(
        quotient, rest, cumulative - weight, call_weight
    )
    shared = np.empty(len(call), np.int64)
    shared[order] = np.where(total == MISSING, MISSING, share)
    return shared


def parts(own: Int64Array, total: Int64Array, call: IntArray, rows: Mask) -> Int64Array:
    """Weigh the rows of each call by what they cost on their own.

    Rows whose own cost is unknown share the rest of the call's total equally.
    """
    known_total, open_rows = np.zeros((2, int(call.max(initial=-1)) + 1), np.int64)
    known = rows & (own != MISSING)
    np.add.at(known_total, call[known], own[known])
    np.add.at(open_rows, call[rows & ~known], 1)
    rest = np.maximum(total - known_total[call], 0) // np.maximum(open_rows[call], 1)
    return np.where(rows, np.maximum(np.where(known, own, rest), 1), 0)


def _part(
    quotient: Int64Array, rest: Int64Array, part: Int64Array, call_weight: Int64Array
) -> Int64Array:
    """(quotient * whole + rest) * part / whole, rounded down; exact if part is whole."""
    return quotient * part + np.floor(rest * (part / call_weight)).astype(np.int64)
