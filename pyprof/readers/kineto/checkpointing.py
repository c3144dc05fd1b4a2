"""Finds ops that began and never ran: the last ones that gradient checkpointing recomputes.

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
from pyprof.readers.kineto.nest import nearest, ops_named
from pyprof.readers.kineto.op_texts import OP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.arrays import Int64Array
    from pyprof.readers.kineto.nest import Nested
    from pyprof.readers.kineto.ranges import Columns

_NODE = re.compile(r"\w+Backward\d+$")
_HOOK = "aten::detach"
"""The op called by the hook that keeps a tensor."""
_RUN = KEEPS_RESULT | BOOKKEEPING
"""Ops that ran before they handed over a result, or have nothing to run."""


def stopped(ranges: Columns, nested: Nested, names: Sequence[str]) -> Int64Array:
    """Find the ops that were left before they ran, and the ops around them in the node."""
    op = nested.op
    node = ops_named(ranges, [_NODE.match(name) is not None for name in names])
    around = nearest(op, node)
    # A node's own ops have no number: they have no backward pass.
    again = (ranges.kind == OP) & ~node & (around >= 0) & (ranges.seq >= 0) & (ranges.forward == 0)
    hook = ops_named(ranges, [name == _HOOK for name in names]) & (ranges.seq < 0)
    caller = op[hook]
    caller = caller[caller >= 0]
    hooked = np.unique(around[caller[again[caller]]])
    if not len(hooked):  # nearly always
        return hooked
    rows = np.flatnonzero(again & np.isin(around, hooked))
    rows = rows[np.lexsort((ranges.order[rows], ranges.start[rows], around[rows]))]
    last = rows[np.diff(around[rows], append=-1) != 0]  # of each node
    plain = [name.removeprefix("aten::") for name in names]
    runs = [not {name, name.removesuffix("_")}.isdisjoint(_RUN) for name in plain]
    last = last[~ops_named(ranges, runs)[last]]
    rows = np.setdiff1d(last, op[(op >= 0) & ~hook])
    levels = [rows]
    while len(rows):  # outward, up to the node
        rows = np.unique(op[rows])
        rows = rows[(rows >= 0) & ~node[rows]]
        levels.append(rows)
    return np.unique(np.concatenate(levels))
