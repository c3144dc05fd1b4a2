"""Parts of an op's bytes that another kernel than its own moves: charged to that, and once.

The gradient of a loss or of an embedding is as large as its input. A fill or memset writes zeros
there, and the op's own kernel touches but a few elements: with the whole gradient it would seem
to be many times faster than memory.

A product's bias may be copied into the result before, added to it behind, or its gradient summed
by a kernel of its own. That moves the bias and what it is added to or is the sum of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof.prof.portions import UNKNOWN, portions

if TYPE_CHECKING:
    from pyprof.arrays import Ints, Mask


SPARSE = frozenset({"loss", "index", "embedding"})
"""Families whose gradients' kernels may leave most of a result as a fill before them wrote it."""


@dataclass(frozen=True, slots=True)
class Fills:
    """Rows that fill memory, and rows that may rely on it. All arrays: one a row."""

    call: Ints
    """Number of the op call that a row works for."""
    part: Ints
    """Bytes that a fill writes of the call's, or the kernel of its bias moves."""
    weight: Ints
    """A row's part in the cost of its call, where there can be such a kernel; else 0."""
    own: Mask
    """Memsets, and kernels of an op that fills: they have bytes of their own."""
    helps: Ints
    """Weight of the kernels that do so for such a call without an op of their own."""

    def charge(self, total: Ints, moved: Ints, chosen: Ints, ids: tuple[Ints, Ints] | None) -> Ints:
        """Give `moved`, bytes a row, with each part charged once: to its fill, or bias's kernel.

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
        part = np.minimum(self.part, np.maximum(total, 0))
        rest = portions(total - part, self.weight, self.call)
        filled = portions(part, self.helps, self.call)
        moved = np.where(rows, rest, moved)
        return np.where((self.helps > 0) & helped[self.call] & (total != UNKNOWN), filled, moved)

    def _filled(self, offsets: Ints, members: Ints, chosen: Ints, moved: Ints) -> Ints:
        """Give the numbers of the calls with a fill inside that is as large as their result."""
        works, first = np.unique(chosen[self.weight > 0], return_index=True)
        row = np.flatnonzero(self.weight > 0)[first]
        owner = np.repeat(np.arange(len(chosen)), np.diff(offsets))
        inside = self.own[owner] & (chosen[owner] >= 0) & np.isin(members, works)
        outer = row[np.searchsorted(works, members[inside])]
        return np.asarray(self.call[outer[self.part[outer] == moved[owner[inside]]]])
