"""What is known of op calls besides their arguments: the model, and the requests of a serving step.

A step's requests differ from those of the next; only calls whose cost depends on them are kept
apart.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pyprof.marker import Kind, Tensor, batch
from pyprof.ops import registry
from pyprof.ops.work import CallContext
from pyprof.prof.calls import op_calls
from pyprof.records.records import combinations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.arrays import Int64Array, IntArray
    from pyprof.marker import Call, Statement
    from pyprof.ops.model_config import ModelConfig
    from pyprof.prof.kernels.kernel_context import KernelContext
    from pyprof.records.records import Records


def with_settings(
    records: Records, number: IntArray, contexts: Sequence[KernelContext], model: ModelConfig | None
) -> tuple[IntArray, list[KernelContext]]:
    """Return each row's context and the contexts, with model, batch and layer added."""
    ranks = _ranks(contexts, model) if model else 1
    plain = CallContext(model, ranks=ranks)
    with_model = [replace(each, call_context=plain) for each in contexts] if model else contexts
    step = records.dictionary("servingStep")
    if not step.values:
        return number, list(with_model)
    # whether the cost of an op around the kernel depends on the requests of its step
    depends = np.array([any(_by_step(said) for said in each.statements) for each in contexts], bool)
    of_row = np.where(depends[number], step.index + 1, 0)
    layer = _layers(records, number, of_row, contexts, model)
    first, row_number = combinations(number, of_row, layer)
    batches = [None, *map(batch.read, step.values)]
    parts = (part[first].tolist() for part in (number, of_row, layer))
    return row_number, [
        replace(
            with_model[place],
            call_context=replace(plain, batch=batches[at], layer=None if nth < 0 else nth),
        )
        if at
        else with_model[place]
        for place, at, nth in zip(*parts, strict=True)
    ]


def _layers(
    records: Records,
    number: IntArray,
    step: IntArray,
    contexts: Sequence[KernelContext],
    model: ModelConfig | None,
) -> IntArray:
    """Return which of the model's layers with attention each row is of; -1 if unknown.

    Their calls in a step follow each other as the layers do: so the n-th is the n-th's, if the
    step has one for each layer. `step` is the number of each row's step; 0 for none.
    """
    layer = np.full(len(number), -1)
    count = len(model.windowed) if model is not None and model.windowed else 0
    ids = op_calls.around(records)
    if not count or ids is None:
        return layer
    place = np.array([_attention_at(each) for each in contexts])[number]
    rows = np.flatnonzero((place >= 0) & (step > 0))
    offsets, members = ids
    rows = rows[place[rows] < np.diff(offsets)[rows]]
    call_ids = members[offsets[rows] + place[rows]]
    process = records.numpy("pid")[rows]
    first, call = combinations(step[rows], process, call_ids)
    first = np.sort(first)  # calls in the order of their first kernels
    _, step_of_call = combinations(step[rows][first], process[first])
    calls_of_step = np.bincount(step_of_call)
    order = np.argsort(step_of_call, kind="stable")
    begins = np.cumsum(calls_of_step) - calls_of_step
    nth = np.empty(len(first), np.int64)
    nth[order] = np.arange(len(first)) - np.repeat(begins, calls_of_step)
    nth[calls_of_step[step_of_call] != count] = -1
    layer[rows] = nth[np.searchsorted(first, _first_rows(call))]
    return layer


def _first_rows(number: IntArray) -> Int64Array:
    """Return the first row that has the number of each row."""
    _, first, inverse = np.unique(number, return_index=True, return_inverse=True)
    return first[inverse]


def _attention_at(context: KernelContext) -> int:
    """Return the position of the outermost attention whose cost depends on the step; -1 if none."""
    order = context.order or range(len(context.statements))
    return next((at for at in order if _is_attention(context.statements[at])), -1)


def _is_attention(said: Statement) -> bool:
    call = _by_step(said)
    model = registry.find(call) if call is not None else None
    return model is not None and model.family == "attention"


def _ranks(contexts: Sequence[KernelContext], model: ModelConfig) -> int:
    """Number of ranks that layers are divided among: the model's heads over those of a query.

    1 where no attention of [tokens, heads, head] was recorded, or it does not divide them.
    """
    calls = {call for each in contexts for said in each.statements if (call := _by_step(said))}
    shapes = {value.shape for call in calls for value in call.args[:1] if isinstance(value, Tensor)}
    heads = {shape[1] for shape in shapes if len(shape) == 3 and shape[2] == model.head_size}  # noqa: PLR2004 - tokens, heads, head
    if len(heads) != 1 or not model.heads:
        return 1
    part = heads.pop()
    return model.heads // part if part and model.heads % part == 0 else 1


def _by_step(said: Statement) -> Call | None:
    """Return the call if its cost depends on its step; else None."""
    call = None if said.kind == Kind.OP else said.call
    model = registry.find(call) if call is not None else None
    return call if model is not None and model.by_step else None
