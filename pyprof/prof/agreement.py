"""What all rows of a group that say something agree on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pyprof.arrays import Ints


def agreed(group: Ints, value: Ints) -> Ints:
    """Give, for each row, the one value above 0 in its group; 0 where there is none, or several.

    `group` numbers the groups from 0. Shapes (rows,).
    """
    says = value > 0
    least = np.full(int(group.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    most = np.zeros_like(least)
    np.minimum.at(least, group[says], value[says])
    np.maximum.at(most, group[says], value[says])
    return np.asarray(np.where(least == most, most, 0)[group])
