"""The columns of steps and phases."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pyprof.arrays import MISSING
from pyprof.inputs import source
from pyprof.prof.columns import step_columns
from pyprof.prof.step_rows import StepRows
from pyprof.prof.table import Table
from tests.analysis.captured import capture


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Return the table of a small capture of which no steps are known."""
    return replace(source.load(str(capture(tmp_path / "net.sqlite"))).table, steps=None)


def test_without_steps_every_number_is_null(table: Table) -> None:
    assert step_columns.numbers(table).null_count == table.records.rows


def test_a_row_outside_of_steps_has_no_number(table: Table) -> None:
    of_row = np.arange(table.records.rows) - 1
    assert of_row[0] == MISSING
    steps = replace(table, steps=StepRows(of_row))
    assert step_columns.numbers(steps).to_pylist() == [None, *range(table.records.rows - 1)]


def test_the_phase_of_a_serving_step_precedes_the_direction(table: Table) -> None:
    steps = StepRows(np.zeros(table.records.rows, np.int64), phases=("decode",))
    own = step_columns.phases(table)
    assert "forward" in {own.at(row) for row in range(table.records.rows)}
    served = step_columns.phases(replace(table, steps=steps))
    assert {served.at(row) for row in range(table.records.rows)} == {"decode"}
