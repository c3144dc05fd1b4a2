"""Ranks of one run add up, change by change."""

from pyprof.answers.whatif_answer import (
    PredictedChange,
    PredictedTime,
    RefusedChange,
    WhatIf,
    merge_whatif,
)


def _change(name: str, now: int) -> PredictedChange:
    time = PredictedTime(now=now, low=1, expected=2, high=3)
    return PredictedChange(
        change=name, kernels_ns=time, step_ns=None, rows=4,
        formula="", assumption="", validation="", code="",
    )  # fmt: skip


def test_times_of_a_change_are_added_and_a_refusal_stays() -> None:
    """A sum over some of the ranks would pass for one over all."""
    a = WhatIf(changes=(_change("x", 10),), refused=(RefusedChange(change="y", why="no"),))
    b = WhatIf(changes=(_change("x", 20), _change("y", 30)), refused=())
    for both in (merge_whatif(a, b), merge_whatif(b, a)):
        assert [(each.change, each.kernels_ns.now, each.rows) for each in both.changes] == [
            ("x", 30, 8)
        ]
        assert both.refused == a.refused
