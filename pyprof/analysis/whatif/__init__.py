"""What a change would gain, predicted from one capture, or refused with the reason."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pyprof import schema
from pyprof.analysis.advice.rule_context import RuleContext
from pyprof.analysis.whatif import batching, other_gpu
from pyprof.analysis.whatif.fusion import ATTENTION, POINTWISE, predict_attention, predict_pointwise
from pyprof.analysis.whatif.kernels import Kernels, Prediction, unchanged
from pyprof.analysis.whatif.precision import HALF_TYPES, TF32, predict_half, predict_tf32
from pyprof.analysis.whatif.step_time import step_time
from pyprof.analysis.whatif.upper_bounds import BOUNDS, NO_GPU_WORK, upper_bounds
from pyprof.answers.whatif_answer import (
    PredictedChange,
    RefusedChange,
    UpperBound,
    WhatIf,
    largest_first,
)
from pyprof.gpu.peaks.formula import is_cuda

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyprof.analysis.whatif.step_time import StepTime
    from pyprof.inputs.source import Source
    from pyprof.prof.table import Table

_Predict: TypeAlias = "Callable[[Kernels], Prediction | str]"
"""Predicts a change, or returns why that is not possible."""
_RULES: Mapping[str, _Predict] = {
    TF32: predict_tf32,
    **{f"--dtype {short}": partial(predict_half, short=short) for short in HALF_TYPES},
    ATTENTION: predict_attention,
    POINTWISE: predict_pointwise,
}
"""In the order in which several are applied; rules that take a value come after, if asked for."""
_RULES_OF_A_VALUE: Mapping[str, Callable[[str], _Predict]] = {
    batching.OPTION: batching.rule,
    other_gpu.OPTION: other_gpu.rule,
}
_ALTERNATIVE = "--dtype"
"""Prefix of alternative changes: only the best one is combined with others."""
_OTHER_VENDOR = "the rules were tried on NVIDIA GPUs only"


def changes_of(
    dtype: str | None,
    fuse: Iterable[str],
    batch: str | None,
    gpu: str | None,
    bounds: Iterable[str] = (),
) -> tuple[str, ...]:
    """Return the changes that options ask for, as `predictions` takes them."""
    valued = {_ALTERNATIVE: dtype, batching.OPTION: batch, other_gpu.OPTION: gpu}
    single = [f"{option} {value}" for option, value in valued.items() if value is not None]
    return (*single, *(f"--fuse {name}" for name in fuse), *bounds)


def predictions(
    table: Table, changes: Sequence[str] = ()
) -> tuple[tuple[Prediction, ...], tuple[RefusedChange, ...]]:
    """Return the predictions of some changes, all by default, the best first; and the refusals.

    If several are possible, the last prediction combines them. Raises ValueError for a change
    without a rule.
    """
    context = RuleContext(table)
    wanted = _rules(changes)
    compared = {peaks.name for peaks in table.devices.values if peaks}
    if not all(map(is_cuda, compared.union(table.records.dictionary("gpu").values))):
        return (), tuple(RefusedChange(change=name, why=_OTHER_VENDOR) for name in wanted)
    if (on_cpu := context.kind(schema.CPU)).any() and on_cpu.all():
        return (), tuple(RefusedChange(change=name, why=NO_GPU_WORK) for name in wanted)
    predicted: list[Prediction] = []
    refused: list[RefusedChange] = []
    for name, predict in wanted.items():
        given = predict(unchanged(context))
        if isinstance(given, Prediction):
            predicted.append(given)
        else:
            refused.append(RefusedChange(change=name, why=given))
    predicted.sort(key=lambda each: each.kernels.span.expected)
    together = _predict_together(unchanged(context), wanted, predicted)
    if together is not None:
        predicted.append(together)
    return tuple(predicted), tuple(refused)


def _rules(changes: Sequence[str]) -> Mapping[str, _Predict]:
    """Return the rules of some changes in the order in which they are applied."""
    asked = {}
    for change in changes:
        option, _, value = change.partition(" ")
        if option in _RULES_OF_A_VALUE:
            asked[change] = _RULES_OF_A_VALUE[option](value)
        elif change not in _RULES:
            raise ValueError(f"{change!r} is none of {', '.join([*_RULES, *_RULES_OF_A_VALUE])}")
    options = [*_RULES_OF_A_VALUE]
    valued = sorted(asked.items(), key=lambda each: options.index(each[0].partition(" ")[0]))
    fixed = {name: rule for name, rule in _RULES.items() if not changes or name in changes}
    return {**fixed, **dict(valued)}


def _predict_together(
    kernels: Kernels, rules: Mapping[str, _Predict], alone: Sequence[Prediction]
) -> Prediction | None:
    """Apply each change to the result of those before it; None for fewer than two changes.

    A change may be possible only after another: fused attention after float32.
    """
    types = [each.change for each in alone if each.change.startswith(_ALTERNATIVE)]
    made: list[Prediction] = []
    for name, rule in rules.items():
        if name.startswith(_ALTERNATIVE) and name not in types[:1]:
            continue
        given = rule(kernels)
        if isinstance(given, Prediction):
            made.append(given)
            kernels = given.kernels
    if len(made) < _SEVERAL:
        return None
    return Prediction(
        change=" ".join(each.change for each in made),
        kernels=kernels,
        rows=np.unique(np.concatenate([each.rows for each in made])),
        formula="each change on what those before it left",
        assumption="; ".join(dict.fromkeys(each.assumption for each in made)),
        validation="; ".join(f"{each.change}: {each.validation}" for each in made),
        code="; ".join(each.code.rstrip(":") for each in made),
    )


_SEVERAL = 2


def summarise_whatif(
    source: Source, changes: Sequence[str] = (), *, kernels_only: bool = False
) -> WhatIf:
    """Return the answer of one capture; with `kernels_only`, what needs no look at the host."""
    bounded = [change for change in changes or BOUNDS if change in BOUNDS and not kernels_only]
    ruled = [change for change in changes if change not in BOUNDS]
    limits = [*upper_bounds(source, bounded)] if bounded else []
    predicted, refused = predictions(source.table, ruled) if ruled or not changes else ((), ())
    step = "" if kernels_only or not predicted else step_time(source)
    bounds = [each for each in limits if isinstance(each, UpperBound)]
    return WhatIf(
        steps=None if isinstance(step, str) else step.steps,
        changes=tuple(_describe_prediction(each, step) for each in predicted),
        bounds=tuple(largest_first(bounds)),
        refused=(*refused, *(each for each in limits if isinstance(each, RefusedChange))),
        warnings=(*source.table.source.warnings, *source.table.doubts),
    )


def _describe_prediction(given: Prediction, step: StepTime | str) -> PredictedChange:
    after = step if isinstance(step, str) else step.after(given.kernels)
    return PredictedChange(
        change=given.change,
        kernels_ns=given.kernels.span,
        step_ns=None if isinstance(after, str) else after,
        step_why=after if isinstance(after, str) else None,
        rows=len(given.rows),
        formula=given.formula,
        assumption=given.assumption,
        validation=given.validation,
        code=given.code,
    )
