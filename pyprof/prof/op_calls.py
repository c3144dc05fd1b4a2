"""Which rows belong to one op call, by the ids of the ranges around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.ops.registry import BPROP
from pyprof.parse.records import distinct, numbers
from pyprof.prof.chosen_call import OWN, Work

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyprof.arrays import Ints
    from pyprof.parse.records import Records


def number(records: Records, works: list[Work], work_of: Ints, computes: NDArray[np.bool_]) -> Ints:
    """Number the op calls; rows of one call share its number.

    `computes` are the rows that may do their op's arithmetic.
    """
    if around(records) is None:
        return _runs(records, work_of, computes)
    ids = chosen(records, works, work_of)
    call = np.where(ids < 0, -1 - np.arange(len(ids)), ids)
    used, call = distinct(call)
    # Rows of one call in different surroundings work for the same: it is costed once.
    known: dict[object, int] = {}
    same = [known.setdefault((w.call, w.direction, w.dtype, w.output), len(known)) for w in works]
    return distinct(np.array(same, np.int64)[work_of] * len(used) + call)[1]


def chosen(records: Records, works: list[Work], work_of: Ints) -> Ints:
    """Give the id of the call that each row works for; -1 for a row that is a call of its own."""
    position = np.array([work.position for work in works], np.int64)[work_of]
    found = np.full(len(position), -1)
    if (ids := around(records)) is not None:
        offsets, members = ids
        within = (position != OWN) & (position < np.diff(offsets))
        found[within] = members[offsets[:-1][within] + position[within]]
    return found


def around(records: Records) -> tuple[Ints, Ints] | None:
    """Give offsets and ids of the calls around each row, ascending inward; None if not told."""
    column = records.arrow("callIds")
    if column.null_count == len(column):
        return None
    return column.offsets.to_numpy().astype(np.int64), column.values.to_numpy()


# --- files that do not tell op calls ------------------------------------------------------------


def _runs(records: Records, work_of: Ints, computes: NDArray[np.bool_]) -> Ints:
    """Infer the op calls of the original's files, which do not tell them.

    Kernels of one call follow each other, with the same texts and sequence numbers. Such a run is
    one call where autograd has a node for it: each forward call takes a number of its own, and a
    node runs once. Else calls take turns: where the names of kernels repeat, so do calls.
    """
    name, sequence = records.coded("kLongName").index, records.coded("seqId").index
    parts = (records.numpy("rank"), records.numpy("tid"), sequence, records.coded("trace").index)
    run = np.cumsum(np.any([np.diff(part, prepend=-2) for part in (work_of, *parts)], axis=0)) - 1
    begins = np.diff(run, prepend=-1) > 0
    first = np.flatnonzero(begins)
    several = np.diff(first, append=len(run)) > 1
    ends = np.append(first, len(run))[1:]
    for start, end in np.stack([first, ends], axis=1)[several & ~_of_one_node(records)[first]]:
        period = _period(name[start:end].tolist())
        if 2 * period <= end - start and computes[start : start + period].any():
            begins[start:end:period] = True
    return np.cumsum(begins) - 1


def _of_one_node(records: Records) -> NDArray[np.bool_]:
    """Tell which rows belong to a node of autograd: a backward one, or the forward call it is for.

    Ops that have no node write the number of the next op that has one: the last kernels of the
    forward pass with a number are those of the op that took it.
    """
    sequence = records.coded("seqId")
    told = np.array([*(bool(value) for value in sequence.values), False])[sequence.index]
    kind = records.coded("dir")
    backward = np.array([*(value == BPROP for value in kind.values), False])[kind.index]
    numbered = sequence.index + 1
    has_node = np.zeros(len(sequence.values) + 1, bool)
    has_node[numbered[backward & told]] = True
    work = numbers(numbered, records.coded("marker").index, records.templates().index)
    last = np.full(len(has_node), -1)
    forward = np.flatnonzero(told & ~backward)
    last[numbered[forward]] = work[forward]  # the last assignment stays
    took = has_node[numbered] & (last[numbered] == work)
    return np.asarray(told & (backward | took))


def _period(names: list[int]) -> int:
    """Give after how many names they repeat, up to the last; how many there are if they do not."""
    border = [0] * len(names)  # Knuth, Morris, Pratt: the longest start that is an end as well
    for at in range(1, len(names)):
        length = border[at - 1]
        while length and names[at] != names[length]:
            length = border[length - 1]
        border[at] = length + (names[at] == names[length])
    return len(names) - border[-1]
