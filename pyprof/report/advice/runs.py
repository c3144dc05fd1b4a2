"""Runs of element-wise kernels over as many elements, which one kernel could do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from pyprof.gpu.roles import Role

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyprof.arrays import Ints, Mask
    from pyprof.report.advice.case import Case


def fusible(case: Case, wanted: Mask, *, chains: bool = False) -> tuple[Ints, NDArray[np.float64]]:
    """Find the rows in runs of at least two, and what each could win by being fused.

    A run is what a stream does one after the other, all element-wise, none of it of another size.
    One kernel that reads and writes once takes about as long as the longest: the others are won.
    In `chains` what one line does twice by one op ends a run: it may be a loop over tensors.
    """
    single = wanted & case.role(Role.ELEMENTWISE, Role.OPTIMIZER) & ~_many_tensors(case)
    records = case.table.records
    keys = [records.numpy(name) for name in ("start", "stream", "device", "pid")]
    order = np.lexsort(keys)
    size = _elements(case)[order]
    same = (size[1:] == size[:-1]) & (size[1:] > 0) & single[order][1:] & single[order][:-1]
    for key in keys[1:]:
        same &= np.diff(key[order]) == 0
    if chains:
        same &= ~_again(case, order)
    run = np.cumsum(np.concatenate([[True], ~same])[: len(order)]) - 1
    length = np.bincount(run)
    longest = np.zeros(len(length))
    np.maximum.at(longest, run, case.ns[order])
    total = np.bincount(run, weights=case.ns[order])
    inside = length[run] > 1
    won = case.ns[order] * (1 - longest[run] / np.maximum(total[run], 1))
    return order[inside], won[inside]


def _again(case: Case, order: Ints) -> Mask:
    """Tell of each row but the first whether it does what the row before it did, anew."""
    number = case.table.records.numpy("opId")[order]
    again = (np.diff(number) != 0) | (number[1:] < 0)
    op, line = (
        np.asarray(pc.fill_null(case.texts[name].indices, -1))[order] for name in ("op", "line")
    )
    kernel = case.table.records.coded("kLongName").index[order]
    what = np.where(op < 0, -2 - kernel, op)
    return np.asarray(again & (np.diff(what) == 0) & (np.diff(line) == 0))


def _many_tensors(case: Case) -> Mask:
    name = case.table.records.coded("kLongName")
    fused = ("multi_tensor", "fused", "foreach", "triton_")
    found = [any(part in text.lower() for part in fused) for text in name.values]
    return np.asarray(np.array([*found, False])[name.index])


def _elements(case: Case) -> Ints:
    """Give the elements of each row's largest input; by its grid where sizes are not known."""
    records = case.table.records
    sizes, grid, block = (records.coded(name) for name in ("sizes", "grid", "block"))
    known = np.array(
        [*(max((int(np.prod(one)) for one in value or ()), default=0) for value in sizes.values), 0]
    )
    threads = [np.array([*(int(np.prod(value)) if value else 0 for value in part.values), 0])
               for part in (grid, block)]  # fmt: skip
    launched = threads[0][grid.index] * threads[1][block.index]
    return np.where(known[sizes.index] > 0, known[sizes.index], launched)
