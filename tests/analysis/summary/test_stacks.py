"""The stack of each row, and sums by stack."""

from pathlib import Path

import pytest

from pyprof.analysis.summary.stacks import NO_FILE, stacks, sums
from pyprof.inputs import source
from pyprof.prof.table import Table
from tests.analysis.captured import capture


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return source.load(str(capture(tmp_path / "net.sqlite", steps=3))).table


def test_a_stack_ends_with_the_kernel_of_its_row(table: Table) -> None:
    found = stacks(table)
    kernels = table.records.dictionary("kShortName")
    for row in range(table.records.rows):
        innermost = found.at(row)[-1]
        assert (innermost.file, innermost.name) == (NO_FILE, kernels.at(row))


def test_equal_stacks_are_one(table: Table) -> None:
    found = stacks(table)
    assert len(set(found.values)) == len(found.values)
    assert {count.rows % 3 for count in sums(table).values()} == {0}


def test_sums_hold_every_row_once(table: Table) -> None:
    summed = sums(table).values()
    assert sum(each.rows for each in summed) == table.records.rows
    assert sum(each.ns for each in summed) == table.duration_ns.sum()
