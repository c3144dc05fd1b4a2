"""Answers of trials, from what was found."""

from pyprof.analysis.diff.compare import Change
from pyprof.analysis.diff.side import Sum
from pyprof.analysis.trial.verdict import judge
from pyprof.answers.try_answer import KernelChange, tried_change
from tests.trial.built import CHANGE, in_turn


def test_a_changed_op_has_a_name_and_the_times_of_the_runs_that_have_it() -> None:
    new = Change(key=("mm", "4x4"), status="new", a=None, b=Sum(1, 1, 5), a_ns=0, b_ns=5)
    finding = judge(in_turn([[10.0] * 9], [[5.0] * 9]), CHANGE)
    found = tried_change(finding, captures={}, kernels=[new], predicted=None)
    assert found.kernels == (KernelChange("mm", "new", None, 5),)
