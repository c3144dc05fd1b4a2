"""Findings across ranks, as tables for programs."""

import csv
import io

import pytest

from pyprof.analysis.ranks.findings import compare_ranks
from pyprof.analysis.ranks.output_tables import TABLES, as_csv
from tests.analysis.ranks.literal import Collective, gathered

ROWS = [Collective(rank, (at + 10 * rank, at + 50)) for rank in (0, 1) for at in (0, 100, 200)]


@pytest.mark.parametrize("name", TABLES)
def test_each_row_of_a_table_has_all_columns(name: str) -> None:
    found = compare_ranks(gathered(ROWS))
    rows = [*TABLES[name].rows(found)]
    assert all(len(row) == len(TABLES[name].columns) for row in rows)
    written = [*csv.reader(io.StringIO(as_csv(found, name).decode()))]
    assert written[0] == [*TABLES[name].columns]
    assert len(written) == 1 + len(rows)


def test_ranks_are_a_row_each() -> None:
    written = as_csv(compare_ranks(gathered(ROWS)), "ranks").decode()
    assert [row["rank"] for row in csv.DictReader(io.StringIO(written))] == ["0", "1"]
