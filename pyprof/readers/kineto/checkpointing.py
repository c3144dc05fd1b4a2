"""Ops that began and never ran: the last ones of what gradient checkpointing computes again.

A backward node asks for a tensor that the forward pass did not keep, and the forward is run again
inside of it. As soon as the last tensor that is needed has been handed over, PyTorch ends that by
an exception: inside the op that handed it over, and when that is one of its inputs, before the op
computed anything (torch.utils.checkpoint.set_checkpoint_early_stop).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from pyprof.readers.kineto.cpu import BOOKKEEPING, KEEPS_RESULT
from pyprof.readers.kineto.nest import nearest
from pyprof.readers.kineto.op_texts import OP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.arrays import Int64Array, Mask
    from pyprof.readers.kineto.nest import Nested
    from pyprof.readers.kineto.ranges import Columns

_NODE = re.compile(r"\w+Backward\d+$")
_HOOK = "aten::detach"
"""What the hook calls that is handed a tensor to keep."""


def stopped(ranges: Columns, nested: Nested, names: Sequence[str]) -> Int64Array:
    """Find the ops that were left before they ran, and the ops around them in the node."""
    node = _named(ranges, [_NODE.match(name) is not None for name in names])
    around = nearest(nested.op, node)
    # A node's own ops have no number: nothing goes back over them.
    again = (ranges.kind == OP) & ~node & (around >= 0) & (ranges.seq >= 0) & (ranges.forward == 0)
    hook = _named(ranges, [name == _HOOK for name in names]) & (ranges.seq < 0)
    hooked = np.unique(around[_parents(nested.op, hook, again)])
    if not len(hooked):  # nearly always
        return hooked
    last = _last(np.flatnonzero(again & np.isin(around, hooked)), around, ranges)
    ran = np.unique(nested.op[(nested.op >= 0) & ~hook])
    last = last[~_named(ranges, [_surely_runs(name) for name in names])[last]]
    return _outward(np.setdiff1d(last, ran), nested.op, node)


def _surely_runs(name: str) -> bool:
    plain = name.removeprefix("aten::")
    return not {plain, plain.removesuffix("_")}.isdisjoint(KEEPS_RESULT | BOOKKEEPING)


def _named(ranges: Columns, chosen: Sequence[bool]) -> Mask:
    is_named: Mask = ranges.kind == OP
    is_named[is_named] = np.array(chosen, dtype=bool)[ranges.name[is_named]]
    return is_named


def _parents(op: Int64Array, rows: Mask, wanted: Mask) -> Int64Array:
    outer = op[rows]
    outer = outer[outer >= 0]
    parents: Int64Array = outer[wanted[outer]]
    return parents


def _last(rows: Int64Array, group: Int64Array, ranges: Columns) -> Int64Array:
    """Return the row of each group that began last."""
    rows = rows[np.lexsort((ranges.order[rows], ranges.start[rows], group[rows]))]
    last_rows: Int64Array = rows[np.diff(group[rows], append=-1) != 0]
    return last_rows


def _outward(rows: Int64Array, op: Int64Array, node: Mask) -> Int64Array:
    """Return rows and the ops around them, up to the node."""
    levels = [rows]
    while len(rows):
        rows = np.unique(op[rows])
        rows = rows[(rows >= 0) & ~node[rows]]
        levels.append(rows)
    return np.unique(np.concatenate(levels))
