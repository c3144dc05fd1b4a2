"""The size of an op call's result, where only the calls inside it show it.

torch.profiler records no index tensors, so no argument shows how many elements `aten::index`
selects. But before its kernel runs, it makes a view of its source as large as the result, with
stride 0 if an index picks (ATen's `restride_src`); that is a call of `aten::as_strided`, whose size
and strides are recorded. `aten::nonzero` resizes its result to what it found.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from pyprof.arrays import MISSING
from pyprof.marker import Kind, Tensor
from pyprof.parse.ranges.texts import matching_statements
from pyprof.records.records import DictionaryColumn, combinations

if TYPE_CHECKING:
    from pyprof.arrays import Int64Array
    from pyprof.marker import Call
    from pyprof.parse.ranges.sweep import Sweep


def column(sweep: Sweep, leaf: Int64Array) -> dict[str, DictionaryColumn]:
    """Build the column of result sizes of each row's innermost op call; {} if none is known.

    `leaf` is the range that each row is launched in, MISSING for none.
    """
    number = np.full(len(sweep.nest.parent) + 1, MISSING)
    values: list[list[int]] = []
    for around, called, read in _RULES:
        pairs = _pairs(sweep, around, called)
        first, which = combinations(*sweep.texts.code[pairs].T)
        sizes = []
        for texts in sweep.texts.code[pairs[first]].tolist():
            outer, inner = (sweep.texts.statements[index].call for index in texts)
            sizes.append(read(outer, inner) if outer and inner else None)
        places = [len(values) + at if size else MISSING for at, size in enumerate(sizes)]
        code = np.array(places, np.int64)
        sized = np.flatnonzero(code[which] != MISSING)
        number[pairs[sized, 0]] = code[which[sized]]
        values += [list(size or ()) for size in sizes]
    index = number[leaf]
    return {"resultSize": DictionaryColumn(index, values)} if (index != MISSING).any() else {}


def _pairs(sweep: Sweep, around: tuple[str, ...], called: tuple[str, ...]) -> Int64Array:
    """Find ranges of some ops directly inside ranges of others. Shape (n, 2)."""
    is_inner = matching_statements(sweep.texts, Kind.SEQ, lambda said: said.name in called)
    is_outer = matching_statements(sweep.texts, Kind.SEQ, lambda said: said.name in around)
    code, parent = sweep.texts.code, sweep.nest.parent
    inner = np.flatnonzero(is_inner[code] & (parent != MISSING))
    inner = inner[is_outer[code[parent[inner]]]]
    return np.stack([parent[inner], inner], axis=1)


def _restrided_size(outer: Call, view: Call) -> tuple[int, ...] | None:
    """Size of a view that repeats what is indexed: `aten::as_strided`."""
    source, given = (call.args[0] if call.args else None for call in (outer, view))
    if not isinstance(source, Tensor) or not isinstance(given, Tensor) or len(view.args) < 3:  # noqa: PLR2004 - size, stride
        return None
    size, stride = (_numbers(value) for value in view.args[1:3])
    repeats = size is not None and stride is not None and 0 in stride
    return size if repeats and given.numel == source.numel else None


def _found_size(outer: Call, inner: Call) -> tuple[int, ...] | None:
    """Size of the indices found, one row each: their number and the source's dimensions."""
    source = outer.args[0] if outer.args else None
    size = _numbers(inner.args[1]) if len(inner.args) > 1 else None
    if not isinstance(source, Tensor) or size is None or len(size) != 2:  # noqa: PLR2004 - a matrix
        return None
    rank = len(source.shape)
    if rank not in size:
        return None
    return (math.prod(size) // max(1, rank), rank)


def _numbers(value: object) -> tuple[int, ...] | None:
    listed = value if isinstance(value, tuple) else None
    if listed is None or not all(type(item) is int and item >= 0 for item in listed):
        return None
    return tuple(int(item) for item in listed)


_RULES = (
    (
        ("aten::index", "aten::index_put_", "aten::_index_put_impl_"),
        ("aten::as_strided",),
        _restrided_size,
    ),
    (("aten::nonzero",), ("aten::resize_", "aten::as_strided_"), _found_size),
)
"""Ops, the calls directly inside them, and how those calls' arguments give the op's result."""
