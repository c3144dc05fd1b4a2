"""Ranges that were never closed: which of them still mean something.

An op that raises inside old instrumentation, or whose end the capture did not see, leaves its
range open until the capture's last instant. Everything after it then seems to happen inside
it. An open layer is believed; an open op only while no other op has come and gone inside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.arrays import NONE
from pyprof.marker import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyprof.arrays import Ints


_DEEPEST = 8, 64
"""Ops, and layers, that are inside of one another when a capture ends. Of more the ends were lost:
then nothing tells what is inside of what."""

_OPS = (Kind.OP, Kind.TRACE, Kind.MODULE, Kind.SEQ)
_LAYERS = (Kind.LAYER, Kind.OPTIMIZER)


def leaked(
    thread: Ints, start: Ints, kind: NDArray[np.int8], still_open: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Tell which open ranges must not count: ops inside which another op was closed."""
    ops = np.isin(kind, _OPS)
    closed = ops & ~still_open
    suspect = ops & still_open
    last_closed = np.full(int(thread.max(initial=0)) + 1, NONE)
    np.maximum.at(last_closed, thread[closed], start[closed])
    return suspect & (start <= last_closed[thread])


def endless(
    thread: Ints, kind: NDArray[np.int8], left_open: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Tell which ranges have lost their end: all that a thread left open, where they are too many.

    `left_open` are those that are not leaked.
    """
    found = np.zeros(len(thread), bool)
    for chosen, most in ((np.isin(kind, _OPS), _DEEPEST[0]), (np.isin(kind, _LAYERS), _DEEPEST[1])):
        count = np.bincount(thread[left_open & chosen], minlength=int(thread.max(initial=0)) + 1)
        found |= left_open & (count > most)[thread]
    return found
