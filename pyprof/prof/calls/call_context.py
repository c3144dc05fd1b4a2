"""What is known of op calls besides their recorded arguments.

* The model, and the requests of a serving step: only calls whose cost depends on those requests are
  kept apart by step.
* The shape of a forward op's result, from its backward node: emit_nvtx and older traces leave out
  strides and paddings, without which the size of a convolution's result is unknown, but the
  gradient that enters its backward node is of the same size.
* The sizes of collectives, which torch.profiler writes on a kernel of NCCL, where the op around it
  has no shapes.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from pyprof import schema
from pyprof.marker import Call, Kind, Tensor, serving_steps
from pyprof.ops import dtypes, registry
from pyprof.ops.registry import FPROP
from pyprof.ops.torch import collectives
from pyprof.ops.work import CallContext
from pyprof.prof.calls import op_calls
from pyprof.prof.calls.attributed_call import AttributedCall
from pyprof.prof.calls.op_choice import node_output
from pyprof.prof.kernels.name_hints import agreed_value
from pyprof.records.records import DictionaryColumn, combinations, number_combinations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyprof.arrays import IntArray
    from pyprof.marker import Statement
    from pyprof.ops.model_config import ModelConfig
    from pyprof.prof.kernels.kernel_context import KernelContext
    from pyprof.records.records import Records


def with_settings(
    records: Records, contexts: DictionaryColumn, model: ModelConfig | None
) -> DictionaryColumn:
    """Add model, batch and layer to each row's context."""
    plain = CallContext(model, ranks=_ranks(contexts.values, model) if model else 1)
    with_model = contexts.map(lambda each: replace(each, call_context=plain)) if model else contexts
    step = records.dictionary("servingStep")
    if not step.values:
        return with_model
    # whether the cost of an op around the kernel depends on the requests of its step
    depends = contexts.matches(lambda each: any(map(_by_step, each.statements)))
    of_row = np.where(depends, step.index + 1, 0)
    layer = _layers(records, contexts, of_row, model)
    first, number = combinations(contexts.index, of_row, layer)
    batches = [None, *map(serving_steps.read_requests, step.values)]
    parts = (part[first].tolist() for part in (contexts.index, of_row, layer))
    settled = [
        replace(
            with_model.values[index],
            call_context=replace(plain, batch=batches[at], layer=None if nth < 0 else nth),
        )
        if at
        else with_model.values[index]
        for index, at, nth in zip(*parts, strict=True)
    ]
    return DictionaryColumn(number, settled)


def _layers(
    records: Records, contexts: DictionaryColumn, step: IntArray, model: ModelConfig | None
) -> IntArray:
    """Return which of the model's layers with attention each row belongs to; -1 if unknown.

    Attention is called in the order of the layers: if a step has one call per layer, the n-th call
    is that of the n-th layer. `step` is the number of each row's step; 0 for none.
    """
    layer = np.full(len(contexts), -1)
    count = len(model.windowed) if model is not None and model.windowed else 0
    ids = op_calls.around(records)
    if not count or ids is None:
        return layer
    index = contexts.numpy(_attention_at, -1)
    rows = np.flatnonzero((index >= 0) & (step > 0))
    offsets, members = ids
    rows = rows[index[rows] < np.diff(offsets)[rows]]
    call_ids = members[offsets[rows] + index[rows]]
    process = records.numpy("pid")[rows]
    # calls are numbered in the order of their first kernels
    first, call = combinations(step[rows], process, call_ids)
    _, step_of_call = combinations(step[rows][first], process[first])
    calls_of_step = np.bincount(step_of_call)
    order = np.argsort(step_of_call, kind="stable")
    begins = np.cumsum(calls_of_step) - calls_of_step
    nth = np.empty(len(first), np.int64)
    nth[order] = np.arange(len(first)) - np.repeat(begins, calls_of_step)
    nth[calls_of_step[step_of_call] != count] = -1
    layer[rows] = nth[call]
    return layer


def _attention_at(context: KernelContext) -> int:
    """Return the position of the outermost attention whose cost depends on the step; -1 if none."""
    for at in context.order:
        call = _by_step(context.statements[at])
        model = registry.find(call) if call is not None else None
        if model is not None and model.family == "attention":
            return at
    return -1


def _ranks(contexts: Sequence[KernelContext], model: ModelConfig) -> int:
    """Return how many ranks layers are divided among: the model's heads over those of a query.

    1 unless the recorded queries, [tokens, heads, head size], have one number of heads, and it
    divides the model's.
    """
    calls = {call for each in contexts for said in each.statements if (call := _by_step(said))}
    shapes = {value.shape for call in calls for value in call.args[:1] if isinstance(value, Tensor)}
    heads = {shape[1] for shape in shapes if len(shape) == 3 and shape[2] == model.head_size}  # noqa: PLR2004 - tokens, heads, head
    if len(heads) != 1 or not model.heads:
        return 1
    part = heads.pop()
    return model.heads // part if part and model.heads % part == 0 else 1


def _by_step(said: Statement) -> Call | None:
    """Return the call if its cost depends on the requests of its step; else None."""
    call = None if said.kind == Kind.OP else said.call
    model = registry.find(call) if call is not None else None
    return call if model is not None and model.by_step else None


def with_outputs(
    records: Records, contexts: DictionaryColumn, works: DictionaryColumn
) -> DictionaryColumn:
    """Add the result's shape to works whose cost lacks nothing else.

    `works` are what rows work for, one for each of the `contexts`. A backward node belongs to the
    forward rows of its process that have its sequence number, if those are of one thread.
    """
    indices: dict[tuple[int, ...] | None, int] = {None: 0}
    shape_of_row = contexts.numpy(
        lambda each: indices.setdefault(node_output(each), len(indices)), 0
    )
    shapes = list(indices)
    lacks = works.matches(_lacks_argument)
    if len(shapes) == 1 or not lacks.any():
        return works
    # number rows by process and sequence number, if they have exactly one
    column = records.arrow("seqId")
    offsets = column.offsets.to_numpy()
    alone = np.diff(offsets) == 1
    number_of_row = np.full(records.rows, -1)
    number_of_row[alone] = column.values.to_numpy()[offsets[:-1][alone]]
    sequence = number_combinations(records.numpy("pid"), number_of_row)
    shape = agreed_value(sequence, np.where(alone, shape_of_row, 0))
    thread = np.unique(records.numpy("tid"), return_inverse=True)[1] + 1
    one_thread = agreed_value(sequence, np.where(alone & lacks, thread, 0)) > 0
    chosen = np.where(lacks & alone & one_thread, shape, 0)
    first, number = combinations(works.index, chosen)
    completed = []
    for row in first.tolist():
        work, output = works.at(row), shapes[chosen[row]]
        with_shape = replace(work, output=output, reason="")
        is_known = output is not None and with_shape.cost().flops is not None
        completed.append(with_shape if is_known else work)
    return DictionaryColumn(number, completed)


def _lacks_argument(work: AttributedCall) -> bool:
    """Whether a forward call's cost is unknown because an argument was not recorded."""
    return (
        work.direction == FPROP
        and work.output is None
        and work.has_shapes
        and work.reason.endswith("not recorded")
    )


_ONE, _BOTH = ("in",), ("out", "in")
_OPS: Mapping[str, tuple[str, tuple[str, ...]]] = MappingProxyType(
    {
        collectives.ALL_REDUCE: ("AllReduce", _ONE),
        collectives.ONE_WAY: ("Broadcast", _ONE),
        collectives.SEND_RECV: ("send", _ONE),
        "reduce": ("Reduce", _ONE),
        collectives.ALL_GATHER: ("AllGather", _BOTH),
        collectives.REDUCE_SCATTER: ("ReduceScatter", _BOTH),
        collectives.ALL_TO_ALL: ("AllToAll", _BOTH),
        collectives.GATHER: ("gather", _BOTH),
        "scatter": ("scatter", _BOTH),
    }
)
"""By kind of collective: the op whose formula costs it, and the amounts that are its arguments."""


def with_collectives(records: Records, works: DictionaryColumn) -> DictionaryColumn:
    """Replace works of unknown cost by what a tool recorded of the collective."""
    said = records.dictionary("collective")
    if not said.values:
        return works
    unknown = works.matches(lambda work: work.call is None or work.cost().bytes is None)
    calls = said.map(lambda text: _collective_call(schema.json_object(text)))
    replaced = calls.matches(lambda call: call is not None) & unknown
    first, number = combinations(np.where(replaced, said.index, -1), works.index)
    chosen = [
        AttributedCall(call=calls.at(row), direction=FPROP) if replaced[row] else works.at(row)
        for row in first.tolist()
    ]
    return DictionaryColumn(number, chosen)


def _collective_call(said: Mapping[str, Any]) -> Call | None:
    """Build a call from what is stated; None without an amount or a type."""
    op, amounts = _OPS.get(collectives.kind(str(said.get("name", ""))) or "", ("", ()))
    counts = [said.get(name) for name in amounts]
    dtype = dtypes.canonical(said.get("dtype"))
    if not op or dtype is None or not all(type(count) is int and count >= 0 for count in counts):
        return None
    size = {"size": said["size"]} if type(said.get("size")) is int else {}
    tensors = tuple(Tensor((int(count or 0),), dtype) for count in counts)
    return Call("nccl", op, tensors, collective=size)
