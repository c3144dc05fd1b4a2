"""Each beside all others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pyprof.arrays import Floats


def of_others(values: Floats) -> Floats:
    """Give for each of two values and more the median of all others."""
    order = np.argsort(values, kind="stable")
    place = np.empty(len(values), np.int64)
    place[order] = np.arange(len(values))
    others = len(values) - 1
    below, above = (
        values[order][middle + (middle >= place)]  # without itself
        for middle in ((others - 1) // 2, others // 2)
    )
    return np.asarray((below + above) / 2)
