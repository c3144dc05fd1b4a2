"""What a change would gain, predicted from one capture, or refused with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.analysis.advice.case import Case
from pyprof.analysis.whatif import dtype, pointwise
from pyprof.analysis.whatif.prediction import Prediction, Refusal
from pyprof.answers.whatif_answer import (
    PredictedChange,
    PredictedTime,
    RefusedChange,
    WhatIf,
)
from pyprof.gpu.peak_formula import is_cuda

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyprof.inputs.source import Source
    from pyprof.prof.table import Table

_RULES: Mapping[str, Callable[[Case], Prediction | Refusal]] = {
    dtype.CHANGE: dtype.predict,
    pointwise.CHANGE: pointwise.predict,
}


_OTHER_VENDOR = "the rules were tried on NVIDIA GPUs only"


def predictions(
    table: Table, changes: Sequence[str] = ()
) -> tuple[tuple[Prediction, ...], tuple[Refusal, ...]]:
    """Return the predictions of some changes, all by default, the best first; and the refusals."""
    case = Case(table)
    wanted = {name: rule for name, rule in _RULES.items() if not changes or name in changes}
    if any(peaks is not None and not is_cuda(peaks.name) for peaks in table.devices.values):
        return (), tuple(Refusal(name, _OTHER_VENDOR) for name in wanted)
    given = [rule(case) for rule in wanted.values()]
    predicted = [each for each in given if isinstance(each, Prediction)]
    predicted.sort(key=lambda each: each.kernels_ns.expected)
    return tuple(predicted), tuple(each for each in given if isinstance(each, Refusal))


def summarise_whatif(source: Source, changes: Sequence[str] = ()) -> WhatIf:
    """Return the answer of one capture."""
    predicted, refused = predictions(source.table, changes)
    return WhatIf(
        changes=tuple(
            PredictedChange(
                change=each.change,
                kernels_ns=PredictedTime(
                    now=each.kernels_ns.now,
                    low=each.kernels_ns.low,
                    expected=each.kernels_ns.expected,
                    high=each.kernels_ns.high,
                ),
                step_ns=None,
                rows=len(each.rows),
                formula=each.formula,
                assumption=each.assumption,
                validation=each.validation,
                code=each.code,
            )
            for each in predicted
        ),
        refused=tuple(RefusedChange(change=each.change, why=each.why) for each in refused),
    )
