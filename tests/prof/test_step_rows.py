"""Steps of rows, and work by step and phase."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pyprof.arrays import MISSING
from pyprof.inputs import source
from pyprof.prof import step_rows
from pyprof.prof.step_rows import StepRows, StepWork
from tests.analysis.captured import capture

STEPS = StepRows(
    np.array([0, 1, 1, -1]),
    phases=("prefill", "decode", "decode"),
    tokens=(100, 4, None),
    duration_ns=np.array([30, 5, 7]),
)


TRAINING = StepRows(np.array([0, 1]), duration_ns=np.array([3, 4]))


@pytest.mark.parametrize(
    ("steps", "by_step", "by_phase"),
    [
        # tokens of a phase are unknown if one step states none
        (
            STEPS,
            {0: StepWork(100, 30), 1: StepWork(4, 5), 2: StepWork(None, 7)},
            {"prefill": StepWork(100, 30), "decode": StepWork(None, 12)},
        ),
        (TRAINING, {0: StepWork(None, 3), 1: StepWork(None, 4)}, {}),
    ],
    ids=["serving", "training"],
)
def test_steps_and_phases_have_tokens_and_durations(
    steps: StepRows, by_step: dict[int, StepWork], by_phase: dict[str, StepWork]
) -> None:
    assert steps.by_step() == by_step
    assert steps.by_phase() == by_phase


def test_a_row_outside_of_steps_has_no_number(tmp_path: Path) -> None:
    table = source.load(str(capture(tmp_path / "net.sqlite"))).table
    of_row = np.arange(table.records.rows) - 1
    assert of_row[0] == MISSING
    steps = replace(table, steps=StepRows(of_row))
    assert step_rows.numbers(steps).to_pylist() == [None, *range(table.records.rows - 1)]
