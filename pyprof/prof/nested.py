"""Products inside products: what an inner op call is charged, the call around it is not.

`aten::cudnn_convolution_backward` of old torch computes both gradients, and the op that it calls
for one of them has a cost of its own; the kernels of the other fall to the outer call. Only
products are looked at: their arithmetic is that of the call around them, while a copy or a bias
inside a convolution comes on top of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.prof.portions import UNKNOWN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyprof.arrays import Ints


def inside(
    offsets: Ints, members: Ints, chosen: Ints, call: Ints, product: NDArray[np.bool_]
) -> Ints:
    """Find (inner call, outer call) where both are charged products. Shape (n, 2).

    `members[offsets[i]:offsets[i + 1]]` are the ids of the calls around row i, ascending inward;
    `chosen` is the one that it works for, -1 if none; `call` its number.
    """
    owner = np.repeat(np.arange(len(chosen)), np.diff(offsets))
    charged = product & (chosen >= 0)
    ids, first = np.unique(chosen[charged], return_index=True)
    outer = charged[owner] & (members < chosen[owner]) & np.isin(members, ids)
    if not outer.any():
        return np.zeros((0, 2), np.int64)
    number = call[np.flatnonzero(charged)[first]]
    # The nearest outer one is the last of a row's: it is charged less by those around it in turn.
    rows, around = owner[outer], members[outer]
    nearest = np.append(rows[1:] != rows[:-1], [True])
    pairs = np.stack([call[rows[nearest]], number[np.searchsorted(ids, around[nearest])]], axis=1)
    return np.unique(pairs, axis=0)


def without_inner(total: Ints, call: Ints, pairs: Ints) -> Ints:
    """Take from each outer call's total those of the calls inside it; never below 0.

    UNKNOWN where that of a call inside is not known: then how much is left is not known either.
    """
    if not len(pairs):
        return total
    whole = _by_call(total, call)
    inner, outer = pairs.T
    less = np.zeros_like(whole)
    np.add.at(less, outer, np.maximum(whole[inner], 0))
    left = np.where(total == UNKNOWN, UNKNOWN, np.maximum(total - less[call], 0))
    return np.where(unknown_inside(total, call, pairs) >= 0, UNKNOWN, left)


def unknown_inside(total: Ints, call: Ints, pairs: Ints) -> Ints:
    """Give, for each row, a call inside its own whose total is not known; -1 for none."""
    whole = _by_call(total, call)
    inner, outer = pairs[whole[pairs[:, 0]] == UNKNOWN].T
    found = np.full_like(whole, -1)
    found[outer] = inner
    return found[call]


def tell_inside(reason_of: Ints, total: Ints, call: Ints, pairs: Ints, offset: int) -> None:
    """Point rows that are unknown for a call inside theirs to its reason, `offset` further on."""
    inner = unknown_inside(total, call, pairs)
    rows = (inner >= 0) & (total != UNKNOWN)
    reason_of[rows] = offset + _by_call(reason_of, call)[inner[rows]] % offset


def _by_call(total: Ints, call: Ints) -> Ints:
    whole = np.full(int(call.max(initial=-1)) + 1, UNKNOWN)
    whole[call] = total
    return whole
