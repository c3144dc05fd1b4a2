"""What is known of op calls besides their arguments: the model, and the requests of a serving step.

A step's requests differ from those of the next; only calls whose cost depends on them are kept
apart.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pyprof import marker
from pyprof.marker import Tensor, batch
from pyprof.ops import registry
from pyprof.ops.work import Setting
from pyprof.parse.records import combinations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.arrays import Integers
    from pyprof.marker import Call
    from pyprof.ops.model_config import ModelConfig
    from pyprof.parse.records import Records
    from pyprof.prof.kernel_context import KernelContext


def with_settings(
    records: Records, number: Integers, contexts: Sequence[KernelContext], model: ModelConfig | None
) -> tuple[Integers, list[KernelContext]]:
    """Give the number of each row's context, and these, with what is known of them besides."""
    ranks = _ranks(contexts, model) if model else 1
    plain = Setting(model, ranks=ranks)
    with_model = [replace(each, setting=plain) for each in contexts] if model else contexts
    step = records.coded("servingStep")
    if not step.values:
        return number, list(with_model)
    depends = np.array([_depends(each) for each in contexts], bool)
    of_row = np.where(depends[number], step.index + 1, 0)
    first, row_number = combinations(number, of_row)
    batches = [None, *map(batch.read, step.values)]
    pairs = zip(number[first].tolist(), of_row[first].tolist(), strict=True)
    return row_number, [
        replace(with_model[place], setting=replace(plain, batch=batches[at]))
        if at
        else with_model[place]
        for place, at in pairs
    ]


def _ranks(contexts: Sequence[KernelContext], model: ModelConfig) -> int:
    """Tell among how many ranks layers are divided: the model's heads over those of queries.

    1 where no attention of [tokens, heads, head] was recorded, or it does not divide them.
    """
    calls = {call for each in contexts for text in each.texts if (call := _by_step(text))}
    shapes = {value.shape for call in calls for value in call.args[:1] if isinstance(value, Tensor)}
    heads = {shape[1] for shape in shapes if len(shape) == 3 and shape[2] == model.head_size}  # noqa: PLR2004 - tokens, heads, head
    if len(heads) != 1 or not model.heads:
        return 1
    part = heads.pop()
    return model.heads // part if part and model.heads % part == 0 else 1


def _depends(context: KernelContext) -> bool:
    """Tell whether an op around a kernel costs what the requests of the step make it cost."""
    return any(_by_step(text) for text in context.texts)


def _by_step(text: str) -> Call | None:
    """Give the call of a text whose cost depends on its step; None for any other."""
    call = marker.decode_seq(text).call
    model = registry.find(call) if call is not None else None
    return call if model is not None and model.by_step else None
