"""A trace without GPU work: the CPU ops in which the work was done become its activities."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pyprof import schema
from pyprof.readers.kineto.ranges import OP

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from pyprof.readers.kineto.columns import Ints, Threads
    from pyprof.readers.kineto.nest import Nested
    from pyprof.readers.kineto.ranges import Columns

    Mask = npt.NDArray[np.bool_]

_OWN_SHARE = 0.5
"""Of the time of all calls of a name, that has to be its own and not that of ops inside."""

BOOKKEEPING = frozenset(
    {
        "alias",
        "as_strided",
        "chunk",
        "contiguous",
        "detach",
        "detach_",
        "diagonal",
        "empty",
        "empty_like",
        "empty_strided",
        "expand",
        "expand_as",
        "flatten",
        "is_nonzero",
        "item",
        "lift_fresh",
        "_local_scalar_dense",
        "movedim",
        "narrow",
        "new_empty",
        "new_empty_strided",
        "_nnpack_available",
        "permute",
        "requires_grad_",
        "reshape",
        "_reshape_alias",
        "resize_",
        "resolve_conj",
        "resolve_neg",
        "result_type",
        "select",
        "set_",
        "slice",
        "split",
        "split_with_sizes",
        "squeeze",
        "squeeze_",
        "swapaxes",
        "t",
        "to",
        "transpose",
        "transpose_",
        "unbind",
        "unfold",
        "unflatten",
        "_unsafe_view",
        "unsqueeze",
        "unsqueeze_",
        "view",
        "view_as",
    }
)
"""Ops that on a GPU launch nothing: views, memory without contents, looks at what is there.

Where one of them has to copy after all, the copy is an op of its own inside it.
"""

_ENGINE = re.compile(
    r"(?:torch::)?autograd::|\w*Backward\d+$|torch(?:::|\.)distributed[\w:.]*\breducer::"
)
"""Names of what autograd and DDP's reducer put around the ops that they call."""


def working(ranges: Columns, nested: Nested, names: Sequence[str]) -> Mask:
    """Tell which rows are ops that do work, none of them inside of another.

    A leaf does, views and nodes of the autograd engine left aside. Further out, an op of the
    dispatcher does whose calls, all together, spend half of their time outside of other ops: on
    the CPU a matrix product copies its bias with an op and then multiplies by itself. A user's
    function only holds ops together, unless there are none inside.
    """
    ops = np.flatnonzero(ranges.kind == OP)
    numbers = ranges.name[ops]
    real = np.zeros(len(ranges.kind), dtype=bool)
    real[ops] = ~_idle(names)[numbers]
    parent = _parents(nested.op, real)
    duration = np.maximum(nested.end - ranges.start, 0)
    inside = np.zeros(len(duration), dtype=np.int64)
    held = np.flatnonzero(real & (parent >= 0))
    np.add.at(inside, parent[held], duration[held])
    total = np.bincount(numbers, weights=duration[ops], minlength=len(names))
    own = np.bincount(numbers, weights=(duration - inside)[ops], minlength=len(names))
    busy = np.array(["::" in name for name in names], dtype=bool) & (own >= _OWN_SHARE * total)
    doing = real.copy()
    doing[ops] &= busy[numbers]
    leaf = real.copy()
    leaf[parent[held]] = False
    doing |= leaf
    found: Mask = doing & ~_within(doing, parent)
    return found


def _idle(names: Sequence[str]) -> Mask:
    """Tell the names of ops that are never rows."""
    return np.array(
        [
            name.removeprefix("aten::") in BOOKKEEPING or _ENGINE.match(name) is not None
            for name in names
        ],
        dtype=bool,
    )


def _parents(op: Ints, real: Mask) -> Ints:
    """Give each row the innermost real op around it; -1 for none."""
    parent = op.copy()
    active = np.flatnonzero(parent >= 0)
    while len(active):  # each step skips all that were skipped before
        active = active[~real[parent[active]]]
        parent[active] = parent[parent[active]]
        active = active[parent[active] >= 0]
    return parent


def _within(doing: Mask, parent: Ints) -> Mask:
    """Tell which rows lie in an op that does the work, at any depth."""
    above = parent.copy()
    active = np.flatnonzero(above >= 0)
    covered = np.zeros(len(doing), dtype=bool)
    covered[active] = doing[above[active]]
    while len(active):  # each step looks at twice as many levels
        covered[active] |= covered[above[active]]
        above[active] = above[above[active]]
        active = active[above[active] >= 0]
    return covered


def activities(
    ranges: Columns, nested: Nested, names: Sequence[str], threads: Threads
) -> tuple[pa.Table, pa.Table]:
    """Give the working ops as activities, each with a call of its own that ties it to its range."""
    rows = np.flatnonzero(working(ranges, nested, names) & (nested.end >= 0))
    corr = np.arange(1, len(rows) + 1)
    number = pa.array(ranges.name[rows], pa.int32())
    name = pa.DictionaryArray.from_arrays(number, pa.array(names, pa.string()))
    known = np.array(threads.known or [(0, 0)], dtype=np.int64)[ranges.thread[rows]]
    times = {"start": ranges.start[rows], "end": nested.end[rows], "corr": corr, "name": name}
    table = schema.table(
        schema.ACTIVITIES,
        {
            **times,
            "kind": np.full(len(rows), schema.CPU, dtype=np.int8),
            "pid": known[:, 0],
            "device": np.zeros(len(rows), dtype=np.int32),
            "stream": known[:, 1],
        },
    )
    calls = schema.table(schema.CALLS, {**times, "thread": ranges.thread[rows].astype(np.int32)})
    return table, calls
