"""The order in which the GPU started its work: that of the records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_KEYS = ("start", "end", "device", "stream", "corr")


def in_order(activities: pa.Table) -> pa.Table:
    """Sort activities by their start, those without one first; if in order they are not copied."""
    keys = [np.asarray(pc.fill_null(activities.column(name), -1)) for name in _KEYS]
    if _ascending(keys):
        return activities
    return activities.take(pa.array(np.lexsort(keys[::-1])))


def _ascending(keys: Sequence[NDArray[np.int64]]) -> bool:
    """Tell whether rows ascend by the first key; where it is the same, by the next."""
    same = np.ones(max(len(keys[0]) - 1, 0), bool)
    for key in keys:
        before, behind = key[:-1][same], key[1:][same]
        if (behind < before).any():
            return False
        same[same] = behind == before
    return True
