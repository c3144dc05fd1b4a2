"""What kernels' names and the other rows of a group reveal of an op that records too little."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from pyprof.arrays import numbered
from pyprof.gpu.kernel_dtypes import data_type, moved_type, weight_type
from pyprof.gpu.kernel_roles import sparse_product, training
from pyprof.records.records import DictionaryColumn

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyprof.arrays import IntArray, Mask


def agreed_value(group: IntArray, value: IntArray) -> IntArray:
    """For each row, the single value above 0 in its group; 0 if there is none, or several.

    `group` numbers the groups from 0. Shapes (rows,).
    """
    says = value > 0
    least = np.full(int(group.max(initial=-1)) + 1, np.iinfo(value.dtype).max, value.dtype)
    most = np.zeros_like(least)
    np.minimum.at(least, group[says], value[says])
    np.maximum.at(most, group[says], value[says])
    return np.asarray(np.where(least == most, most, 0)[group])


# emit_nvtx writes sizes, but no types and no flags: without these hints, many ops would have known
# FLOPs but unknown bytes, and batch norm would have neither.
_T = TypeVar("_T")


class NameHints(NamedTuple):
    """What the names of an op call's kernels agree on; None if unknown."""

    dtype: str | None = None
    """Type of the floating tensors, as torch names it."""
    training: bool | None = None
    sparse: bool | None = None
    """Whether a factor of a product is sparse; never False."""
    weights: str | None = None
    """How the weights of a product are stored: `mxfp4`."""


def by_name(
    name: DictionaryColumn, call: IntArray, lacks_dtype: Mask, moving: Mask, kernel: Mask
) -> DictionaryColumn:
    """Find the hints of each row.

    `lacks_dtype`: rows that do the arithmetic of a call whose types are unknown; `moving`: those
    that only move elements; `kernel`: all kernels.
    """
    types, dtypes = _agreed_hint(name, call, lacks_dtype & ~moving, data_type)
    moved, moved_dtypes = _agreed_hint(
        name, call, moving, lambda name: moved_type(name) or data_type(name)
    )
    types, dtypes = np.where(moved > 0, len(dtypes) + moved, types), [*dtypes, *moved_dtypes]
    flags, trains = _agreed_hint(name, call, kernel, training)
    stored, sparse = _agreed_hint(name, call, kernel, sparse_product)
    packed, weights = _agreed_hint(name, call, kernel, weight_type)
    shape = (len(dtypes), len(trains), len(sparse), len(weights))
    combined, number = numbered(np.ravel_multi_index((types, flags, stored, packed), shape))
    codes = zip(*(indices.tolist() for indices in np.unravel_index(combined, shape)), strict=True)
    hints = [NameHints(dtypes[at], trains[flag], sparse[few], weights[bits])
             for at, flag, few, bits in codes]  # fmt: skip
    return DictionaryColumn(number, hints)


def _agreed_hint(
    name: DictionaryColumn, call: IntArray, rows: Mask, read: Callable[[str], _T | None]
) -> tuple[IntArray, list[_T | None]]:
    read_values = [read(text) for text in name.values]
    values: list[_T | None] = [
        None,
        *dict.fromkeys(value for value in read_values if value is not None),
    ]
    if len(values) == 1:
        return np.zeros(len(call), np.int32), values
    number = np.array([values.index(value) for value in read_values], np.int32).take(name.index)
    return agreed_value(call, np.where(rows, number, np.int32(0))), values
