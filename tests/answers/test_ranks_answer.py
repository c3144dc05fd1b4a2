"""The answer of `pyprof ranks`."""

import csv
import io
from pathlib import Path

import pytest

from pyprof.analysis.ranks.findings import compare_ranks
from pyprof.answers.base import table_columns
from pyprof.answers.ranks_answer import Ranks, as_csv
from pyprof.commands.ranks import _TABLES
from tests.analysis.captured import capture
from tests.analysis.ranks.literal import Collective, gathered
from tests.answers.checked import ask

ROWS = [Collective(rank, (at + 10 * rank, at + 50)) for rank in (0, 1) for at in (0, 100, 200)]


@pytest.mark.parametrize("name", _TABLES)
def test_csv_of_a_table_has_a_header_and_all_rows(name: str) -> None:
    answer = compare_ranks(gathered(ROWS))
    written = [*csv.reader(io.StringIO(as_csv(answer, name).decode()))]
    assert written[0] == table_columns(Ranks)[name]
    assert len(written) == 1 + len(getattr(answer, name))


def test_ranks_have_all_tables(tmp_path: Path) -> None:
    """Those of CSV, under their old names at the top level, with the same columns."""
    files = [capture(tmp_path / f"net.rank{n}.sqlite", steps=2) for n in (0, 1)]
    answer = ask("ranks", *files)
    for name in _TABLES:
        assert all([*row] == table_columns(Ranks)[name] for row in answer[name])
    assert [row["rank"] for row in answer["ranks"]] == [0, 1]
    assert (answer["left_out"], answer["step_origins"]) == ([], ['ranges "step N"'])
