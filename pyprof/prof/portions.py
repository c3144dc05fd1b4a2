"""A whole number shared by weights: whole shares that add up to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

UNKNOWN = -1


def portions(total: Ints, weight: Ints, call: Ints) -> Ints:
    """Share each call's total by weight, in whole numbers that add up to it."""
    order = np.argsort(call, kind="stable")
    grouped, running = call[order], np.cumsum(weight[order])
    first = np.searchsorted(grouped, grouped)
    last = np.searchsorted(grouped, grouped, side="right") - 1
    base = (running - weight[order])[first]
    whole = np.maximum(running[last] - base, 1)
    amount = np.maximum(total[order], 0)
    upto = _part(amount, running - base, whole)
    before = _part(amount, running - weight[order] - base, whole)
    shared = np.full(len(call), UNKNOWN)
    shared[order] = np.where(total[order] == UNKNOWN, UNKNOWN, upto - before)
    return shared


def _part(amount: Ints, part: Ints, whole: Ints) -> Ints:
    """Give amount * part / whole, rounded down, exact where part equals whole."""
    quotient, rest = np.divmod(amount, whole)
    return quotient * part + np.floor(rest * (part / whole)).astype(np.int64)
