"""Answers of trials, from what was found."""

from pathlib import Path

from pyprof.analysis.diff.compare import compare
from pyprof.analysis.diff.side import Side, summarise_side
from pyprof.analysis.trial.verdict import judge, tried_change
from pyprof.answers.try_answer import KernelChange
from pyprof.inputs.source import load
from tests.trial.built import CHANGE, in_turn


def test_a_changed_op_has_a_name_and_the_times_of_the_runs_that_have_it(tmp_path: Path) -> None:
    def side(op: str, ns: int) -> Side:
        path = tmp_path / f"{op}.dict"
        path.write_text(f"{{'kShortName': '{op}', 'kLongName': '{op}', 'kDuration': {ns}}}")
        return summarise_side(load(str(path)), ("op",), None)

    changes = compare(side("mm", 7), side("add", 5)).differing
    finding = judge(in_turn([[10.0] * 9], [[5.0] * 9]), CHANGE)
    found = tried_change(finding, captures={}, kernels=changes, predicted=None)
    assert found.kernels == (
        KernelChange("mm", "gone", 7, None),
        KernelChange("add", "new", None, 5),
    )
