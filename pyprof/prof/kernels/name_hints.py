"""What kernels' names and the other rows of a group reveal of an op that records too little."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyprof.gpu.kernel_dtypes import data_type, moved_type, weight_type
from pyprof.gpu.kernel_roles import sparse_product, training
from pyprof.records.records import DictionaryColumn, combinations

if TYPE_CHECKING:
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


class NameHints(NamedTuple):
    """What the names of an op call's kernels agree on; on a CPU, its inner ops. None if unknown.

    emit_nvtx writes sizes, but no types and no flags: many ops would have unknown bytes, and batch
    norm no FLOPs. A marker has the types that operands had before autocast converted them.
    """

    dtype: str | None = None
    """Type of the floating tensors, as torch names it."""
    training: bool | None = None
    sparse: bool | None = None
    """Whether a factor of a product is sparse; never False."""
    weights: str | None = None
    """How the weights of a product are stored: `mxfp4`."""


def by_name(
    name: DictionaryColumn,
    dtype: DictionaryColumn,
    call: IntArray,
    typed: Mask,
    moving: Mask,
    kernel: Mask,
) -> DictionaryColumn:
    """Find the hints of each row.

    `dtype`: the floating type that each row works on; `typed`: rows that do the arithmetic of a
    call, and whose own type may be truer than the stated one; `moving`: those that only move
    elements; `kernel`: all kernels.
    """
    types, dtypes = _agreed_hint(dtype, call, typed)
    moved_type_of = name.map(lambda name: moved_type(name) or data_type(name))
    moved, moved_dtypes = _agreed_hint(moved_type_of, call, moving)
    types, dtypes = np.where(moved > 0, len(dtypes) + moved, types), [*dtypes, *moved_dtypes]
    flags, trains = _agreed_hint(name.map(training), call, kernel)
    stored, sparse = _agreed_hint(name.map(sparse_product), call, kernel)
    packed, weights = _agreed_hint(name.map(weight_type), call, kernel)
    first, number = combinations(types, flags, stored, packed)
    hints = [
        NameHints(dtypes[types[row]], trains[flags[row]], sparse[stored[row]], weights[packed[row]])
        for row in first.tolist()
    ]
    return DictionaryColumn(number, hints)


def _agreed_hint(
    column: DictionaryColumn, call: IntArray, rows: Mask
) -> tuple[IntArray, list[Any]]:
    """For each row, the number of the single value of its call's `rows`, 0 for None; and values."""
    values = [None, *dict.fromkeys(value for value in column.values if value is not None)]
    if len(values) == 1:
        return np.zeros(len(call), np.int32), values
    number = column.numpy(values.index, 0).astype(np.int32)
    return agreed_value(call, np.where(rows, number, np.int32(0))), values
