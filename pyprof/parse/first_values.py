"""First values of parameters, found without stacks: tensors filled in place before all passes."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from pyprof.arrays import ints
from pyprof.parse.ranges import range_stacks

if TYPE_CHECKING:
    import pyarrow as pa

    from pyprof.arrays import Int64Array, Mask
    from pyprof.records.records import DictionaryColumn

_FILLS = frozenset(
    f"{name}_"
    for name in (
        *("uniform", "normal", "fill", "zero", "log_normal", "exponential", "cauchy", "random"),
        *("constant", "ones", "zeros", "eye", "dirac", "xavier_uniform", "xavier_normal"),
        *("kaiming_uniform", "kaiming_normal", "trunc_normal", "orthogonal", "sparse"),
    )
)
"""Ops that fill a tensor in place, and functions of torch.nn.init."""
_NEW_TENSORS = frozenset(
    (
        *("_to_copy", "as_tensor", "clone", "contiguous", "copy_", "detach", "tensor", "to"),
        *("arange", "empty", "empty_like", "eye", "full", "full_like", "linspace", "new_empty"),
        *("new_full", "new_ones", "new_zeros", "ones", "ones_like", "zeros", "zeros_like"),
        *("rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm"),
    )
)
"""Ops that make or move data: before a pass, or in it."""
_MAX_BETWEEN = 16
"""Rows between two fills of one initialisation: trunc_normal_ compares and chooses in between."""


def rows(
    activities: pa.Table,
    path: DictionaryColumn,
    forward: Mask,
    passes: Mask,
) -> Mask:
    """Mark the rows that fill tensors before all passes of their process, and those in between.

    Only `forward` rows in no layer are marked. The first pass begins with the first row in a layer
    or after the forward pass; without layers, with the first row of `passes` whose op autograd
    numbers; if there is none, with the first one whose op does more than make tensors. An op that
    fills tensors in a pass as well is not marked: a model that draws noise does so in each of its
    passes.
    """
    in_layer = path.matches(attrgetter("layer"))
    unclear = forward & ~in_layer
    op = path.map(range_stacks.outermost_op)
    fills = unclear & op.is_in(*_FILLS)
    if not fills.any():
        return fills
    unnumbered = path.matches(range_stacks.without_gradients)
    makes = op.is_in(*_NEW_TENSORS)
    passes = passes & ~fills & ~makes
    process, start = ints(activities.column("pid")), ints(activities.column("start"))
    marked = np.zeros(len(fills), bool)
    for number in np.unique(process[fills]).tolist():
        ours = np.flatnonzero(process == number)
        ours = ours[np.argsort(start[ours], kind="stable")]
        # a constructor may calculate, too: rotary frequencies, before it fills the weights
        layers = in_layer[ours]
        certain = passes[ours] & ((layers | ~forward[ours]) if layers.any() else ~unnumbered[ours])
        # index of the row with which the first pass begins; the number of rows if there is none
        mask = certain if certain.any() else passes[ours]
        first = int(mask.argmax()) if mask.any() else len(mask)
        early, late = ours[:first], ours[first:]
        filled = fills[early] & ~np.isin(path.index[early], path.index[late[fills[late]]])
        marked[early[filled]] = True
        if certain.any():
            others = unclear[early] & ~fills[early] & ~makes[early]
            marked[early[others & _mark_between(filled)]] = True
    return marked


def _mark_between(filled: Mask) -> Mask:
    """Mark the rows between two fills that are near each other."""
    indices: Int64Array = np.flatnonzero(filled)
    behind = np.searchsorted(indices, np.arange(len(filled)))
    inside = (behind > 0) & (behind < len(indices))
    near = np.zeros(len(filled), bool)
    near[inside] = indices[behind[inside]] - indices[behind[inside] - 1] <= _MAX_BETWEEN
    return near
