"""cuDNN's benchmark: the kernels that a convolution's first call tries before it chooses.

With torch.backends.cudnn.benchmark the first call of each shape runs every algorithm, and then the
fastest once more for the result; later calls run that alone. By name the trials are convolutions
like the chosen one, but they add nothing to the result, so that no FLOPs belong to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.records.records import number_combinations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.arrays import Int64Array, IntArray, Mask
    from pyprof.records.records import Records


MIN_TRIED = 2
"""Convolution kernels that a call must have beyond those of later calls: fewer may be help."""


def autotuning_trials(
    records: Records, work_of: IntArray, call: IntArray, conv: Mask, computes: Mask
) -> Mask:
    """Mask of the rows that were only tried.

    `conv` are the kernels of convolutions, `computes` those that could do their arithmetic. A call
    is a benchmark if the last call of the same op text, in the same process and on the same device,
    runs fewer kernels, and this call ran all of those, too, in the same order, besides at least
    MIN_TRIED others that could compute, one of them of another name. Without a later call to
    compare with, nothing is a trial. Rows are in the order in which they ran.
    """
    is_trial = np.zeros(len(call), bool)
    name = records.dictionary("kLongName").index
    for rows, model in _candidates(records, work_of, call, conv):
        last_run = _last_run(name[rows].tolist(), name[model].tolist())
        if last_run is None:
            continue
        rest = np.delete(rows, last_run)
        able = rest[computes[rest]]
        if len(able) >= MIN_TRIED and np.setdiff1d(name[able], name[model]).size:
            is_trial[rest] = True
    return is_trial


def _candidates(
    records: Records, work_of: IntArray, call: IntArray, conv: Mask
) -> list[tuple[Int64Array, Int64Array]]:
    """Pairs of rows: of a call with more kernels than the last of its kind, and of that one."""
    chosen = np.flatnonzero(conv)
    chosen = chosen[np.argsort(call[chosen], kind="stable")]
    first = np.flatnonzero(np.diff(call[chosen], prepend=-1))
    count = np.diff(first, append=len(chosen))
    begins = chosen[first]
    # number rows by op call text, process and device
    kind = number_combinations(
        work_of[begins], records.numpy("pid")[begins], records.numpy("device")[begins]
    )
    order = np.lexsort((begins, kind))
    last_of_kind = np.flatnonzero(np.diff(kind[order], append=-1))
    last = order[last_of_kind[np.searchsorted(kind[order][last_of_kind], kind)]]
    more = np.flatnonzero((count >= count[last] + MIN_TRIED) & (begins < begins[last]))
    return [
        (_rows(chosen, first, count, index), _rows(chosen, first, count, int(last[index])))
        for index in more.tolist()
    ]


def _rows(chosen: Int64Array, first: Int64Array, count: Int64Array, place: int) -> Int64Array:
    return chosen[first[place] : first[place] + count[place]]


def _last_run(names: Sequence[int], model: Sequence[int]) -> list[int] | None:
    """Find the last indices of `model` as a subsequence of `names`; None if it is not one."""
    positions: list[int] = []
    index = len(names)
    for wanted in reversed(model):
        index = next((at for at in range(index - 1, -1, -1) if names[at] == wanted), -1)
        if index < 0:
            return None
        positions.append(index)
    return positions
