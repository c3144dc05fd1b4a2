"""Forward work that the backward pass runs again: gradient checkpointing, of either kind.

Autograd runs a node with gradients off, so the ops that the node calls have no sequence number. An
op with a number inside such a node ran under `torch.enable_grad()`: it is a forward op, run again.
Without reentrant checkpointing that happens inside the first node that asks for a tensor that was
not kept (`torch.utils.checkpoint.unpack_hook`), whichever op that node belongs to. Reentrant
checkpointing has a node of its own, which also contains the backward pass of what it ran again.

If all ops of a node have numbers, the script differentiates the backward pass (`create_graph`):
they are the node's own.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from pyprof.arrays import MISSING, nearest
from pyprof.marker import Kind
from pyprof.parse.ranges import texts
from pyprof.records.records import combinations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pyprof.arrays import Int64Array, IntArray, Mask
    from pyprof.parse.ranges.nesting import Nest
    from pyprof.parse.ranges.range_stacks import RangeStack
    from pyprof.parse.ranges.texts import Texts

ELSEWHERE, HERE = 1, 2
"""Which nodes go back over recomputed work: those of the original, or its own in the same node."""


def begins(nest: Nest, read: Texts) -> NDArray[np.int8] | None:
    """Find the ranges in which a backward node begins to run forward work again; None if none do.

    0 for all others, else ELSEWHERE or HERE.
    """
    node = texts.matches(read, Kind.SEQ, attrgetter("is_node"))
    numbered = texts.matches(read, Kind.SEQ, attrgetter("has_number")) & (read.seq >= 0) & ~node
    if not node.any() or not numbered.any():
        return None
    is_seq = texts.kinds(read) == Kind.SEQ
    engine = texts.matches(read, Kind.SEQ, attrgetter("is_engine"))
    around = nearest(nest.parent, is_seq)
    op = np.flatnonzero(is_seq & ~node & ~engine & _look_up(node, around))
    owner = around.take(op)
    with_number = numbered.take(op)
    with_number[with_number] = ~_applies_own_function(read, op[with_number], owner[with_number])
    if not with_number.any():
        return None
    inside = np.flatnonzero((node | engine) & _look_up(node, around))
    goes_back = _to_mask(around.take(inside), len(node))
    own_work = _to_mask(owner[~with_number], len(node))
    # Choose the numbered ops of each node, and those between them: the model may use no_grad.
    first, last = np.full(int(owner.max()) + 1, len(op)), np.full(int(owner.max()) + 1, MISSING)
    index = np.flatnonzero(with_number)
    np.minimum.at(first, owner[index], index)
    np.maximum.at(last, owner[index], index)
    every = np.arange(len(op))
    chosen = (every >= first[owner]) & (every <= last[owner])
    op, owner = op[chosen], owner[chosen]
    of_node = (own_work | goes_back).take(owner)
    op, owner = op[of_node], owner[of_node]
    if not len(op):
        return None
    begin_how = np.zeros(len(node), np.int8)
    begin_how[op] = np.where(goes_back.take(owner), HERE, ELSEWHERE)
    _spread_to_markers(begin_how, op, nest, is_seq)
    return begin_how


def _applies_own_function(read: Texts, op: IntArray, owner: IntArray) -> Mask:
    """Mark ops that are the function of the node that calls them, as an all-to-all's backward is.

    `torch.autograd.Function.apply` takes a number with gradients off, too.
    """
    first, group = combinations(read.code[op], read.code[owner])
    own = [
        read.statements[read.code[node]].name
        == f"{read.statements[read.code[called]].name}Backward"
        for called, node in zip(op[first].tolist(), owner[first].tolist(), strict=True)
    ]
    return np.array(own, bool)[group]


def _look_up(mask: Mask, ranges: IntArray) -> Mask:
    """Look ranges up in a mask; False for MISSING."""
    return np.append(mask, [False])[ranges]


def _to_mask(ranges: IntArray, count: int) -> Mask:
    mask = np.zeros(count, bool)
    mask[ranges] = True
    return mask


def _spread_to_markers(
    begin_how: NDArray[np.int8], op: Int64Array, nest: Nest, is_seq: Mask
) -> None:
    """Extend each beginning to the ranges between op and node: markers, modules, lines."""
    around = nest.parent.take(op)
    while True:
        left = np.flatnonzero((around != MISSING) & ~_look_up(is_seq, around))
        if not len(left):
            return
        op, around = op[left], around[left]
        begin_how[around] = begin_how[op]
        around = nest.parent.take(around)


def full_layers(described: Sequence[RangeStack]) -> list[tuple[str, ...]]:
    """Return the layers of each path; for recomputed work, those of its forward pass if known.

    A recomputed module may lack some modules that were around it in the forward pass. If exactly
    one forward path ends with the modules that are recorded, that path is used.
    """
    layers = [entry.layer for entry in described]
    recomputed = {entry.layer for entry in described if entry.recomputed and entry.layer}
    if not recomputed:
        return layers
    innermost = {layer[-1] for layer in recomputed}
    candidates: dict[str, set[tuple[str, ...]]] = {}
    for entry in described:
        if not entry.backward and entry.layer and entry.layer[-1] in innermost:
            candidates.setdefault(entry.layer[-1], set()).add(entry.layer)
    full = {}
    for layer in recomputed:
        ending = [path for path in candidates.get(layer[-1], ()) if path[-len(layer) :] == layer]
        full[layer] = ending[0] if len(ending) == 1 else layer
    return [
        full.get(layer, layer) if entry.recomputed else layer
        for entry, layer in zip(described, layers, strict=True)
    ]
