"""Which rows belong to one op call, and which costs and bytes nested calls share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof.arrays import MISSING
from pyprof.ops.registry import BPROP
from pyprof.prof.apportion import apportion
from pyprof.prof.calls.attributed_call import OWN
from pyprof.records.records import distinct, number_combinations

if TYPE_CHECKING:
    from pyprof.arrays import Int64Array, IntArray, Mask
    from pyprof.records.records import DictionaryColumn, Records


def number(records: Records, work: DictionaryColumn, ids: IntArray, computes: Mask) -> IntArray:
    """Number the op calls; rows of one call share its number.

    `work` is what each row works for, `ids` the result of `chosen`, `computes` the rows that may do
    their op's arithmetic.
    """
    if around(records) is None:
        return _runs(records, work.index, computes)
    own = -1 - np.arange(len(ids), dtype=np.int32)  # no id is negative
    first, call = distinct(np.where(ids < 0, own, ids))
    # Rows of one call in different contexts usually do the same work: it is costed once.
    numbers: dict[object, int] = {}
    same_of_row = work.numpy(
        lambda work: numbers.setdefault(
            (work.call, work.direction, work.dtype, work.output, work.call_context), len(numbers)
        ),
        MISSING,
    )
    if (same_of_row == same_of_row[first][call]).all():
        return call
    return number_combinations(same_of_row, call)


def chosen(records: Records, work: DictionaryColumn) -> IntArray:
    """Id of the call that each row works for; -1 for a row that is a call of its own."""
    position = work.numpy(lambda work: work.position, OWN)
    chosen_id = np.full(len(position), -1, np.int32)
    if (ids := around(records)) is not None:
        offsets, members = ids
        chosen_id = chosen_id.astype(members.dtype, copy=False)
        within = (position != OWN) & (position < np.diff(offsets))
        chosen_id[within] = members[offsets[:-1][within] + position[within]]
    return chosen_id


def outermost(records: Records, call: IntArray) -> IntArray:
    """Number the calls that rows are named after: the outermost marker, else PyTorch's range.

    An optimizer's step is one, although each op inside is costed by itself. `call` numbers the
    costed calls; it is used for rows in no call, and for files that do not record enclosing calls.
    """
    ids = around(records)
    if ids is None:
        return call
    offsets, members = ids
    inside = np.diff(offsets) > 0
    number = -1 - call.astype(np.int64)  # no id is negative
    if inside.any():
        begins = offsets[:-1][inside]
        marked = records.dictionary("marker").matches()[inside]  # then the marker's id comes first
        number[inside] = np.where(marked, members[begins], np.minimum.reduceat(members, begins))
    return distinct(number)[1]


def around(records: Records) -> tuple[IntArray, IntArray] | None:
    """Offsets and ids of the calls around each row, outermost first; None if unknown."""
    column = records.arrow("callIds")
    if column.null_count == len(column):
        return None
    return column.offsets.to_numpy(), column.values.to_numpy()


def _runs(records: Records, work_of: IntArray, computes: Mask) -> Int64Array:
    """Infer the op calls of the original PyProf's files, which do not record them.

    Kernels of one call follow each other, with the same texts and sequence numbers. Such a run is
    one call if autograd has a node for it: each forward call has its own number, and a node runs
    once. Otherwise calls are separated where the sequence of kernel names repeats.
    """
    name, sequence = records.dictionary("kLongName").index, records.dictionary("seqId").index
    parts = (
        records.numpy("rank"),
        records.numpy("tid"),
        sequence,
        records.dictionary("trace").index,
    )
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


def _of_one_node(records: Records) -> Mask:
    """Mask of the rows of an autograd node: backward ones, or those of its forward call.

    Ops that have no node write the number of the next op that has one: the last kernels of the
    forward pass with a number are those of the op that took it.
    """
    sequence = records.dictionary("seqId")
    has_seq = sequence.matches()
    backward = records.dictionary("dir").is_in(BPROP)
    numbered = sequence.index + 1
    has_node = np.zeros(len(sequence.values) + 1, bool)
    has_node[numbered[backward & has_seq]] = True
    work = number_combinations(
        numbered, records.dictionary("marker").index, records.templates().index
    )
    last = np.full(len(has_node), -1)
    forward = np.flatnonzero(has_seq & ~backward)
    last[numbered[forward]] = work[forward]  # the last assignment stays
    took = has_node[numbered] & (last[numbered] == work)
    return np.asarray(has_seq & (backward | took))


def _period(names: list[int]) -> int:
    """The period with which names repeat to the end; their number if they do not."""
    border = [0] * len(names)  # KMP failure function: longest proper prefix that is a suffix
    for at in range(1, len(names)):
        length = border[at - 1]
        while length and names[at] != names[length]:
            length = border[length - 1]
        border[at] = length + (names[at] == names[length])
    return len(names) - border[-1]


# `aten::cudnn_convolution_backward` of old torch computes both gradients, and the op that it calls
# for one of them has a cost of its own; the kernels of the other fall to the outer call. Only
# products are looked at: their arithmetic is that of the call around them, while a copy or a bias
# inside a convolution comes on top of it.
def nested_products(
    offsets: IntArray,
    members: IntArray,
    chosen: IntArray,
    call: IntArray,
    product: Mask,
) -> Int64Array:
    """Find (inner call, outer call) where both are charged products. Shape (n, 2).

    `members[offsets[i]:offsets[i + 1]]` are the ids of the calls around row i, ascending inward;
    `chosen` is the one that it works for, -1 if none; `call` its number.
    """
    charged = product & (chosen >= 0)
    within = np.repeat(np.where(charged, chosen, -1), np.diff(offsets))
    outer = np.flatnonzero(members < within)
    ids, first = np.unique(chosen[charged], return_index=True)
    outer = outer[np.isin(members[outer], ids)]
    if not len(outer):
        return np.zeros((0, 2), np.int64)
    number = call[np.flatnonzero(charged)[first]]
    # The nearest outer call is a row's last one; it is itself deducted from those around it.
    rows, around = np.searchsorted(offsets, outer, "right") - 1, members[outer]
    nearest = np.append(rows[1:] != rows[:-1], [True])
    pairs = np.stack([call[rows[nearest]], number[np.searchsorted(ids, around[nearest])]], axis=1)
    return np.unique(pairs, axis=0)


def exclusive_totals(total: Int64Array, call: IntArray, pairs: Int64Array) -> Int64Array:
    """Subtract from each outer call's total those of the calls inside it; never below 0.

    MISSING if the total of a call inside is unknown: then so is what is left.
    """
    if not len(pairs):
        return total
    total_of = _totals_by_call(total, call)
    inner, outer = pairs.T
    less = np.zeros_like(total_of)
    np.add.at(less, outer, np.maximum(total_of[inner], 0))
    left = np.where(total == MISSING, MISSING, np.maximum(total - less[call], 0))
    return np.where(unknown_inside(total, call, pairs) >= 0, MISSING, left)


def unknown_inside(total: Int64Array, call: IntArray, pairs: Int64Array) -> Int64Array:
    """For each row, a call inside its own whose total is unknown; -1 if there is none."""
    total_of = _totals_by_call(total, call)
    inner, outer = pairs[total_of[pairs[:, 0]] == MISSING].T
    inner_call = np.full_like(total_of, -1)
    inner_call[outer] = inner
    return inner_call[call]


def propagate_unknown(
    reason_of: IntArray, total: Int64Array, call: IntArray, pairs: Int64Array, offset: int
) -> None:
    """Point rows made unknown by a call inside theirs to that call's reason, plus `offset`."""
    inner = unknown_inside(total, call, pairs)
    rows = (inner >= 0) & (total != MISSING)
    reason_of[rows] = offset + _totals_by_call(reason_of, call)[inner[rows]] % offset


def _totals_by_call(total: IntArray, call: IntArray) -> Int64Array:
    total_of = np.full(int(call.max(initial=-1)) + 1, MISSING)
    total_of[call] = total
    return total_of


# The gradient of a loss or of an embedding is as large as its input. A fill or memset writes zeros
# there, and the op's own kernel touches only a few elements: charged with the whole gradient, it
# would seem many times faster than memory.
#
# A product's bias may be copied into the result first, or added to it afterwards, or its gradient
# summed, by a separate kernel. That kernel moves the bias, and what it is added to or the sum of.
SPARSE = frozenset({"loss", "index", "embedding"})
"""Families whose gradients' kernels may leave most of a result as a fill before them wrote it."""


@dataclass(frozen=True, slots=True)
class FillCosts:
    """Rows that fill memory, and rows that may rely on it. Arrays have one value per row."""

    call: IntArray
    """Number of the op call that a row works for."""
    part: Int64Array
    """Bytes of the row's call that a fill writes, or that the kernel of its bias moves."""
    weight: Int64Array
    """A row's part in the cost of its call, where there can be such a kernel; else 0."""
    own: Mask
    """Memsets, and kernels of an op that fills: they have bytes of their own."""
    helps: Int64Array
    """Weight of the fills and bias kernels that serve such a call without an op of their own."""

    def charge(
        self,
        total: Int64Array,
        moved: Int64Array,
        chosen: IntArray,
        ids: tuple[IntArray, IntArray] | None,
    ) -> Int64Array:
        """Return `moved`, bytes per row, with each part charged once: to its fill, or bias kernel.

        `total` are the bytes of each row's call; `ids` the offsets and ids of the calls around each
        row, ascending inward; `chosen` is the call that it works for, -1 for none.
        """
        filled_call, helped = np.zeros((2, int(self.call.max(initial=-1)) + 1), bool)
        if ids is not None:
            # a fill inside is as large as the call's result
            offsets, members = ids
            row = np.flatnonzero(self.weight > 0)
            works, first = np.unique(chosen[row], return_index=True)
            around = np.flatnonzero(np.repeat(self.own & (chosen >= 0), np.diff(offsets)))
            index = np.searchsorted(works, members[around])
            is_work = np.append(works, MISSING)[index] == members[around]
            inside, outer = around[is_work], row[first[index[is_work]]]
            owner = np.searchsorted(offsets, inside, "right") - 1
            filled_call[self.call[outer[self.part[outer] == moved[owner]]]] = True
        helped[self.call[self.helps > 0]] = True
        helped &= ~filled_call
        rows = (self.weight > 0) & (filled_call | helped)[self.call] & (total != MISSING)
        if not rows.any():
            return moved
        part = np.minimum(self.part, np.maximum(total, 0))
        rest = apportion(total - part, self.weight, self.call)
        filled = apportion(part, self.helps, self.call)
        moved = np.where(rows, rest, moved)
        return np.where((self.helps > 0) & helped[self.call] & (total != MISSING), filled, moved)
