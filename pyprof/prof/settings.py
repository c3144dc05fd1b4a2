"""What is known of op calls besides their arguments: the model, and the requests of a serving step.

A step's requests differ from those of the next; only calls whose cost depends on them are told
apart by them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pyprof import marker
from pyprof.marker import batch
from pyprof.ops import registry
from pyprof.ops.work import Setting
from pyprof.parse.records import distinct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.arrays import Ints
    from pyprof.ops.model_config import ModelConfig
    from pyprof.parse.records import Records
    from pyprof.prof.kernel_context import Situation


def with_settings(
    records: Records, number: Ints, situations: Sequence[Situation], model: ModelConfig | None
) -> tuple[Ints, list[Situation]]:
    """Give the number of each row's situation, and these, with what is known of them besides."""
    found = [replace(each, setting=Setting(model)) for each in situations] if model else situations
    depends = np.array([_depends(each) for each in situations], bool)
    step = records.coded("servingStep")
    if not step.values or not depends.any():
        return number, list(found)
    of_row = np.where(depends[number], step.index + 1, 0)
    first, row_number = distinct(number * (len(step.values) + 1) + of_row)
    batches = [None, *map(batch.read, step.values)]
    pairs = zip(number[first].tolist(), of_row[first].tolist(), strict=True)
    return row_number, [
        replace(found[place], setting=Setting(model, batches[at])) if at else found[place]
        for place, at in pairs
    ]


def _depends(situation: Situation) -> bool:
    """Tell whether an op around a kernel costs what the requests of the step make it cost."""
    return any(_by_step(text) for text in situation.texts)


def _by_step(text: str) -> bool:
    call = marker.decode_seq(text).call
    model = registry.find(call) if call is not None else None
    return model is not None and model.by_step
