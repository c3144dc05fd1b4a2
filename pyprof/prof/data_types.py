"""The type of an op's tensors by its kernels' names, where no text tells it.

emit_nvtx writes sizes and no types: without this, FLOPs would be known and bytes not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.gpu.dtypes import data_type
from pyprof.prof.agreement import agreed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyprof.parse.records import Coded

    Ints = NDArray[np.int64]


def by_name(
    name: Coded, call: Ints, arithmetic: NDArray[np.bool_]
) -> tuple[Ints, list[str | None]]:
    """Give the number of each row's type, and the types; 0, which is None, where none is told.

    It is the one on which all names of a call's `arithmetic` kernels agree that tell one.
    """
    told = [data_type(text) for text in name.values]
    types = [None, *dict.fromkeys(text for text in told if text is not None)]
    number = np.array([types.index(text) for text in told], np.int64)[name.index]
    return agreed(call, np.where(arithmetic, number, 0)), types
