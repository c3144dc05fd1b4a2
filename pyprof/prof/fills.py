"""Dense gradients that a fill zeroes: what it writes is charged to it, and not to the op again.

The gradient of a loss or of an embedding is as large as its input. A fill or memset writes zeros
there, and the op's own kernel touches but a few elements: with the whole gradient it would seem
to be many times faster than memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof.prof.portions import UNKNOWN, portions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Mask = NDArray[np.bool_]

SPARSE = frozenset({"loss", "index", "embedding"})
"""Families whose gradients' kernels may leave most of a result as a fill before them wrote it."""


@dataclass(frozen=True, slots=True)
class Fills:
    """Rows that fill memory, and rows that may rely on it. All arrays: one a row."""

    call: Ints
    """Number of the op call that a row works for."""
    written: Ints
    """Bytes of the largest tensor that the call writes."""
    weight: Ints
    """A row's part in the cost of its call, where that is a gradient of the SPARSE; else 0."""
    own: Mask
    """Memsets, and kernels of an op that fills: they have bytes of their own."""
    helps: Ints
    """Weight of the kernels that fill memory for such a call without an op of their own."""

    def charge(self, total: Ints, moved: Ints, chosen: Ints, ids: tuple[Ints, Ints] | None) -> Ints:
        """Give `moved`, bytes a row, with each result written once: by its fill.

        `total` are the bytes of each row's call; `ids` the offsets and ids of the calls around
        each row, ascending inward, of which it works for `chosen`, -1 for none.
        """
        told, helped = np.zeros((2, int(self.call.max(initial=-1)) + 1), bool)
        if ids is not None:
            told[self._filled(*ids, chosen, moved)] = True
        helped[self.call[self.helps > 0]] = True
        helped &= ~told
        rows = (self.weight > 0) & (told | helped)[self.call] & (total != UNKNOWN)
        if not rows.any():
            return moved
        rest = portions(np.maximum(total - self.written, 0), self.weight, self.call)
        filled = portions(self.written, self.helps, self.call)
        moved = np.where(rows, rest, moved)
        return np.where((self.helps > 0) & helped[self.call], filled, moved)

    def _filled(self, offsets: Ints, members: Ints, chosen: Ints, moved: Ints) -> Ints:
        """Give the numbers of the calls with a fill inside that is as large as their result."""
        works, first = np.unique(chosen[self.weight > 0], return_index=True)
        row = np.flatnonzero(self.weight > 0)[first]
        owner = np.repeat(np.arange(len(chosen)), np.diff(offsets))
        inside = self.own[owner] & (chosen[owner] >= 0) & np.isin(members, works)
        outer = row[np.searchsorted(works, members[inside])]
        return np.asarray(self.call[outer[self.written[outer] == moved[owner[inside]]]])
