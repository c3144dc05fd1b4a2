"""A trace without GPU work: the CPU ops in which the work was done become its activities."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pyprof import schema
from pyprof.readers.kineto.cpu_names import BOOKKEEPING, MOVES, WORKERS
from pyprof.readers.kineto.ranges import OP

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from pyprof.readers.kineto.columns import Ints, Threads
    from pyprof.readers.kineto.nest import Nested
    from pyprof.readers.kineto.ranges import Columns

    Mask = npt.NDArray[np.bool_]

_ENGINE = re.compile(
    r"(?:torch::)?autograd::|\w*Backward\d+$|torch(?:::|\.)distributed[\w:.]*\breducer::"
)
"""Names of what autograd and DDP's reducer put around the ops that they call."""


def working(ranges: Columns, nested: Nested, names: Sequence[str]) -> Mask:
    """Tell which rows are ops that do work, none of them inside of another.

    An op does the work itself when nothing inside of it computes: views and nodes of the autograd
    engine count for nothing, and copies and fills are what it needs to begin, as a matrix product
    copies its bias. One that is known to do more than the ops inside does, too; any other op only
    holds those. A user's function holds all ops that are in it. No duration is looked at: a busy
    machine must not choose other rows.
    """
    op = ranges.kind == OP

    def tell(answers: Sequence[bool]) -> Mask:
        found = np.zeros(len(op), dtype=bool)
        found[op] = np.array(answers, dtype=bool)[ranges.name[op]]
        return found

    real = tell([not _is_idle(name) for name in names])
    parent = _parents(nested.op, real)
    computes = real & ~tell([_plain(name) in MOVES for name in names])
    whole = computes & tell(["::" in name for name in names]) & ~_around(computes, parent)
    works = tell([_plain(name) in WORKERS for name in names])
    # Layers of functorch put an op around itself: the innermost one is that which runs.
    works &= ~_around(works, parent)
    doing = (real & ~_around(real, parent)) | whole | works
    found: Mask = doing & ~_within(doing, parent)
    return found


def _around(rows: Mask, parent: Ints) -> Mask:
    """Tell what has one of these rows inside of it, at any depth."""
    found = np.zeros(len(rows), dtype=bool)
    outer = parent[rows]
    while len(outer := np.unique(outer[outer >= 0])):  # as often as ops are deep
        outer = outer[~found[outer]]
        found[outer] = True
        outer = parent[outer]
    return found


def _is_idle(name: str) -> bool:
    """Tell whether ops of a name are never rows."""
    plain = _plain(name)
    in_place = plain.removesuffix("_")
    return plain in BOOKKEEPING or in_place in BOOKKEEPING or _ENGINE.match(name) is not None


def _plain(name: str) -> str:
    return name.removeprefix("aten::")


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
