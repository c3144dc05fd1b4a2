"""Predictions for ranks of one run add up, change by change."""

from pyprof.answers.whatif_answer import (
    PredictedChange,
    PredictedTime,
    RefusedChange,
    UpperBound,
    WhatIf,
)


def _change(name: str, now: int) -> PredictedChange:
    time = PredictedTime(now=now, low=1, expected=2, high=3)
    return PredictedChange(
        change=name, kernels_ns=time, step_ns=time, step_why=None, rows=4,
        formula="", assumption="", validation="", code="",
    )  # fmt: skip


def _bound(gain_ns: int) -> UpperBound:
    return UpperBound(
        change="z", gain_ns=gain_ns, gain_step_ns=None, rows=1, title="it waits", code=""
    )


def test_times_of_a_change_are_added_and_a_refusal_stays() -> None:
    """A sum over some of the ranks would look like one over all."""
    refused = (RefusedChange(change="y", why="no"),)
    a = WhatIf(steps=3, changes=(_change("x", 10),), bounds=(_bound(5),), refused=refused)
    b = WhatIf(
        steps=None, changes=(_change("x", 20), _change("y", 30)), bounds=(_bound(7),), refused=()
    )
    for both in (a.merged(b), b.merged(a)):
        (change,) = both.changes
        assert (change.change, change.kernels_ns.now, change.rows) == ("x", 30, 8)
        assert (both.refused, both.steps, both.bounds) == (refused, None, (_bound(7),))
        assert change.step_ns is None
        assert change.step_why
