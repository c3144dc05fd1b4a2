"""Ops that compute nothing: on tensors without data, and while torch.compile traces.

FakeTensorMode and the meta device run an op for the shape of its result alone, in the time that a
Python function takes; torch.compile traces a model with such tensors. A trace tells neither the
device nor the class of a tensor, so these ops are recognised by what is around and inside them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyprof.readers.kineto.nest import within
from pyprof.readers.kineto.op_texts import OP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.arrays import Ints, Mask
    from pyprof.readers.kineto.nest import Nested
    from pyprof.readers.kineto.ranges import Columns

_DISPATCH = frozenset({"PythonDispatchMode", "PythonSubclass"})
"""Ranges around what a mode, or a subclass of tensor, does in Python in the place of an op."""
_PRIMITIVES = "prims::"
"""Ops that reference implementations in Python call, as those of the meta device are."""
_PRODUCTS = frozenset(
    f"aten::{name}"
    for name in (
        *("mm", "bmm", "addmm", "addbmm", "baddbmm", "mv", "dot", "_int_mm"),
        *("convolution", "convolution_backward", "linear_backward"),
    )
)
"""Ops that call new_empty on the meta device (torch/_meta_registrations.py), and on no other."""


class Tracing(NamedTuple):
    """Ops that do no work themselves. All masks: one entry per row."""

    replaced: Mask
    """Dispatch to Python, and ops replaced by it: what is inside may work."""
    shapes: Mask
    """Ops on tensors without data, and all inside of them."""


def tracing(ranges: Columns, nested: Nested, names: Sequence[str], real: Mask) -> Tracing:
    """Find the ops that do no work; `real` are those that may do some, by their names."""
    mode = _named(ranges, [name in _DISPATCH for name in names])
    replaced = _around(mode, nested.op)
    shapes = nested.compiling | _fake_modes(ranges, nested, names, mode, replaced)
    shapes |= _meta_ops(ranges, nested, names, real)
    return Tracing(mode | replaced, shapes | within(shapes, nested.op))


def _fake_modes(
    ranges: Columns, nested: Nested, names: Sequence[str], mode: Mask, replaced: Mask
) -> Mask:
    """Find the ranges of FakeTensorMode: it makes a tensor without memory for each result."""
    empty = _named(ranges, [name == "aten::empty_strided" for name in names]) & ~replaced
    detach = _named(ranges, [name == "aten::detach" for name in names]) & ~replaced
    return mode & _around(empty, nested.op) & _around(detach, nested.op)


def _meta_ops(ranges: Columns, nested: Nested, names: Sequence[str], real: Mask) -> Mask:
    """Find ops on the meta device, with the ops of ATen around them."""
    primitive = _named(ranges, [name.startswith(_PRIMITIVES) for name in names])
    product = _named(ranges, [name in _PRODUCTS for name in names])
    allocates = _named(ranges, [name == "aten::new_empty" for name in names])
    meta = (primitive | (product & _around(allocates, nested.op))) & ~_around(real, nested.op)
    of_aten = _named(ranges, [name.startswith(("aten::", _PRIMITIVES)) for name in names])
    rows = np.flatnonzero(meta)
    while len(rows):  # as often as ops are deep
        outer = nested.op[rows]
        rows = np.unique(outer[outer >= 0])
        rows = rows[of_aten[rows] & ~meta[rows]]
        meta[rows] = True
    return meta


def _named(ranges: Columns, chosen: Sequence[bool]) -> Mask:
    """Find the ops of chosen names."""
    is_named: Mask = ranges.kind == OP
    is_named[is_named] = np.array(chosen, dtype=bool)[ranges.name[is_named]]
    return is_named


def _around(rows: Mask, parent: Ints) -> Mask:
    """Find the ops right around some rows."""
    outer = parent[rows]
    around = np.zeros(len(rows), dtype=bool)
    around[outer[outer >= 0]] = True
    return around
