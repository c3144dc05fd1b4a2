"""The shape of a forward op's result, known from its backward node.

emit_nvtx and older torch.profiler traces leave out strides and paddings, without which nobody knows
how large a convolution's result was. The gradient that comes into its backward node is as large.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pyprof.arrays import numbered
from pyprof.ops.registry import FPROP
from pyprof.prof.calls.op_choice import node_output
from pyprof.prof.kernels.name_hints import agreed_value
from pyprof.records.records import number_combinations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pyprof.arrays import IntArray
    from pyprof.prof.calls.attributed_call import AttributedCall
    from pyprof.prof.kernels.kernel_context import KernelContext
    from pyprof.records.records import Records


def with_outputs(
    records: Records,
    number: IntArray,
    contexts: Sequence[KernelContext],
    works: Sequence[AttributedCall],
) -> tuple[IntArray, list[AttributedCall]]:
    """Add the result's shape to works whose cost lacks nothing else.

    `number` is the context of each row, `works` what each context's kernels work for; given
    back are the number of each row's work, and the works. A backward node belongs to the forward
    rows of its process that have its sequence number, if those are of one thread.
    """
    places: dict[tuple[int, ...] | None, int] = {None: 0}
    shape_index = [places.setdefault(node_output(each), len(places)) for each in contexts]
    shapes = list(places)
    lacks = np.array([_lacks(work) for work in works], bool)[number]
    if len(shapes) == 1 or not lacks.any():
        return number, list(works)
    sequence, alone = _sequences(records)
    shape_of_row = np.array(shape_index, np.int64)[number]
    shape = agreed_value(sequence, np.where(alone, shape_of_row, 0))
    thread = numbered(records.numpy("tid"))[1] + 1
    one_thread = agreed_value(sequence, np.where(alone & lacks, thread, 0)) > 0
    chosen = np.where(lacks & alone & one_thread, shape, 0)
    pairs, work_of = numbered(number.astype(np.int64) * len(shapes) + chosen)
    work_and_shape = [divmod(pair, len(shapes)) for pair in pairs.tolist()]
    return work_of, [_with_output(works[work], shapes[place]) for work, place in work_and_shape]


def _lacks(work: AttributedCall) -> bool:
    """Whether a forward call's cost is unknown because an argument was not recorded."""
    return (
        work.direction == FPROP
        and work.output is None
        and work.has_shapes
        and work.reason.endswith("not recorded")
    )


def _sequences(records: Records) -> tuple[IntArray, NDArray[np.bool_]]:
    """Number rows by process and sequence number, and tell which have just one of these."""
    column = records.arrow("seqId")
    alone = np.diff(column.offsets.to_numpy()) == 1
    sequence = np.full(records.rows, -1)
    sequence[alone] = column.values.to_numpy()[column.offsets.to_numpy()[:-1][alone]]
    return number_combinations(records.numpy("pid"), sequence), alone


def _with_output(work: AttributedCall, shape: tuple[int, ...] | None) -> AttributedCall:
    if shape is None:
        return work
    with_shape = replace(work, output=shape, reason="")
    return with_shape if with_shape.cost().flops is not None else work
